//! `cudock.toml`: the one file a project adds.
//!
//! Every key has a default, so an empty file is a good one. A key nobody knows is an error that names the nearest one
//! that is known, and every error says line and column: a setting that is silently ignored is worse than none.

mod error;
mod quantity;
mod schema;

use std::fs;
use std::path::{Path, PathBuf};

pub use error::ProjectError;
pub use quantity::{ByteSize, QuantityError, Span};
pub use schema::{
    Deploy, DeployTarget, DeviceChoice, Manifest, Needs, Serve, TryModel, Workload, WorkloadKind,
};

/// The name of the file.
pub const FILE_NAME: &str = "cudock.toml";

/// A project: the folder and what its file says.
#[derive(Clone, Debug, PartialEq)]
pub struct Project {
    /// The folder the file is in; paths in it start here.
    pub folder: PathBuf,
    /// What the file says.
    pub manifest: Manifest,
}

impl Project {
    /// Reads the `cudock.toml` of a folder.
    pub fn open(folder: &Path) -> Result<Self, ProjectError> {
        let path = folder.join(FILE_NAME);
        let text =
            fs::read_to_string(&path).map_err(|source| ProjectError::Read { path: path.clone(), source })?;
        Ok(Self { folder: folder.to_owned(), manifest: parse(&path, &text)? })
    }

    /// The file of the model to serve, if one is named.
    pub fn model(&self) -> Option<PathBuf> {
        self.manifest.workload.model.as_ref().map(|model| self.folder.join(model))
    }

    /// The name of the project: as the file says, or the folder's.
    pub fn name(&self) -> String {
        self.manifest.name.clone().unwrap_or_else(|| {
            let folder = self.folder.canonicalize().unwrap_or_else(|_| self.folder.clone());
            folder.file_name().map_or_else(|| "model".to_owned(), |name| name.to_string_lossy().into_owned())
        })
    }
}

/// Reads the text of a `cudock.toml`; `path` is for the errors.
pub fn parse(path: &Path, text: &str) -> Result<Manifest, ProjectError> {
    toml::from_str(text).map_err(|error| ProjectError::parse(path, text, &error))
}
