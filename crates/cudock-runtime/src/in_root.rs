//! Files of a container's root, reached from outside. Whoever made the image chose every link in it, so every path is
//! resolved as a process inside would resolve it: links cannot lead out.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, mkdirat, openat, openat2};

/// A container's root, open.
#[derive(Debug)]
pub(crate) struct InRoot {
    root: OwnedFd,
}

/// No file we read from a root for its contents is larger.
const MAX_FILE: u64 = 4 << 20;

impl InRoot {
    pub(crate) fn open(root: &Path) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self { root: openat(CWD, root, flags, Mode::empty())? })
    }

    /// A file's text, or nothing where it is missing, no plain file, or not text.
    pub(crate) fn text(&self, path: &str) -> Option<String> {
        // Without NONBLOCK a pipe in this place would make us wait for ever.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
        let file = File::from(self.resolve(path, flags, Mode::empty()).ok()?);
        if !file.metadata().ok()?.is_file() {
            return None;
        }
        let mut text = String::new();
        file.take(MAX_FILE).read_to_string(&mut text).ok()?;
        Some(text)
    }

    /// Whether there is something by that name in the root itself that is not a plain directory.
    pub(crate) fn is_no_directory(&self, name: &str) -> bool {
        let found = rustix::fs::statat(self.root.as_fd(), name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW);
        found.is_ok_and(|about| {
            rustix::fs::FileType::from_raw_mode(about.st_mode) != rustix::fs::FileType::Directory
        })
    }

    /// Makes a directory, or an empty file, where there is nothing.
    pub(crate) fn make_place(&self, path: &Path, is_directory: bool) -> io::Result<()> {
        if self.open_place(path).is_ok() {
            return Ok(());
        }
        if is_directory {
            return self.make_directory(path);
        }
        if let Some(directory) = path.parent() {
            self.make_directory(directory)?;
        }
        let text = path.to_str().ok_or(io::ErrorKind::InvalidFilename)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
        self.resolve(text, flags, Mode::from_raw_mode(0o644)).map(|_| ())
    }

    /// Removes a link that leads nowhere, so that something can be made in its place.
    pub(crate) fn remove_dangling(&self, path: &Path) {
        let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else { return };
        if self.open_place(path).is_ok() {
            return;
        }
        let Ok(directory) = self.open_place(directory) else { return };
        let about = rustix::fs::statat(&directory, name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW);
        let is_link = |mode| rustix::fs::FileType::from_raw_mode(mode) == rustix::fs::FileType::Symlink;
        if about.is_ok_and(|about| is_link(about.st_mode)) {
            // Where that fails, making the place says why.
            let _ = rustix::fs::unlinkat(&directory, name, rustix::fs::AtFlags::empty());
        }
    }

    /// A handle to whatever is at a path.
    pub(crate) fn open_place(&self, path: &Path) -> io::Result<OwnedFd> {
        let text = path.to_str().ok_or(io::ErrorKind::InvalidFilename)?;
        self.resolve(text, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
    }

    /// Makes a directory and those above it, if they are not there.
    pub(crate) fn make_directory(&self, path: &Path) -> io::Result<()> {
        let mut reached = String::from("/");
        for component in path.components() {
            let Component::Normal(name) = component else { continue };
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let parent = self.resolve(&reached, flags, Mode::empty())?;
            match mkdirat(parent.as_fd(), name, Mode::from_raw_mode(0o755)) {
                Ok(()) | Err(rustix::io::Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
            let name = name.to_str().ok_or(io::ErrorKind::InvalidFilename)?;
            reached = format!("{}/{name}", reached.trim_end_matches('/'));
        }
        Ok(())
    }

    fn resolve(&self, path: &str, flags: OFlags, mode: Mode) -> io::Result<OwnedFd> {
        let inside = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        Ok(openat2(self.root.as_fd(), path, flags, mode, inside)?)
    }
}
