use std::io;
use std::path::PathBuf;

use cudock_base::{ErrorKind, Report};
use cudock_map::MapError;
use cudock_registry::RegistryError;

/// Why an image cannot be opened or walked.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// A file cannot be read.
    #[error("cannot read {}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A file cannot be mapped.
    #[error(transparent)]
    Map(#[from] MapError),
    /// A registry or a daemon did not give it.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// A document of the image is wrong.
    #[error("{place}: {message}")]
    Document {
        /// Which one.
        place: String,
        /// What is wrong with it.
        message: String,
    },
    /// A layer is wrong, and not believed.
    #[error("layer {number} ({digest}): {message}")]
    Layer {
        /// Which one, from 1 at the bottom.
        number: usize,
        /// The start of its digest.
        digest: String,
        /// What is wrong with it.
        message: String,
    },
    /// It is no image.
    #[error("{subject} is no image: {reason}")]
    NotAnImage {
        /// What was given.
        subject: String,
        /// Why not.
        reason: String,
    },
    /// There are several, and it was not said which.
    #[error("{place} holds several images: {}", names.join(", "))]
    Several {
        /// Where.
        place: String,
        /// What they are called.
        names: Vec<String>,
    },
    /// It has no image of that name.
    #[error("{place} has no image called {wanted}; it has {}", names.join(", "))]
    NoName {
        /// Where.
        place: String,
        /// What was asked for.
        wanted: String,
        /// What they are called.
        names: Vec<String>,
    },
    /// It has no image for that platform.
    #[error("{place} has no image for {wanted}; it has {}", found.join(", "))]
    NoPlatform {
        /// Where.
        place: String,
        /// What was asked for.
        wanted: String,
        /// What there is.
        found: Vec<String>,
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
            ImageError::Several { place, names } => {
                let transport = if std::path::Path::new(place).is_dir() { "oci" } else { "oci-archive" };
                names.first().map(|name| format!("name one of them: {transport}:{place}:{name}"))
            }
            ImageError::NoPlatform { found, .. } => {
                found.first().map(|platform| format!("choose one with --platform {platform}"))
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
