//! `cudock sign` and `cudock verify --key`: signatures of images.

use std::path::Path;

use cudock_cli::SignArgs;
use cudock_image::write::WriteOptions;
use cudock_trust::{ImageSigner, PublicKey, TrustedImage};

use crate::failure::{Failure, Outcome};
use crate::output::{self, Format, line};
use crate::steps::images::progress;

pub(crate) fn run(args: &SignArgs, format: Format) -> Result<Outcome, Failure> {
    let signer = ImageSigner::read(&args.key)?;
    let image = TrustedImage::find(&args.image, progress())?;
    let report = image.sign(&signer, &WriteOptions::from_environment(progress())?)?;
    match format {
        Format::Json => output::report(&report),
        Format::Text => line(format!("signed {}", report.digest)),
    }
    Ok(Outcome::Yes)
}

pub(crate) fn verify(image: &str, key: &Path, format: Format) -> Result<Outcome, Failure> {
    let report = TrustedImage::find(image, progress())?.verify(&PublicKey::read(key)?)?;
    match format {
        Format::Json => output::report(&report),
        Format::Text => report.lines().iter().for_each(line),
    }
    Ok(if report.statements.is_empty() { Outcome::No } else { Outcome::Yes })
}
