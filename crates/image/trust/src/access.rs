//! An image where it is, to be signed and verified there.

use std::sync::Arc;

use cudock_base::{Digest, Timestamp};
use cudock_gpu_test::DeviceReport;
use cudock_http::Progress;
use cudock_image::write::{Destination, WriteOptions};
use cudock_image::{Access, ImageSource, Pull, ResolvedImage};

use crate::image::{ImageVerifyReport, SignReport, sign, verify};
use crate::statement::{PROOF, Proof, Statement, proof_statement, signature_statement};
use crate::{ImageSigner, PublicKey, TrustError};

/// An image to sign or verify: by its digest, even if its name is reassigned meanwhile.
pub struct TrustedImage {
    image: ResolvedImage,
    digest: Digest,
}

impl TrustedImage {
    /// Finds an image in a registry, a layout or an archive.
    pub fn find(name: &str, progress: Arc<dyn Progress>) -> Result<Self, TrustError> {
        // Daemons have no referrers.
        let access = Access { platform: None, offline: false, pull: Some(Pull::Always), progress };
        Self::of(access.find(name)?)
    }

    /// An image that was found already.
    pub fn of(image: ResolvedImage) -> Result<Self, TrustError> {
        let digest = image.digest()?;
        Ok(Self { image, digest })
    }

    /// Signs the image.
    pub fn sign(&self, signer: &ImageSigner, write: &WriteOptions) -> Result<SignReport, TrustError> {
        self.attach(&signature_statement(&self.digest), signer, write)
    }

    /// An error unless it is one image that stays what it is while it is verified.
    pub fn check_provable(&self) -> Result<(), TrustError> {
        self.check_pinned()?;
        let media_type = &self.image.descriptor().media_type;
        if media_type.contains("manifest.v") { Ok(()) } else { Err(TrustError::Index) }
    }

    /// Signs that GPUs computed from inside the image, with this result.
    pub fn prove(
        &self,
        signer: &ImageSigner,
        report: &DeviceReport,
        write: &WriteOptions,
    ) -> Result<SignReport, TrustError> {
        self.check_provable()?;
        let proof = Proof::of(report, Timestamp::now().to_string()).ok_or(TrustError::NoProof)?;
        self.attach(&proof_statement(&self.digest, &proof), signer, write)
    }

    fn attach(
        &self,
        statement: &Statement,
        signer: &ImageSigner,
        write: &WriteOptions,
    ) -> Result<SignReport, TrustError> {
        let destination = Destination::of(self.image.source());
        sign(self.image.descriptor(), statement, signer, &destination, write)
    }

    /// Verifies the statements about the image that a key signed.
    pub fn verify(&self, key: &PublicKey) -> Result<ImageVerifyReport, TrustError> {
        let verified = verify(&self.image, &self.digest, key, None)?;
        Ok(ImageVerifyReport {
            digest: self.digest.to_string(),
            statements: verified.statements,
            skipped: verified.skipped,
        })
    }

    /// The image, if a key signed a proof for it. This is the one to run.
    pub fn proven(self, key: &PublicKey) -> Result<ResolvedImage, TrustError> {
        self.check_pinned()?;
        let verified = verify(&self.image, &self.digest, key, Some(PROOF))?;
        let is_proven =
            verified.statements.iter().any(|proof| Proof::in_predicate(&proof.predicate).is_some());
        if is_proven {
            return Ok(self.image);
        }
        Err(TrustError::Unproven { digest: self.digest.to_string(), skipped: verified.skipped })
    }

    /// A registry's image must be named by its digest: a name that stands for another image tomorrow is not proven.
    fn check_pinned(&self) -> Result<(), TrustError> {
        let is_tag =
            matches!(self.image.source(), ImageSource::Registry(reference) if reference.digest.is_none());
        if is_tag { Err(TrustError::Tag) } else { Ok(()) }
    }
}
