use std::io;
use std::path::PathBuf;

use cudock_base::{ErrorKind, Report};
use cudock_map::MapError;

/// An error while opening or walking an image.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// An I/O error on a file.
    #[error("cannot read {}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        source: io::Error,
    },
    /// A file cannot be memory-mapped.
    #[error(transparent)]
    Map(#[from] MapError),
    /// A registry or daemon request failed.
    #[error(transparent)]
    Registry(#[from] cudock_registry::Error),
    /// A manifest, index or configuration is invalid.
    #[error("{location}: {message}")]
    Document {
        /// The image or document.
        location: String,
        /// The problem.
        message: String,
    },
    /// A layer is invalid.
    #[error("layer {number} ({digest}): {message}")]
    Layer {
        /// The layer, counted from 1 at the bottom.
        number: usize,
        /// The start of its digest.
        digest: String,
        /// The problem.
        message: String,
    },
    /// The input is not an image.
    #[error("{subject} is not an image: {reason}")]
    NotAnImage {
        /// The input.
        subject: String,
        /// The problem.
        reason: String,
    },
    /// The layout or archive holds several images, and none was selected.
    #[error("{location} contains several images: {}", names.join(", "))]
    Several {
        /// The layout or archive.
        location: String,
        names: Vec<String>,
    },
    /// No image in the layout or archive has the requested name.
    #[error("image {requested} not found in {location}; it contains {}", names.join(", "))]
    NoName {
        /// The layout or archive.
        location: String,
        requested: String,
        names: Vec<String>,
    },
    /// The image is not available for the requested platform.
    #[error("{location} has no image for {requested}; available: {}", available.join(", "))]
    NoPlatform {
        location: String,
        /// The requested platform.
        requested: String,
        /// The platforms it is available for.
        available: Vec<String>,
    },
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
