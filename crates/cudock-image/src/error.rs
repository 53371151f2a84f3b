use std::io;
use std::path::PathBuf;

use cudock_base::{ErrorKind, Report};
use cudock_map::MapError;

#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    #[error("cannot read {}", path.display())]
    Io { path: PathBuf, source: io::Error },
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
    #[error("{location} contains several images: {}", names.join(", "))]
    Several { location: String, names: Vec<String> },
    #[error("image {requested} not found in {location}; it contains {}", names.join(", "))]
    NoName { location: String, requested: String, names: Vec<String> },
    #[error("{location} has no image for {requested}; available: {}", available.join(", "))]
    NoPlatform { location: String, requested: String, available: Vec<String> },
}

impl ImageError {
    pub(crate) fn document(location: &str, message: impl Into<String>) -> Self {
        ImageError::Document { location: location.to_owned(), message: message.into() }
    }
}

impl Report for ImageError {
    fn kind(&self) -> ErrorKind {
        match self {
            ImageError::Registry(error) => error.kind(),
            _ => ErrorKind::Input,
        }
    }

    fn hints(&self) -> Vec<String> {
        let hint = match self {
            ImageError::Registry(error) => return error.hints(),
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
