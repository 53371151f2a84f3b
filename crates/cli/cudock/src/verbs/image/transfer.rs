//! `cudock copy` and `cudock push`: images from one place to another.

use cudock_base::text::format::fixed_bytes;
use cudock_cli::{CopyArgs, PushArgs};
use cudock_image::write::{Destination, WriteOptions};
use schemars::JsonSchema;
use serde::Serialize;

use crate::failure::{Failure, Outcome};
use crate::output::{self, Format, line, status};
use crate::steps::images::{access, progress};

#[derive(Serialize, JsonSchema)]
pub(crate) struct TransferReport {
    schema: u8,
    destination: String,
    digest: String,
    images: usize,
    bytes_sent: u64,
    /// Bytes that the registry took from another repository.
    bytes_mounted: u64,
    /// Bytes that were already there.
    bytes_present: u64,
}

pub(crate) fn push(args: &PushArgs, format: Format) -> Result<Outcome, Failure> {
    match Destination::parse(&args.copy.destination)? {
        Destination::Registry(_) => copy(&args.copy, format),
        other => {
            Err(Failure::input(format!("{other} is not in a registry"))
                .hint("`cudock copy` writes everywhere"))
        }
    }
}

pub(crate) fn copy(args: &CopyArgs, format: Format) -> Result<Outcome, Failure> {
    let destination = Destination::parse(&args.destination)?;
    let options = WriteOptions::from_environment(progress())?;
    let mut bundle = access(None, false).find(&args.source)?.bundle()?;
    for skipped in bundle.unreadable_referrers() {
        output::note(format!(
            "left out {}, which is attached to the image: {}",
            skipped.digest, skipped.reason
        ));
    }
    if let Some(compression) = args.compression {
        status(format!("compressing layers with {compression}, as --compression says"));
        let client = options.client.as_ref().ok_or_else(|| Failure::input("no cache directory"))?;
        bundle = bundle.recompress(client.store(), compression)?;
    }
    let written = bundle.write(&destination, &options)?;
    let report = TransferReport {
        schema: 1,
        destination: destination.to_string(),
        digest: written.digest,
        images: bundle.image_count()?,
        bytes_sent: written.bytes_sent,
        bytes_mounted: written.bytes_mounted,
        bytes_present: written.bytes_present,
    };
    match format {
        Format::Json => output::json(&report),
        Format::Text => {
            line(format!("{}@{}", report.destination, report.digest));
            let [sent, mounted, present] =
                [report.bytes_sent, report.bytes_mounted, report.bytes_present].map(fixed_bytes);
            line(format!(
                "{sent} written, {mounted} mounted from another repository, {present} already there"
            ));
        }
    }
    Ok(Outcome::Yes)
}
