//! In-toto statements about an image: its signature, its provenance, and the proof that it ran on a GPU.

use std::collections::BTreeMap;

use cudock_base::Digest;
use cudock_lock::LockFile;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

const STATEMENT: &str = "https://in-toto.io/Statement/v1";
/// The predicate of an image signature of cosign 3.
pub const COSIGN_SIGNATURE: &str = "https://sigstore.dev/cosign/sign/v1";
pub const PROVENANCE: &str = "https://slsa.dev/provenance/v1";
/// The predicate of a proof.
pub const PROOF: &str = "urn:cudock:proof:1";

/// A statement about images.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Statement {
    #[serde(rename = "_type")]
    kind: String,
    subject: Vec<StatementSubject>,
    pub predicate_type: String,
    pub predicate: Value,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct StatementSubject {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    digest: BTreeMap<String, String>,
}

impl Statement {
    /// A statement about the image with this digest.
    pub fn about(digest: &Digest, predicate_type: &str, predicate: Value) -> Self {
        let digest = BTreeMap::from([(digest.algorithm().name().to_owned(), digest.hex().to_owned())]);
        Self {
            kind: STATEMENT.to_owned(),
            subject: vec![StatementSubject { name: None, digest }],
            predicate_type: predicate_type.to_owned(),
            predicate,
        }
    }

    /// Whether it is about the image with this digest.
    pub fn is_about(&self, digest: &Digest) -> bool {
        let is_this = |subject: &StatementSubject| {
            subject.digest.get(digest.algorithm().name()).is_some_and(|hex| hex == digest.hex())
        };
        self.kind == STATEMENT && self.subject.iter().any(is_this)
    }
}

/// What a signature states: nothing beyond the digest.
pub fn signature_statement(digest: &Digest) -> Statement {
    Statement::about(digest, COSIGN_SIGNATURE, json!({}))
}

/// How an image was built: from which lock, and so from which packages.
pub fn provenance_statement(digest: &Digest, lock: &LockFile, lock_digest: &Digest) -> Statement {
    let dependency = |uri: String, digest: &Digest| json!({"uri": uri, "digest": {digest.algorithm().name(): digest.hex()}});
    let debs = lock.debs.iter().map(|deb| dependency(super::sbom::deb_purl(lock, deb), &deb.digest));
    let wheels = lock.wheels.iter().map(|wheel| dependency(super::sbom::wheel_purl(wheel), &wheel.digest));
    let inputs = lock.inputs.iter().map(|(name, digest)| dependency(format!("file:{name}"), digest));
    let own = dependency(format!("file:{}", cudock_lock::LOCK_NAME), lock_digest);
    Statement::about(
        digest,
        PROVENANCE,
        json!({
            "buildDefinition": {
                "buildType": "urn:cudock:build:1",
                "externalParameters": {"target": lock.target},
                "resolvedDependencies":
                    std::iter::once(own).chain(inputs).chain(debs).chain(wheels).collect::<Vec<_>>(),
            },
            "runDetails": {"builder": {"id": concat!("urn:cudock:", env!("CARGO_PKG_VERSION"))}},
        }),
    )
}

/// That an image ran on a GPU and computed correctly.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Proof {
    pub gpus: Vec<ProvenGpu>,
    /// The version of the driver.
    pub driver: String,
    /// How it was verified, such as `run --verify-gpu`.
    pub verification: String,
    /// When, in RFC 3339.
    pub time: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProvenGpu {
    pub name: String,
    /// `9.0`
    pub capability: String,
}

pub fn proof_statement(digest: &Digest, proof: &Proof) -> Statement {
    Statement::about(digest, PROOF, serde_json::to_value(proof).unwrap_or_default())
}
