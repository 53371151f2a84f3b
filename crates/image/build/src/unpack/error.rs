//! Why a package was not unpacked.

use cudock_base::FileError;

/// Why a package was not unpacked.
#[derive(Debug, thiserror::Error)]
pub enum UnpackError {
    /// The archive is broken, or would write where it must not.
    #[error("{0}")]
    Refused(String),
    /// The cache cannot be written.
    #[error(transparent)]
    Disk(#[from] FileError),
}

impl UnpackError {
    pub(crate) fn refused(reason: impl Into<String>) -> Self {
        Self::Refused(reason.into())
    }
}
