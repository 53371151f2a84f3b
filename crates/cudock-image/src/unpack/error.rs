use std::io;
use std::path::PathBuf;

use cudock_base::{ErrorKind, Report};

use crate::error::ImageError;
use crate::layer::TarError;

/// Why an image cannot be unpacked.
#[derive(Debug, thiserror::Error)]
pub enum UnpackError {
    /// The image is wrong, or did not come.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// The store cannot be read or written.
    #[error("cannot {doing} {}", path.display())]
    Store {
        /// What was tried.
        doing: &'static str,
        /// With what.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// An entry of a layer cannot be written.
    #[error("layer {number} ({digest}): cannot write `{entry}`")]
    Entry {
        /// Which layer, from 1 at the bottom.
        number: usize,
        /// The start of its digest.
        digest: String,
        /// The entry's path in the image.
        entry: String,
        /// Why not.
        source: io::Error,
    },
    /// What came out of a layer is not what the image's configuration promises.
    #[error("layer {number} ({digest}) unpacks to {got}, and the image promises {wanted}")]
    WrongContents {
        /// Which layer, from 1 at the bottom.
        number: usize,
        /// The start of its digest.
        digest: String,
        /// What the configuration says.
        wanted: String,
        /// What came out.
        got: String,
    },
    /// More layers than can be mounted over each other.
    #[error("an image of {0} layers, and overlayfs takes {most}", most = super::MAX_LAYERS)]
    TooManyLayers(usize),
    /// A layer that was to be held has been removed.
    #[error("{} is no layer of this store any more", .0.display())]
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

/// Why one layer cannot be unpacked; its number is told where it is known.
#[derive(Debug)]
pub(super) enum LayerError {
    /// The archive is wrong.
    Tar(TarError),
    /// An entry cannot be written.
    Write { entry: Vec<u8>, source: io::Error },
    /// Its bytes are not those that were promised.
    WrongContents { got: String },
    /// The store is at fault.
    Store(UnpackError),
    /// Another layer has failed, and this one is not needed any more.
    Stopped,
}

impl LayerError {
    /// A refusal, in words.
    pub(super) fn refused(message: impl Into<String>) -> Self {
        LayerError::Tar(TarError::Hostile(message.into()))
    }

    /// What to say of a failure to write this entry.
    pub(super) fn at(entry: &[u8]) -> impl FnOnce(io::Error) -> Self {
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

/// A name for people: no control characters, and not without end.
pub(super) fn shown(name: &[u8]) -> String {
    let text = String::from_utf8_lossy(name);
    let mut shown: String =
        text.chars().take(120).map(|letter| if letter.is_control() { '\u{fffd}' } else { letter }).collect();
    if text.chars().nth(120).is_some() {
        shown.push('…');
    }
    shown
}
