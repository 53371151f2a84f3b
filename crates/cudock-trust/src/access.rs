//! An image where it is, to be signed and verified there.

use std::path::Path;
use std::sync::Arc;

use cudock_base::{Digest, Timestamp, files};
use cudock_http::Progress;
use cudock_image::write::{Destination, WriteError, WriteOptions};
use cudock_image::{Descriptor, ImageSource, OpenOptions};

use crate::image::{ImageVerifyReport, SignReport, find, sign, verify};
use crate::statement::{PROOF, Proof, proof_statement, signature_statement};
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

    /// Signs the image; with `proof`, the proof in this output of `run --verify-gpu`.
    pub fn sign(&self, signer: &ImageSigner, proof: Option<&Path>) -> Result<SignReport, TrustError> {
        let statement = match proof {
            None => signature_statement(&self.digest),
            Some(path) => {
                let proof = Proof::read(&files::read_text(path)?, Timestamp::now().to_string());
                proof_statement(&self.digest, &proof.ok_or_else(|| TrustError::NoProof(path.to_owned()))?)
            }
        };
        sign(&self.image, &statement, signer, &Destination::parse(&self.name)?, &self.write)
    }

    /// What a key signed about the image.
    pub fn verify(&self, key: &PublicKey) -> Result<ImageVerifyReport, TrustError> {
        let statements = verify(&self.source, &self.digest, key, None, &self.open)?;
        Ok(ImageVerifyReport { digest: self.digest.to_string(), statements })
    }

    /// An error unless a key signed a proof for the image. A registry's image must be named by its digest, so that the one
    /// that is verified is the one that runs.
    pub fn require_proof(&self, key: &PublicKey) -> Result<(), TrustError> {
        if matches!(self.source, ImageSource::Registry(_)) && !self.name.contains("@sha256:") {
            return Err(TrustError::Tag);
        }
        if verify(&self.source, &self.digest, key, Some(PROOF), &self.open)?.is_empty() {
            return Err(TrustError::Unproven(self.digest.to_string()));
        }
        Ok(())
    }
}
