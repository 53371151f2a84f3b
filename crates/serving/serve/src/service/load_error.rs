//! Models that could not be loaded.

use crate::model::{FileStamps, RepositoryError};

/// The reason that one model is not loaded.
pub(super) struct LoadFailure {
    pub(super) reason: String,
    /// Whether it failed because a required GPU is missing.
    pub(super) is_gpu_missing: bool,
    pub(super) files: FileStamps,
}

/// There is nothing to serve.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error(transparent)]
    Repository(#[from] RepositoryError),
    #[error("no model could be loaded\n{0}")]
    None(String),
    /// No model could be loaded, one of them because a required GPU is missing.
    #[error("no model could be loaded\n{0}")]
    NoGpu(String),
}
