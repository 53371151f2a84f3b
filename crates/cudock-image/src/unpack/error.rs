use std::io;
use std::path::PathBuf;

use cudock_base::{ErrorKind, Report};

use crate::error::ImageError;
use crate::layer::TarError;

/// An error while unpacking an image.
#[derive(Debug, thiserror::Error)]
pub enum UnpackError {
    /// The image is invalid or cannot be fetched.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// The store cannot be read or written.
    #[error("cannot {doing} {}", path.display())]
    Store {
        /// The operation, as a verb.
        doing: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    /// An entry of a layer cannot be written.
    #[error("layer {number} ({digest}): cannot write `{entry}`")]
    Entry {
        /// The layer, counted from 1 at the bottom.
        number: usize,
        /// The start of its digest.
        digest: String,
        /// The path of the entry.
        entry: String,
        source: io::Error,
    },
    /// A layer does not match its diff id.
    #[error("layer {number} ({digest}): digest mismatch: unpacks to {got}, expected {wanted}")]
    WrongContents {
        /// The layer, counted from 1 at the bottom.
        number: usize,
        /// The start of its digest.
        digest: String,
        /// The digest in the image's configuration.
        wanted: String,
        /// The computed digest.
        got: String,
    },
    /// The image has more layers than overlayfs supports.
    #[error("image has {0} layers, overlayfs supports {max}", max = super::MAX_LAYERS)]
    TooManyLayers(usize),
    /// A layer has been removed from the store.
    #[error("layer {} not found in the store", .0.display())]
    Gone(PathBuf),
}

impl Report for UnpackError {
    fn kind(&self) -> ErrorKind {
        match self {
            UnpackError::Image(error) => error.kind(),
            UnpackError::Store { .. } | UnpackError::Entry { .. } | UnpackError::Gone(_) => {
                ErrorKind::Outside
            }
            UnpackError::WrongContents { .. } | UnpackError::TooManyLayers(_) => ErrorKind::Input,
        }
    }

    fn hints(&self) -> Vec<String> {
        let hint = match self {
            UnpackError::Image(error) => return error.hints(),
            UnpackError::Store { source, .. } | UnpackError::Entry { source, .. } => match source.kind() {
                io::ErrorKind::StorageFull => {
                    "the disk is full: remove layers that no container uses, or choose another directory"
                }
                io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => {
                    "choose a directory that you can write to"
                }
                _ => return Vec::new(),
            },
            UnpackError::WrongContents { .. } => {
                "the image is damaged or was tampered with: fetch or build it again"
            }
            UnpackError::TooManyLayers(_) => "build the image with fewer layers, or squash it",
            UnpackError::Gone(_) => "unpack the image again",
        };
        vec![hint.to_owned()]
    }
}

impl UnpackError {
    pub(super) fn store(doing: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| UnpackError::Store { doing, path, source }
    }
}

/// An error while unpacking one layer.
#[derive(Debug)]
pub(super) enum LayerError {
    /// The archive is invalid.
    Tar(TarError),
    /// An entry cannot be written.
    Write { entry: Vec<u8>, source: io::Error },
    /// The contents do not match the diff id.
    WrongContents { got: String },
    /// The store cannot be read or written.
    Store(UnpackError),
    /// Another layer failed.
    Stopped,
}

impl LayerError {
    /// Rejects an archive.
    pub(super) fn rejected(message: impl Into<String>) -> Self {
        LayerError::Tar(TarError::Hostile(message.into()))
    }

    /// The error for a failure to write this entry.
    pub(super) fn write(entry: &[u8]) -> impl FnOnce(io::Error) -> Self {
        let entry = entry.to_vec();
        move |source| LayerError::Write { entry, source }
    }
}

impl From<TarError> for LayerError {
    fn from(error: TarError) -> Self {
        LayerError::Tar(error)
    }
}

impl From<UnpackError> for LayerError {
    fn from(error: UnpackError) -> Self {
        LayerError::Store(error)
    }
}

/// A path for messages: shortened, and without control characters.
pub(super) fn printable(name: &[u8]) -> String {
    let text = String::from_utf8_lossy(name);
    let mut printable: String = text
        .chars()
        .take(120)
        .map(|character| if character.is_control() { '\u{fffd}' } else { character })
        .collect();
    if text.chars().nth(120).is_some() {
        printable.push('…');
    }
    printable
}
