//! Why a model cannot be read.

use std::io;
use std::path::{Path, PathBuf};

use cudock_map::MapError;

/// A model that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// A file cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A file says what cannot be.
    #[error("{}: {problem}", path.display())]
    Broken {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// A file is of no kind that can be read.
    #[error("{} is neither an ONNX nor a safetensors file", path.display())]
    Unknown {
        /// The file.
        path: PathBuf,
    },
    /// A folder has no model in it.
    #[error("no ONNX or safetensors file is in {}", path.display())]
    NoModel {
        /// The folder.
        path: PathBuf,
    },
}

impl ModelError {
    pub(crate) fn broken(path: &Path, problem: impl Into<String>) -> Self {
        Self::Broken { path: path.to_owned(), problem: problem.into() }
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
