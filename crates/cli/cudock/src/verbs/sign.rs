//! `cudock sign` and `cudock verify --key`: signatures of images.

use std::path::{Path, PathBuf};

use clap::Args;
use cudock_image::write::WriteOptions;
use cudock_trust::{ImageSigner, PublicKey, TrustedImage};

use super::containers::{progress, reports};
use crate::failure::{Failure, Outcome};
use crate::output::{Format, line};

/// Sign an image with a key, as cosign does
///
/// The signature is attached to the image where it is: in a registry or an OCI layout. See docs/trust.md.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cudock sign oci:image --key cosign.key
  cudock verify oci:image --key cosign.pub")]
pub(crate) struct SignArgs {
    /// Image to sign
    pub(crate) image: String,

    /// Private key: ECDSA P-256 in PKCS #8
    #[arg(long, value_name = "FILE")]
    pub(crate) key: PathBuf,
}

pub(super) fn run(args: &SignArgs, format: Format) -> Result<Outcome, Failure> {
    let signer = ImageSigner::read(&args.key)?;
    let image = TrustedImage::find(&args.image, progress())?;
    let report = image.sign(&signer, &WriteOptions::from_environment(progress())?)?;
    match format {
        Format::Json => reports::print(&report),
        Format::Text => line(format!("signed {}", report.digest)),
    }
    Ok(Outcome::Yes)
}

pub(super) fn verify(image: &str, key: &Path, format: Format) -> Result<Outcome, Failure> {
    let report = TrustedImage::find(image, progress())?.verify(&PublicKey::read(key)?)?;
    match format {
        Format::Json => reports::print(&report),
        Format::Text => report.lines().iter().for_each(line),
    }
    Ok(if report.statements.is_empty() { Outcome::No } else { Outcome::Yes })
}
