//! Parses image arguments of the command line.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use cudock_registry::Reference;

use crate::error::ImageError;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImageSource {
    /// An OCI layout directory.
    Layout {
        directory: PathBuf,
        name: Option<String>,
    },
    /// A tar file: an OCI archive, or the output of `docker save`.
    Archive {
        file: PathBuf,
        name: Option<String>,
    },
    /// A docker or podman daemon on this machine.
    Daemon {
        /// The name of the image in the daemon.
        name: String,
    },
    Registry(Reference),
}

impl ImageSource {
    /// Parses an argument with a transport, as other tools write it: `oci:`, `oci-archive:`, `docker-archive:`,
    /// `docker-daemon:`, `docker://`. None if there is no known transport.
    pub fn with_transport(text: &str) -> Option<Result<Self, ImageError>> {
        if let Some(reference) = text.strip_prefix("docker://") {
            return Some(Self::reference(reference));
        }
        let (transport, rest) = text.split_once(':')?;
        Some(Ok(match transport {
            "oci" => {
                let (directory, name) = split_name(rest);
                ImageSource::Layout { directory, name }
            }
            "oci-archive" | "docker-archive" => {
                let (file, name) = split_name(rest);
                ImageSource::Archive { file, name }
            }
            "docker-daemon" => ImageSource::Daemon { name: rest.to_owned() },
            _ => return None,
        }))
    }

    /// Detects an image at a path.
    pub fn at(path: &Path) -> Option<Self> {
        if path.is_dir() {
            let is_layout = path.join("oci-layout").is_file() || path.join("index.json").is_file();
            return is_layout.then(|| ImageSource::Layout { directory: path.to_owned(), name: None });
        }
        let mut start = Vec::new();
        File::open(path).ok()?.take(512).read_to_end(&mut start).ok()?;
        let compressed = matches!(start.as_slice(), [0x1f, 0x8b, ..] | [0x28, 0xb5, 0x2f, 0xfd, ..]);
        let is_tar = start.get(257..262) == Some(b"ustar");
        (compressed || is_tar).then(|| ImageSource::Archive { file: path.to_owned(), name: None })
    }

    /// An image in a registry.
    pub fn reference(text: &str) -> Result<Self, ImageError> {
        let reference = text.parse::<Reference>().map_err(|error| ImageError::Registry(error.into()))?;
        Ok(ImageSource::Registry(reference))
    }
}

/// Splits `DIR:NAME`, unless the whole text is an existing path.
fn split_name(text: &str) -> (PathBuf, Option<String>) {
    if Path::new(text).exists() {
        return (PathBuf::from(text), None);
    }
    match text.split_once(':') {
        Some((path, name)) if !name.is_empty() => (PathBuf::from(path), Some(name.to_owned())),
        _ => (PathBuf::from(text), None),
    }
}
