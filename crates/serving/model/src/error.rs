//! Errors of reading a model.

use std::io;
use std::path::{Path, PathBuf};

use cudock_mmap::MapError;

#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    #[error("cannot read {}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{}: {problem}", path.display())]
    Invalid { path: PathBuf, problem: String },
    #[error("{} is neither an ONNX nor a safetensors file", path.display())]
    Unknown { path: PathBuf },
    #[error("no ONNX or safetensors file found in {}", path.display())]
    NoModel { path: PathBuf },
}

impl ModelError {
    pub(crate) fn invalid(path: &Path, problem: impl Into<String>) -> Self {
        Self::Invalid { path: path.to_owned(), problem: problem.into() }
    }

    pub(crate) fn read(path: &Path, source: io::Error) -> Self {
        Self::Read { path: path.to_owned(), source }
    }
}

impl From<MapError> for ModelError {
    fn from(error: MapError) -> Self {
        Self::Read { path: error.path, source: error.source }
    }
}
