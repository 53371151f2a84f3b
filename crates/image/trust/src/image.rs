//! Documents and signatures as referrers of an image.

use std::collections::BTreeMap;
use std::convert::Infallible;

use cudock_base::text::error_chain;
use cudock_base::{Digest, try_parallel};
use cudock_image::write::{Artifact, ArtifactBlob, Bundle, Destination, WriteOptions};
use cudock_image::{Descriptor, Referrer, ResolvedImage};
use cudock_lock::LockFile;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::bundle::BUNDLE_TYPE;
use crate::skipped::{SkippedReferrer, skipped_text};
use crate::statement::{PROVENANCE, provenance_statement};
use crate::{ImageSigner, PublicKey, SignatureBundle, Statement, TrustError, cyclonedx, spdx};

/// Registries limit the rate of each connection.
const CONNECTIONS: usize = 4;

const SPDX_TYPE: &str = "application/spdx+json";
const CYCLONEDX_TYPE: &str = "application/vnd.cyclonedx+json";
const IN_TOTO_TYPE: &str = "application/vnd.in-toto+json";
const CHECK_TYPE: &str = "application/vnd.cudock.check.v1+json";
const PREDICATE_TYPE: &str = "dev.sigstore.bundle.predicateType";

/// What `sign` reports.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SignReport {
    /// The image that was signed.
    pub digest: String,
    /// The referrer that holds the signature.
    pub signature: String,
}

/// What `verify --key` reports.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ImageVerifyReport {
    pub digest: String,
    /// What the key signed about the image; empty if it signed nothing.
    pub statements: Vec<VerifiedStatement>,
    /// What is attached to the image and could not be read.
    pub skipped: Vec<SkippedReferrer>,
}

impl ImageVerifyReport {
    /// The report as lines of text.
    pub fn lines(&self) -> Vec<String> {
        let first = match self.statements.as_slice() {
            [] => format!("{}: the key signed nothing about this image", self.digest),
            _ => format!("{}: verified", self.digest),
        };
        let rest = self.statements.iter().map(|one| format!("  {}", one.predicate_type));
        let skipped = skipped_text(&self.skipped).map(|text| format!("note: {text}"));
        std::iter::once(first).chain(rest).chain(skipped).collect()
    }
}

fn digest_of(descriptor: &Descriptor) -> Result<Digest, TrustError> {
    descriptor.digest.parse().map_err(|_| TrustError::Bundle("invalid digest".to_owned()))
}

/// A statement of an image that a key signed.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct VerifiedStatement {
    /// The referrer that holds it.
    pub referrer: String,
    pub predicate_type: String,
    pub predicate: Value,
}

/// Attaches what is known about a built image: two bills of materials, the provenance, and the report of `check`. The same
/// lock gives the same bytes.
pub fn attach_documents(
    image: &mut Bundle,
    lock: &LockFile,
    lock_digest: &Digest,
    name: &str,
    check: Option<&Value>,
) -> Result<Vec<Descriptor>, TrustError> {
    let digest = digest_of(image.descriptor())?;
    let artifacts = documents(lock, lock_digest, name, &digest, check)?;
    Ok(artifacts.iter().map(|artifact| image.attach(None, artifact)).collect())
}

fn documents(
    lock: &LockFile,
    lock_digest: &Digest,
    name: &str,
    image: &Digest,
    check: Option<&Value>,
) -> Result<Vec<Artifact>, TrustError> {
    let provenance = provenance_statement(image, lock, lock_digest);
    let provenance =
        serde_json::to_value(&provenance).map_err(|error| TrustError::Bundle(error.to_string()))?;
    let annotations = BTreeMap::from([("in-toto.io/predicate-type".to_owned(), PROVENANCE.to_owned())]);
    let mut artifacts = vec![
        document(SPDX_TYPE, &spdx(lock, name, image)),
        document(CYCLONEDX_TYPE, &cyclonedx(lock, name, image)),
        Artifact { annotations, ..document(IN_TOTO_TYPE, &provenance) },
    ];
    artifacts.extend(check.map(|check| document(CHECK_TYPE, check)));
    Ok(artifacts)
}

fn document(media_type: &str, value: &Value) -> Artifact {
    let bytes = value.to_string().into_bytes();
    let blob = ArtifactBlob { media_type: media_type.to_owned(), bytes, annotations: BTreeMap::new() };
    Artifact { artifact_type: media_type.to_owned(), layers: vec![blob], annotations: BTreeMap::new() }
}

/// A signed statement, as cosign attaches it.
pub fn signed_artifact(statement: &Statement, signer: &ImageSigner) -> Result<Artifact, TrustError> {
    let bytes = SignatureBundle::sign(statement, signer)?.to_json()?;
    let blob = ArtifactBlob { media_type: BUNDLE_TYPE.to_owned(), bytes, annotations: BTreeMap::new() };
    let annotations = BTreeMap::from([
        ("dev.sigstore.bundle.content".to_owned(), "dsse-envelope".to_owned()),
        (PREDICATE_TYPE.to_owned(), statement.predicate_type.clone()),
    ]);
    Ok(Artifact { artifact_type: BUNDLE_TYPE.to_owned(), layers: vec![blob], annotations })
}

/// Attaches a signed statement to an image where it is.
pub fn sign(
    image: &Descriptor,
    statement: &Statement,
    signer: &ImageSigner,
    destination: &Destination,
    options: &WriteOptions,
) -> Result<SignReport, TrustError> {
    let bundle = Bundle::referrer(image, &signed_artifact(statement, signer)?);
    let signature = bundle.digest().to_owned();
    bundle.write(destination, options)?;
    Ok(SignReport { digest: image.digest.clone(), signature })
}

/// The statements about an image that a key signed.
#[derive(Debug, Default)]
pub struct Verified {
    pub statements: Vec<VerifiedStatement>,
    pub skipped: Vec<SkippedReferrer>,
}

/// The statements about an image that a key signed, of one predicate type or of all. What others signed, or what is about
/// another image, does not count.
pub fn verify(
    image: &ResolvedImage,
    subject: &Digest,
    key: &PublicKey,
    predicate_type: Option<&str>,
) -> Result<Verified, TrustError> {
    let referrers = image.referrers(subject, Some(BUNDLE_TYPE))?;
    let skipped = |referrer: String, reason: String| SkippedReferrer { referrer, reason };
    let mut verified = Verified::default();
    verified.skipped.extend(referrers.unreadable.into_iter().map(|one| skipped(one.digest, one.reason)));
    if referrers.omitted > 0 {
        verified.skipped.push(skipped(format!("{} more", referrers.omitted), "too many to read".to_owned()));
    }
    let read = |referrer: &Referrer| -> Result<Option<Vec<u8>>, TrustError> {
        let [layer] = referrer.layers.as_slice() else { return Ok(None) };
        Ok(Some(image.part(layer)?))
    };
    let parts = try_parallel(&referrers.found, CONNECTIONS, |one| Ok::<_, Infallible>(read(one)));
    for (referrer, part) in referrers.found.into_iter().zip(parts.unwrap_or_default()) {
        let bytes = match part {
            Ok(Some(bytes)) => bytes,
            Ok(None) => continue,
            Err(error) => {
                verified.skipped.push(skipped(referrer.descriptor.digest, error_chain(&error)));
                continue;
            }
        };
        // A bundle of another kind, such as one with a certificate, is not for this key.
        let Ok(Some(statement)) = SignatureBundle::parse(&bytes).and_then(|bundle| bundle.verify(key)) else {
            continue;
        };
        let is_wanted = predicate_type.is_none_or(|wanted| wanted == statement.predicate_type);
        if is_wanted && statement.is_about(subject) {
            verified.statements.push(VerifiedStatement {
                referrer: referrer.descriptor.digest,
                predicate_type: statement.predicate_type,
                predicate: statement.predicate,
            });
        }
    }
    Ok(verified)
}
