//! Writes the generated files into the project's directory.

use std::path::Path;

use cudock_base::{NewFilesError, write_new_files};

use crate::Scaffold;

impl Scaffold {
    /// Writes all files, or none if one exists and may not be replaced.
    pub fn write(&self, directory: &Path, replace: bool) -> Result<(), NewFilesError> {
        let files: Vec<(&str, &str)> =
            self.files.iter().map(|file| (file.path, file.text.as_str())).collect();
        write_new_files(directory, &files, replace)
    }
}
