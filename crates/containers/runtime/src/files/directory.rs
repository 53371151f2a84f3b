//! Open directories of trees that others may change meanwhile.
//!
//! A container can nest directories arbitrarily. One open descriptor per level would exceed the limit of open files, and
//! paths are limited to 4,096 bytes. So those who walk a tree keep one directory of it open, and reach its parent by `..`.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Mode, OFlags, fstat, openat};

/// The identity of a directory: device and inode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DirectoryId(u64, u64);

/// Opens a directory by its name in another, without following links.
pub(crate) fn open_directory(at: impl AsFd, name: impl rustix::path::Arg) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(at, name, flags, Mode::empty())
}

pub(crate) fn directory_id(directory: impl AsFd) -> io::Result<DirectoryId> {
    let stat = fstat(directory)?;
    Ok(DirectoryId(stat.st_dev, stat.st_ino))
}

/// The parent of a directory, which must be the one that it was entered from.
pub(crate) fn parent_directory(directory: impl AsFd, entered_from: DirectoryId) -> io::Result<OwnedFd> {
    let parent = open_directory(directory, c"..")?;
    if directory_id(&parent)? != entered_from {
        return Err(io::Error::other("a directory was moved meanwhile"));
    }
    Ok(parent)
}
