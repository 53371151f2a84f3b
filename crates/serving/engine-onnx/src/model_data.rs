//! The model that sessions are created from: the file itself, or a converted one.

use std::path::{Path, PathBuf};

use ort::session::Session;
use ort::session::builder::SessionBuilder;
use tempfile::TempDir;

/// The name of a converted model in its directory.
pub(crate) const MODEL_FILE: &str = "model.onnx";

pub(crate) enum ModelData {
    File(PathBuf),
    Memory(Vec<u8>),
    /// A directory with a model and its external weights, removed when all sessions exist.
    Directory(TempDir),
}

impl ModelData {
    pub(crate) fn of_file(path: &Path) -> Self {
        Self::File(path.to_owned())
    }

    pub(crate) fn commit(&self, builder: &mut SessionBuilder) -> ort::Result<Session> {
        match self {
            Self::File(path) => builder.commit_from_file(path),
            Self::Memory(bytes) => builder.commit_from_memory(bytes),
            Self::Directory(directory) => builder.commit_from_file(directory.path().join(MODEL_FILE)),
        }
    }
}
