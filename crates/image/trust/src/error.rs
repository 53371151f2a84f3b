//! Errors of signing and verifying.

use cudock_base::{ErrorKind, FileError, Report, UsageError};
use cudock_image::ImageError;
use cudock_image::write::WriteError;
use thiserror::Error;

use crate::skipped::{SkippedReferrer, skipped_text};

/// An image that cannot be signed or verified.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TrustError {
    #[error(transparent)]
    Image(#[from] WriteError),
    #[error(transparent)]
    Found(#[from] ImageError),
    #[error(transparent)]
    File(#[from] FileError),
    #[error("{name}: {reason}")]
    Key { name: String, reason: &'static str },
    #[error("the signature could not be made")]
    Signing,
    #[error("invalid signature bundle: {0}")]
    Bundle(String),
    #[error(transparent)]
    Usage(#[from] UsageError),
    #[error("no GPU computed")]
    NoProof,
    #[error("a proof is about one image, and this is an index of several")]
    Index,
    #[error("{digest} has no proof that this key signed{}", skipped_clause(skipped))]
    Unproven { digest: String, skipped: Vec<SkippedReferrer> },
    #[error("a proof needs an image by digest: a tag may change after it was verified")]
    Tag,
}

fn skipped_clause(skipped: &[SkippedReferrer]) -> String {
    skipped_text(skipped).map_or_else(String::new, |text| format!("; {text}"))
}

impl Report for TrustError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Image(error) => error.kind(),
            Self::Found(error) => error.kind(),
            Self::File(error) => error.kind(),
            Self::Signing => ErrorKind::Outside,
            _ => ErrorKind::Input,
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::Image(error) => error.hints(),
            Self::Found(error) => error.hints(),
            Self::Key { .. } => vec![
                "make a key with `openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out cosign.key` \
                 and `openssl pkey -in cosign.key -pubout -out cosign.pub`"
                    .to_owned(),
            ],
            Self::Tag => vec!["use NAME@sha256:…".to_owned()],
            Self::Index => vec!["name the image for this machine by its own digest, NAME@sha256:…".to_owned()],
            Self::Unproven { .. } => vec![
                "make one on a machine with the GPU: `cudock run --gpus all --verify-gpu --sign-proof KEY IMAGE`"
                    .to_owned(),
            ],
            _ => Vec::new(),
        }
    }
}
