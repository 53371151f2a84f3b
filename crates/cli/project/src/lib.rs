//! Reads `cudock.toml`, the file in which a project describes itself.
//!
//! Every key has a default, so an empty file is valid. An unknown key is an error that names the nearest known one, and
//! every error has line and column: a setting that is silently ignored is worse than none.

mod check;
mod edit;
mod error;
mod example;
mod flags;
mod json_schema;
mod manifest_text;
mod schema;
mod sweep_plan;

use std::fs;
use std::path::{Path, PathBuf};

pub use cudock_base::{ByteRate, ByteSize, QuantityError, TimeSpan};
pub use edit::edit_serve;
pub use error::ProjectError;
pub use example::{EXAMPLES, Example};
pub use flags::{DeployFlags, SweepFlags, WorkloadFlags, choice};
pub use json_schema::json_schema;
pub use manifest_text::ManifestText;
pub use schema::{
    CapabilityRange, Data, DayRate, Deploy, DeployTarget, DeviceChoice, Dialect, ElementType, FailLevel,
    GatewayOptions, HostName, ImageBuild, ImageColor, ImageFilter, ImageLayout, ImageOptions, ImageSize,
    KeepLoaded, Lint, Manifest, NamedTarget, Needs, Precision, RateLimit, RequestRate, ScoreFunction,
    ServeOptions, SpotChoice, SpotUse, Start, TensorDeclaration, TextOptions, TryModel, Workload,
    WorkloadKind,
};

pub const FILE_NAME: &str = "cudock.toml";

/// A project: its directory and its `cudock.toml`.
#[derive(Clone, Debug, PartialEq)]
pub struct Project {
    /// The directory of the file; paths in the file are relative to it.
    pub directory: PathBuf,
    pub manifest: Manifest,
    /// The text of the file, for errors.
    pub text: ManifestText,
}

impl Project {
    /// Reads the `cudock.toml` in a directory.
    pub fn open(directory: &Path) -> Result<Self, ProjectError> {
        Self::read(&directory.join(FILE_NAME))
    }

    /// Reads a file of any name.
    pub fn read(path: &Path) -> Result<Self, ProjectError> {
        let text = fs::read_to_string(path)
            .map_err(|source| ProjectError::Read { path: path.to_owned(), source })?;
        let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty());
        let directory = directory.unwrap_or(Path::new(".")).to_owned();
        let (manifest, text) = parse_text(path, &text)?;
        Ok(Self { directory, manifest, text })
    }

    pub fn without_file(directory: &Path) -> Self {
        Self { directory: directory.to_owned(), manifest: Manifest::default(), text: ManifestText::default() }
    }

    /// The model to serve, if the file names one.
    pub fn model(&self) -> Option<PathBuf> {
        self.manifest.workload.model.as_ref().map(|model| self.directory.join(model))
    }

    /// The name of the project: that in the file, or that of the directory.
    pub fn name(&self) -> String {
        self.manifest.name.clone().unwrap_or_else(|| {
            let directory = self.directory.canonicalize().unwrap_or_else(|_| self.directory.clone());
            directory
                .file_name()
                .map_or_else(|| "model".to_owned(), |name| name.to_string_lossy().into_owned())
        })
    }
}

/// Parses the text of a `cudock.toml`; `path` is for errors.
pub fn parse(path: &Path, text: &str) -> Result<Manifest, ProjectError> {
    parse_text(path, text).map(|(manifest, _)| manifest)
}

fn parse_text(path: &Path, text: &str) -> Result<(Manifest, ManifestText), ProjectError> {
    let manifest = toml::from_str(text).map_err(|error| ProjectError::parse(path, text, &error))?;
    let text = ManifestText::new(path, text);
    check::check(&manifest, &text)?;
    Ok((manifest, text))
}
