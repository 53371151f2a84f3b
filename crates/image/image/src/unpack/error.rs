use std::io;
use std::path::{Path, PathBuf};

use cudock_base::{ErrorKind, Report};

use crate::error::ImageError;
use crate::layer::TarError;

/// The number of layers that overlayfs supports.
pub(super) const MAX_LAYERS: usize = 500;

#[derive(Debug, thiserror::Error)]
pub enum UnpackError {
    #[error(transparent)]
    Image(#[from] ImageError),
    #[error("cannot {doing} {}", path.display())]
    Store { doing: &'static str, path: PathBuf, source: io::Error },
    #[error("layer {number} ({digest}): cannot write `{entry}`")]
    Entry { number: usize, digest: String, entry: String, source: io::Error },
    #[error("layer {number} ({digest}): digest mismatch: unpacks to {got}, expected {wanted}")]
    WrongContents { number: usize, digest: String, wanted: String, got: String },
    #[error("image has {0} layers, overlayfs supports {max}", max = MAX_LAYERS)]
    TooManyLayers(usize),
    #[error("layer {} not found in the store", .0.display())]
    Gone(PathBuf),
}

impl Report for UnpackError {
    fn kind(&self) -> ErrorKind {
        match self {
            UnpackError::Image(error) => error.kind(),
            UnpackError::WrongContents { .. } | UnpackError::TooManyLayers(_) => ErrorKind::Input,
            _ => ErrorKind::Outside,
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
    /// The error for a failed operation, named by a verb.
    pub(super) fn store<E: Into<io::Error>>(doing: &'static str, path: &Path) -> impl Fn(E) -> Self + Copy {
        move |source| UnpackError::Store { doing, path: path.to_owned(), source: source.into() }
    }
}

#[derive(Debug)]
pub(super) enum LayerError {
    Tar(TarError),
    Write {
        entry: Vec<u8>,
        source: io::Error,
    },
    WrongContents {
        got: String,
    },
    Store(UnpackError),
    /// Another layer failed.
    Stopped,
}

impl LayerError {
    pub(super) fn rejected(message: impl Into<String>) -> Self {
        LayerError::Tar(TarError::Hostile(message.into()))
    }

    /// The error for a failure to write this entry.
    pub(super) fn write<E: Into<io::Error>>(entry: &[u8]) -> impl Fn(E) -> Self + Copy {
        move |source| LayerError::Write { entry: entry.to_vec(), source: source.into() }
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
