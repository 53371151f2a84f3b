use std::io;
use std::path::PathBuf;

use cudock_base::{ErrorKind, FileError, Report};

use crate::error::ImageError;

/// Why an image could not be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    #[error(transparent)]
    Image(#[from] ImageError),
    #[error(transparent)]
    Registry(#[from] cudock_registry::Error),
    #[error(transparent)]
    File(#[from] FileError),
    #[error("cannot read {}", path.display())]
    Source { path: PathBuf, source: io::Error },
    #[error("layer entry `{path}`: {reason}")]
    Entry { path: String, reason: String },
    #[error("`{text}` is not a destination: {reason}")]
    Destination { text: String, reason: String },
    #[error("cannot write to {destination}: {reason}")]
    Unsupported { destination: String, reason: String },
    /// The bytes of a blob are not those that its digest names.
    #[error("blob {digest}: {reason}")]
    Damaged { digest: String, reason: String },
}

impl WriteError {
    pub(crate) fn damaged(digest: &str, reason: impl Into<String>) -> Self {
        WriteError::Damaged { digest: digest.to_owned(), reason: reason.into() }
    }
}

impl Report for WriteError {
    fn kind(&self) -> ErrorKind {
        match self {
            WriteError::Image(error) => error.kind(),
            WriteError::Registry(error) => error.kind(),
            WriteError::File(_) => ErrorKind::Outside,
            _ => ErrorKind::Input,
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            WriteError::Image(error) => error.hints(),
            WriteError::Registry(error) => error.hints(),
            WriteError::File(error) if error.is_storage_full() => {
                vec!["free some space, or set CUDOCK_CACHE to a directory on a larger disk".to_owned()]
            }
            WriteError::Destination { .. } => vec![
                "a destination is oci:DIR, oci-archive:FILE, docker-archive:FILE, docker-daemon:NAME, cache:NAME, \
                 or a name in a registry"
                    .to_owned(),
            ],
            _ => Vec::new(),
        }
    }
}
