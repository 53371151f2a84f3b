//! Errors of images.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use cudock_base::{ErrorKind, FileError, Report};
use cudock_mmap::MapError;

use crate::detect::{is_archive, is_layout};

#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    #[error("cannot read {}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Map(#[from] MapError),
    #[error(transparent)]
    Registry(#[from] cudock_registry::Error),
    #[error("{location}: {message}")]
    Document { location: String, message: String },
    /// Layers are counted from 1 at the bottom, and named by the start of their digest.
    #[error("layer {number} ({digest}): {message}")]
    Layer { number: usize, digest: String, message: String },
    #[error("{subject} is not an image: {reason}")]
    NotAnImage { subject: String, reason: String },
    #[error("{} not found", path.display())]
    NotFound { path: PathBuf },
    #[error("{} is a file or directory here, but its name is that of an image with a digest", path.display())]
    FileWithDigest { path: PathBuf },
    #[error(transparent)]
    NotTheFile(NotTheFile),
    #[error("{location} contains several images: {}", names.join(", "))]
    Several { location: String, names: Vec<String> },
    #[error("image {requested} not found in {location}; it contains {}", names.join(", "))]
    NoName { location: String, requested: String, names: Vec<String> },
    #[error("{location} has no image for {requested}; available: {}", available.join(", "))]
    NoPlatform { location: String, requested: String, available: Vec<String> },
}

/// The error of a registry about a name that is also the path of an image, which could have been meant.
#[derive(Debug)]
pub struct NotTheFile {
    path: PathBuf,
    error: cudock_registry::Error,
}

impl fmt::Display for NotTheFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl std::error::Error for NotTheFile {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.error.source()
    }
}

impl ImageError {
    /// Points to the image at a path of this name, if there is one.
    pub(crate) fn with_local_file(self, name: &str) -> Self {
        match self {
            ImageError::Registry(error) if is_layout(Path::new(name)) || is_archive(Path::new(name)) => {
                ImageError::NotTheFile(NotTheFile { path: name.into(), error })
            }
            other => other,
        }
    }

    pub(crate) fn document(location: &str, message: impl Into<String>) -> Self {
        ImageError::Document { location: location.to_owned(), message: message.into() }
    }
}

impl Report for ImageError {
    fn kind(&self) -> ErrorKind {
        match self {
            ImageError::File(error) => error.kind(),
            ImageError::Registry(error) | ImageError::NotTheFile(NotTheFile { error, .. }) => error.kind(),
            _ => ErrorKind::Input,
        }
    }

    fn hints(&self) -> Vec<String> {
        let hint = match self {
            ImageError::File(error) => return error.hints(),
            ImageError::Registry(error) => return error.hints(),
            ImageError::NotTheFile(NotTheFile { path, error }) => {
                let file = format!("`./{}` names the image at that path", path.display());
                return std::iter::once(file).chain(error.hints()).collect();
            }
            ImageError::FileWithDigest { path } => Some(format!(
                "for the image of that name, type `docker://{0}`; rename the file to use it, because nothing compares it with the \
                 digest",
                path.display()
            )),
            ImageError::Several { location, names } => {
                let transport = if std::path::Path::new(location).is_dir() { "oci" } else { "oci-archive" };
                names.first().map(|name| format!("name one of them: {transport}:{location}:{name}"))
            }
            ImageError::NoPlatform { available, .. } => {
                available.first().map(|platform| format!("choose one with --platform {platform}"))
            }
            ImageError::NotAnImage { .. } => Some(
                "an image is an OCI layout (directory or tar), a docker archive, or a name such as \
                 registry.example/team/app:1.0; `rootfs:DIR` takes a directory as the root of a file system"
                    .to_owned(),
            ),
            _ => None,
        };
        hint.into_iter().collect()
    }
}
