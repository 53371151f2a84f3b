//! Example projects inside the program, so that an installed cudock can be tried without its sources.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;

use cudock_base::FileError;

/// An example project.
#[derive(Debug)]
pub struct Example {
    pub name: &'static str,
    files: &'static [(&'static str, &'static [u8])],
}

macro_rules! files {
    ($directory:literal: $($name:literal)*) => {
        &[$(($name, include_bytes!(concat!("../../../../examples/", $directory, "/", $name)))),*]
    };
}

pub const EXAMPLES: &[Example] = &[Example {
    name: "digits",
    files: files!("digits": "README.md" "cudock.toml" "drawn.py" "model.onnx" "requirements.txt" "train.py"),
}];

impl Example {
    /// Writes its files into a directory, which is created. Existing files are not overwritten.
    pub fn write(&self, directory: &Path) -> Result<(), FileError> {
        fs::create_dir_all(directory).map_err(FileError::at("create", directory))?;
        for (name, content) in self.files {
            let path = directory.join(name);
            let file = OpenOptions::new().write(true).create_new(true).open(&path);
            file.and_then(|mut file| file.write_all(content)).map_err(FileError::at("create", &path))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_are_complete_and_overwrite_nothing() {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples");
        for example in EXAMPLES {
            let dir = tempfile::tempdir().unwrap();
            let written = dir.path().join(example.name);
            example.write(&written).unwrap();
            for entry in fs::read_dir(sources.join(example.name)).unwrap() {
                let file = entry.unwrap();
                let copy = fs::read(written.join(file.file_name())).unwrap();
                assert_eq!(copy, fs::read(file.path()).unwrap(), "{file:?}");
            }
            crate::Project::open(&written).unwrap();
            let error = example.write(&written).unwrap_err();
            assert!(error.to_string().contains("README.md"), "{error}");
        }
    }
}
