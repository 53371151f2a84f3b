//! Writes the generated files into the project's directory.

use std::fs;
use std::path::{Path, PathBuf};

use cudock_base::files::write_atomically;
use cudock_base::{ErrorKind, FileError, Report};

use crate::Scaffold;

#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    #[error("{} already exists", path.display())]
    Exists { path: PathBuf },
    #[error(transparent)]
    Write(#[from] FileError),
}

impl Report for WriteError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Exists { .. } => ErrorKind::Input,
            Self::Write(error) => error.kind(),
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::Exists { .. } => {
                vec!["pass --force to replace it, or --print to write nothing".to_owned()]
            }
            Self::Write(error) => error.hints(),
        }
    }
}

impl Scaffold {
    /// Writes all files, or none if one exists and may not be replaced.
    pub fn write(&self, directory: &Path, replace: bool) -> Result<(), WriteError> {
        let paths = || self.files.iter().map(|file| (directory.join(file.path), file));
        let exists = |path: &Path| fs::symlink_metadata(path).is_ok();
        if let Some((path, _)) = paths().find(|(path, _)| !replace && exists(path)) {
            return Err(WriteError::Exists { path });
        }
        for (path, file) in paths() {
            write_atomically(&path, file.text.as_bytes()).map_err(FileError::at("write", &path))?;
        }
        Ok(())
    }
}
