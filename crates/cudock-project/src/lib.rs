//! `cudock.toml`: the one file a project adds.
//!
//! Every key has a default, so an empty file is a good one. A key nobody knows is an error that names the nearest one
//! that is known, and every error says line and column: a setting that is silently ignored is worse than none.

mod check;
mod error;
mod places;
mod quantity;
mod schema;

use std::fs;
use std::path::{Path, PathBuf};

pub use check::PRECISIONS;
pub use error::ProjectError;
pub use places::Places;
pub use quantity::{ByteRate, ByteSize, QuantityError, Span};
pub use schema::{
    CapabilityRange, Data, DataAccess, DayRate, Deploy, DeployTarget, DeviceChoice, ManagementWanted,
    Manifest, Needs, RequestRate, Serve, SpotChoice, SpotUse, Start, TryModel, Workload, WorkloadKind,
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
    /// Where in the file it says so.
    pub places: Places,
}

impl Project {
    /// Reads the `cudock.toml` of a folder.
    pub fn open(folder: &Path) -> Result<Self, ProjectError> {
        Self::read(&folder.join(FILE_NAME))
    }

    /// Reads a file of any name; its folder is the project's.
    pub fn read(path: &Path) -> Result<Self, ProjectError> {
        let text = fs::read_to_string(path)
            .map_err(|source| ProjectError::Read { path: path.to_owned(), source })?;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new(".")).to_owned();
        Ok(Self { folder, manifest: parse(path, &text)?, places: Places::new(path, &text) })
    }

    /// A project without a file, in a folder.
    pub fn without_file(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), manifest: Manifest::default(), places: Places::default() }
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
    let manifest = toml::from_str(text).map_err(|error| ProjectError::parse(path, text, &error))?;
    check::check(&manifest, &Places::new(path, text))?;
    Ok(manifest)
}
