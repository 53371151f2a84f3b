//! Writes generated files into a directory, without replacing what is there.

use std::fs;
use std::path::{Path, PathBuf};

use crate::files::write_atomically;
use crate::{ErrorKind, FileError, Report};

#[derive(Debug, thiserror::Error)]
pub enum NewFilesError {
    #[error("{} already exists", path.display())]
    Exists { path: PathBuf },
    #[error(transparent)]
    Write(#[from] FileError),
}

impl Report for NewFilesError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Exists { .. } => ErrorKind::Input,
            Self::Write(error) => error.kind(),
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::Exists { .. } => vec!["pass --force to replace it".to_owned()],
            Self::Write(error) => error.hints(),
        }
    }
}

/// Writes all files, given by name and text, or none if one exists and may not be replaced.
pub fn write_new_files(directory: &Path, files: &[(&str, &str)], replace: bool) -> Result<(), NewFilesError> {
    let paths = || files.iter().map(|(name, text)| (directory.join(name), text));
    let exists = |path: &Path| fs::symlink_metadata(path).is_ok();
    if let Some((path, _)) = paths().find(|(path, _)| !replace && exists(path)) {
        return Err(NewFilesError::Exists { path });
    }
    fs::create_dir_all(directory).map_err(FileError::at("create directory", directory))?;
    for (path, text) in paths() {
        write_atomically(&path, text.as_bytes()).map_err(FileError::at("write", &path))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn either_all_files_are_written_or_none() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("new/out");
        write_new_files(&target, &[("a", "1")], false).unwrap();
        let error = write_new_files(&target, &[("b", "2"), ("a", "2")], false).unwrap_err();
        assert!(error.to_string().ends_with("a already exists"), "{error}");
        assert!(!target.join("b").exists());
        write_new_files(&target, &[("b", "2"), ("a", "2")], true).unwrap();
        assert_eq!(fs::read_to_string(target.join("a")).unwrap(), "2");
    }
}
