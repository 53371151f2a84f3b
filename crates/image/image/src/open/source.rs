//! Parses image arguments of the command line.
//! A name without a transport that does not begin with `.` or `/` is a registry's, even if a file
//! has this name: a cloned repository may contain a file or directory of any name. Verbs that are
//! about files take those first, through [`local_path`].

use std::fmt;
use std::path::{Path, PathBuf};

use cudock_registry::Reference;

use crate::detect::{is_archive, is_layout};
use crate::error::ImageError;

/// Where an image is.
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

/// The path that an argument names, for verbs that take existing files before images of registries; `None` if there is none.
pub fn local_path(text: &str) -> Result<Option<&Path>, ImageError> {
    let path = Path::new(text);
    if !path.exists() {
        return Ok(None);
    }
    // A user who gives a digest relies on it, and it is not compared with anything here.
    if text.contains("@sha256:") || text.contains("@sha512:") {
        return Err(ImageError::FileWithDigest { path: path.to_owned() });
    }
    Ok(Some(path))
}

/// Whether text is a path because of how it begins.
fn is_path(text: &str) -> bool {
    text.starts_with(['.', '/'])
}

impl ImageSource {
    /// Parses a name where only images are accepted: a transport and a path, a path that begins
    /// with `.` or `/`, or a name in a registry.
    pub fn parse(name: &str) -> Result<Self, ImageError> {
        if let Some(source) = Self::with_transport(name) {
            return source;
        }
        if !is_path(name) {
            return Self::reference(name);
        }
        let path = Path::new(name);
        if !path.exists() {
            return Err(ImageError::NotFound { path: path.to_owned() });
        }
        Self::at(path).ok_or_else(|| ImageError::NotAnImage {
            subject: name.to_owned(),
            reason: "neither an OCI layout nor an archive of an image".to_owned(),
        })
    }

    /// Whether it is in files of this machine.
    pub fn is_local(&self) -> bool {
        !self.is_remote()
    }

    /// Whether it is in a registry or a daemon.
    pub fn is_remote(&self) -> bool {
        matches!(self, ImageSource::Registry(_) | ImageSource::Daemon { .. })
    }

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
        if is_layout(path) {
            return Some(ImageSource::Layout { directory: path.to_owned(), name: None });
        }
        is_archive(path).then(|| ImageSource::Archive { file: path.to_owned(), name: None })
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

impl fmt::Display for ImageSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (transport, path, name) = match self {
            ImageSource::Layout { directory, name } => ("oci", directory, name),
            ImageSource::Archive { file, name } => ("oci-archive", file, name),
            ImageSource::Daemon { name } => return write!(f, "docker-daemon:{name}"),
            ImageSource::Registry(reference) => return write!(f, "{reference}"),
        };
        write!(f, "{transport}:{}", path.display())?;
        name.as_ref().map_or(Ok(()), |name| write!(f, ":{name}"))
    }
}
