//! The types of files, in images and in what images are made of.

use serde::{Deserialize, Serialize};

/// The type of a file. `T` is what is known of the content of a regular file, `O` are the types that exist besides these:
/// none in an image that is planned, hard links and special files in an archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum FileKind<T, O = NoOther> {
    Directory,
    /// The target, as a program sees it.
    Symlink(String),
    File(T),
    Other(O),
}

/// No other types.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum NoOther {}

impl<T, O> FileKind<T, O> {
    pub const fn is_directory(&self) -> bool {
        matches!(self, Self::Directory)
    }

    pub const fn is_file(&self) -> bool {
        matches!(self, Self::File(_))
    }
}

impl<T> FileKind<T> {
    /// The same type with another description of the content.
    pub fn with_content<U, O>(&self, content: impl FnOnce(&T) -> U) -> FileKind<U, O> {
        match self {
            Self::Directory => FileKind::Directory,
            Self::Symlink(target) => FileKind::Symlink(target.clone()),
            Self::File(file) => FileKind::File(content(file)),
            Self::Other(other) => match *other {},
        }
    }
}
