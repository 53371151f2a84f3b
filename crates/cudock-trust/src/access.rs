//! An image where it is, to be signed and verified there.

use std::path::Path;
use std::sync::Arc;

use cudock_base::{Digest, Timestamp};
use cudock_device::DeviceReport;
use cudock_http::Progress;
use cudock_image::write::{Destination, WriteError, WriteOptions};
use cudock_image::{Descriptor, ImageSource, OpenOptions};

use crate::image::{ImageVerifyReport, SignReport, find, sign, verify};
use crate::statement::{PROOF, Proof, Statement, proof_statement, signature_statement};
use crate::{ImageSigner, PublicKey, TrustError};

/// An image as a user names it.
pub struct ImageAccess {
    name: String,
    source: ImageSource,
    open: OpenOptions,
    write: WriteOptions,
    image: Descriptor,
    digest: Digest,
}

impl ImageAccess {
    /// Finds an image in a registry, a layout or an archive.
    pub fn open(name: &str, progress: Arc<dyn Progress>) -> Result<Self, TrustError> {
        let known = ImageSource::with_transport(name).or_else(|| ImageSource::at(Path::new(name)).map(Ok));
        let source = known.unwrap_or_else(|| ImageSource::reference(name)).map_err(WriteError::from)?;
        let write = WriteOptions::from_environment(progress)?;
        let open = OpenOptions {
            platform: None,
            client: write.client.clone(),
            sockets: write.sockets.clone(),
            progress: None,
            scratch: write.scratch.clone(),
        };
        let (image, digest) = find(&source, &open)?;
        Ok(Self { name: name.to_owned(), source, open, write, image, digest })
    }

    /// Signs the image.
    pub fn sign(&self, signer: &ImageSigner) -> Result<SignReport, TrustError> {
        self.attach(&signature_statement(&self.digest), signer)
    }

    /// An error unless it is one image that stays what it is while it is verified.
    pub fn check_provable(&self) -> Result<(), TrustError> {
        self.check_pinned()?;
        if self.image.media_type.contains("manifest.v") { Ok(()) } else { Err(TrustError::Index) }
    }

    /// Signs that GPUs computed from inside the image, with this result.
    pub fn prove(&self, signer: &ImageSigner, report: &DeviceReport) -> Result<SignReport, TrustError> {
        self.check_provable()?;
        let proof = Proof::of(report, Timestamp::now().to_string()).ok_or(TrustError::NoProof)?;
        self.attach(&proof_statement(&self.digest, &proof), signer)
    }

    fn attach(&self, statement: &Statement, signer: &ImageSigner) -> Result<SignReport, TrustError> {
        let destination = match &self.source {
            ImageSource::Registry(reference) => {
                let mut repository = reference.clone();
                // What is attached is pushed by its own digest.
                repository.digest = None;
                Destination::Registry(repository)
            }
            _ => Destination::parse(&self.name)?,
        };
        sign(&self.image, statement, signer, &destination, &self.write)
    }

    /// What a key signed about the image.
    pub fn verify(&self, key: &PublicKey) -> Result<ImageVerifyReport, TrustError> {
        let statements = verify(&self.source, &self.digest, key, None, &self.open)?;
        Ok(ImageVerifyReport { digest: self.digest.to_string(), statements })
    }

    /// An error unless a key signed a proof for the image.
    pub fn require_proof(&self, key: &PublicKey) -> Result<(), TrustError> {
        self.check_pinned()?;
        let proofs = verify(&self.source, &self.digest, key, Some(PROOF), &self.open)?;
        let is_proven = proofs.iter().any(|proof| Proof::in_predicate(&proof.predicate).is_some());
        if is_proven { Ok(()) } else { Err(TrustError::Unproven(self.digest.to_string())) }
    }

    /// A registry's image must be named by its digest, so that the one that is verified is the one that runs.
    fn check_pinned(&self) -> Result<(), TrustError> {
        let is_tag = matches!(&self.source, ImageSource::Registry(reference) if reference.digest.is_none());
        if is_tag { Err(TrustError::Tag) } else { Ok(()) }
    }
}
