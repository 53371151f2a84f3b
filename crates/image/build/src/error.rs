//! Errors of a build.

use cudock_base::{ErrorKind, FileError, Report, UsageError};
use cudock_compat::GatherError;
use cudock_compat::target::TargetError;
use cudock_image::write::WriteError;
use cudock_lock::LockError;
use cudock_trust::TrustError;

use crate::unpack::error::UnpackError;

/// Why an image was not built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    #[error(transparent)]
    Usage(#[from] UsageError),
    #[error(transparent)]
    Lock(#[from] LockError),
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error(transparent)]
    Target(#[from] TargetError),
    #[error(transparent)]
    Gather(#[from] GatherError),
    #[error(transparent)]
    Trust(#[from] TrustError),
    #[error(transparent)]
    File(#[from] FileError),
    /// A package has the locked hash, but cannot be used.
    #[error("refused {name}: {reason}")]
    Package { name: String, reason: String },
    #[error("{program} failed: {reason}")]
    Builder { program: String, reason: String },
}

impl BuildError {
    pub(crate) fn package(name: &str, error: UnpackError) -> Self {
        match error {
            UnpackError::Refused(reason) => Self::Package { name: name.to_owned(), reason },
            UnpackError::Disk(error) => Self::File(error),
        }
    }

    pub(crate) fn usage(message: impl Into<String>, hint: &str) -> Self {
        Self::Usage(UsageError::new(message).hint(hint))
    }
}

impl Report for BuildError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Usage(error) => error.kind(),
            Self::Lock(error) => error.kind(),
            Self::Write(error) => error.kind(),
            Self::Target(error) => error.kind(),
            Self::Gather(error) => error.kind(),
            Self::Trust(error) => error.kind(),
            Self::File(error) => error.kind(),
            Self::Package { .. } => ErrorKind::Input,
            Self::Builder { .. } => ErrorKind::Outside,
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::Usage(error) => error.hints(),
            Self::Lock(error) => error.hints(),
            Self::Write(error) => error.hints(),
            Self::Target(error) => error.hints(),
            Self::Gather(error) => error.hints(),
            Self::Trust(error) => error.hints(),
            Self::File(error) if error.is_storage_full() => vec![SPACE.to_owned()],
            Self::File(error) => error.hints(),
            Self::Package { name, .. } => {
                vec![format!(
                    "the file has the locked hash, so {name} was published like this: choose another version"
                )]
            }
            Self::Builder { .. } => Vec::new(),
        }
    }
}

const SPACE: &str = "free some space, or set CUDOCK_CACHE to a directory on a larger disk";
