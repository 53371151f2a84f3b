//! What a word on the command line means.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use cudock_registry::Reference;

use crate::error::ImageError;

/// Where an image is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// An OCI layout in a folder, and the name of one image in it.
    Layout {
        /// The folder.
        folder: PathBuf,
        /// One of its images.
        name: Option<String>,
    },
    /// A tar file: an OCI layout, or what `docker save` writes; and the name of one image in it.
    Archive {
        /// The file.
        file: PathBuf,
        /// One of its images.
        name: Option<String>,
    },
    /// A docker or podman daemon on this machine.
    Daemon {
        /// What the daemon calls it.
        name: String,
    },
    /// A registry.
    Registry(Reference),
}

impl Source {
    /// What is written with a word before it, as other tools have it: `oci:`, `oci-archive:`, `docker-archive:`,
    /// `docker-daemon:`, `docker://`. None where there is no such word.
    pub fn with_transport(text: &str) -> Option<Result<Self, ImageError>> {
        if let Some(reference) = text.strip_prefix("docker://") {
            return Some(registry(reference));
        }
        let (transport, rest) = text.split_once(':')?;
        Some(Ok(match transport {
            "oci" => {
                let (folder, name) = named(rest);
                Source::Layout { folder, name }
            }
            "oci-archive" | "docker-archive" => {
                let (file, name) = named(rest);
                Source::Archive { file, name }
            }
            "docker-daemon" => Source::Daemon { name: rest.to_owned() },
            _ => return None,
        }))
    }

    /// What a path is, if there is an image at it.
    pub fn at(path: &Path) -> Option<Self> {
        if path.is_dir() {
            let is_layout = path.join("oci-layout").is_file() || path.join("index.json").is_file();
            return is_layout.then(|| Source::Layout { folder: path.to_owned(), name: None });
        }
        let mut start = Vec::new();
        File::open(path).ok()?.take(512).read_to_end(&mut start).ok()?;
        let compressed = matches!(start.as_slice(), [0x1f, 0x8b, ..] | [0x28, 0xb5, 0x2f, 0xfd, ..]);
        let is_tar = start.get(257..262) == Some(b"ustar");
        (compressed || is_tar).then(|| Source::Archive { file: path.to_owned(), name: None })
    }

    /// A name in a registry.
    pub fn reference(text: &str) -> Result<Self, ImageError> {
        registry(text)
    }
}

fn registry(text: &str) -> Result<Source, ImageError> {
    Ok(Source::Registry(text.parse::<Reference>().map_err(|error| ImageError::Registry(error.into()))?))
}

/// `DIR:NAME`, unless all of it is a path that exists.
fn named(text: &str) -> (PathBuf, Option<String>) {
    if Path::new(text).exists() {
        return (PathBuf::from(text), None);
    }
    match text.split_once(':') {
        Some((path, name)) if !name.is_empty() => (PathBuf::from(path), Some(name.to_owned())),
        _ => (PathBuf::from(text), None),
    }
}
