//! Errors of signing and verifying.

use cudock_base::{ErrorKind, FileError, Report};
use cudock_image::write::WriteError;
use thiserror::Error;

/// An image that cannot be signed or verified.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TrustError {
    #[error(transparent)]
    Image(#[from] WriteError),
    #[error(transparent)]
    File(#[from] FileError),
    #[error("{name}: {reason}")]
    Key { name: String, reason: &'static str },
    #[error("the signature could not be made")]
    Signing,
    #[error("invalid signature bundle: {0}")]
    Bundle(String),
}

impl Report for TrustError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Image(error) => error.kind(),
            Self::File(error) => error.kind(),
            Self::Key { .. } | Self::Bundle(_) => ErrorKind::Input,
            Self::Signing => ErrorKind::Outside,
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::Image(error) => error.hints(),
            Self::Key { .. } => vec![
                "make a key with `openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out cosign.key` \
                 and `openssl pkey -in cosign.key -pubout -out cosign.pub`"
                    .to_owned(),
            ],
            _ => Vec::new(),
        }
    }
}
