//! `cudock sign` and `cudock verify --key`: signatures of images.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use cudock_base::{Timestamp, files};
use cudock_image::write::{Destination, WriteOptions};
use cudock_image::{ImageSource, OpenOptions};
use cudock_trust::{
    ImageSigner, ImageVerifyReport, PROOF, Proof, PublicKey, proof_statement, signature_statement,
};

use super::containers::reports;
use super::progress::Lines;
use crate::failure::{Failure, Outcome};
use crate::output::{Format, line};

/// Sign an image with a key, as cosign does
///
/// The signature is attached to the image where it is: in a registry, an OCI layout or an archive. See docs/trust.md.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cudock sign registry.example/team/app:1.0 --key cosign.key
  cudock sign oci:image --key cosign.key
  cudock verify oci:image --key cosign.pub
  cudock run --gpus all --verify-gpu IMAGE true 2> gpu.log && cudock sign IMAGE --key cosign.key --proof gpu.log")]
pub(crate) struct SignArgs {
    /// Image to sign
    pub(crate) image: String,

    /// Private key: ECDSA P-256 in PKCS #8
    #[arg(long, value_name = "FILE")]
    pub(crate) key: PathBuf,

    /// Sign the proof that its GPUs compute: what `cudock run --verify-gpu` printed
    #[arg(long, value_name = "FILE")]
    pub(crate) proof: Option<PathBuf>,
}

pub(super) fn run(args: &SignArgs, format: Format) -> Result<Outcome, Failure> {
    let signer = ImageSigner::read(&args.key)?;
    let (source, open, write) = access(&args.image)?;
    let (image, digest) = cudock_trust::find(&source, &open)?;
    let statement = match &args.proof {
        None => signature_statement(&digest),
        Some(file) => {
            let proof = Proof::read(&files::read_text(file)?, Timestamp::now().to_string());
            let wrong = || {
                Failure::input(format!("{}: not the output of --verify-gpu, or a GPU failed", file.display()))
            };
            proof_statement(&digest, &proof.ok_or_else(wrong)?)
        }
    };
    let destination = Destination::parse(&args.image)?;
    let report = cudock_trust::sign(&image, &statement, &signer, &destination, &write)?;
    match format {
        Format::Json => reports::print(&report),
        Format::Text => line(format!("signed {}", report.digest)),
    }
    Ok(Outcome::Yes)
}

pub(super) fn verify(image: &str, key: &Path, format: Format) -> Result<Outcome, Failure> {
    let key = PublicKey::read(key)?;
    let (source, open, _) = access(image)?;
    let (_, digest) = cudock_trust::find(&source, &open)?;
    let statements = cudock_trust::verify(&source, &digest, &key, None, &open)?;
    let report = ImageVerifyReport { digest: digest.to_string(), statements };
    match format {
        Format::Json => reports::print(&report),
        Format::Text => report.lines().iter().for_each(line),
    }
    Ok(if report.statements.is_empty() { Outcome::No } else { Outcome::Yes })
}

/// An error unless a key signed a proof for this image. The image must be named by its digest, so that the image that is
/// verified is the one that runs.
pub(super) fn require_proof(image: &str, key: &Path) -> Result<(), Failure> {
    if !image.contains("@sha256:") && ImageSource::with_transport(image).is_none() {
        let message = "--require-proof needs an image by digest: a tag may change after it was verified";
        return Err(Failure::input(message).hint("use NAME@sha256:…"));
    }
    let key = PublicKey::read(key)?;
    let (source, open, _) = access(image)?;
    let (_, digest) = cudock_trust::find(&source, &open)?;
    if cudock_trust::verify(&source, &digest, &key, Some(PROOF), &open)?.is_empty() {
        let failure = Failure::with_code(format!("{digest} has no proof that this key signed"), 1);
        return Err(failure
            .hint("make one with `cudock sign IMAGE --key KEY --proof FILE` on a machine with the GPU"));
    }
    Ok(())
}

fn access(image: &str) -> Result<(ImageSource, OpenOptions, WriteOptions), Failure> {
    let source =
        match ImageSource::with_transport(image).or_else(|| ImageSource::at(Path::new(image)).map(Ok)) {
            Some(source) => source?,
            None => ImageSource::reference(image)?,
        };
    let write = WriteOptions::from_environment(Arc::new(Lines::default()))?;
    let open = OpenOptions {
        platform: None,
        client: write.client.clone(),
        sockets: write.sockets.clone(),
        progress: None,
        scratch: write.scratch.clone(),
    };
    Ok((source, open, write))
}
