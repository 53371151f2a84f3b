//! Access to files of a container's root from outside. The image chooses its links, so every path is resolved as a process
//! inside would resolve it, and no link leads out.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path};

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, mkdirat, openat, openat2, statat, unlinkat,
};

#[derive(Debug)]
pub(crate) struct InRoot {
    root: OwnedFd,
}

const MAX_FILE: u64 = 4 << 20;

impl InRoot {
    pub(crate) fn open(root: &Path) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self { root: openat(CWD, root, flags, Mode::empty())? })
    }

    /// The text of a file; `None` if it is missing, not a regular file, or not UTF-8.
    pub(crate) fn text(&self, path: &str) -> Option<String> {
        // Without NONBLOCK, opening a named pipe would block.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
        let file = File::from(self.resolve(path, flags, Mode::empty()).ok()?);
        if !file.metadata().ok()?.is_file() {
            return None;
        }
        let mut text = String::new();
        file.take(MAX_FILE).read_to_string(&mut text).ok()?;
        Some(text)
    }

    /// Whether an entry of the root itself exists and is not a directory.
    pub(crate) fn is_not_directory(&self, name: &str) -> bool {
        let found = statat(self.root.as_fd(), name, AtFlags::SYMLINK_NOFOLLOW);
        found.is_ok_and(|about| FileType::from_raw_mode(about.st_mode) != FileType::Directory)
    }

    /// Creates a directory or an empty file if nothing exists there.
    pub(crate) fn create_mount_point(&self, path: &Path, is_directory: bool) -> io::Result<()> {
        if self.open_path(path).is_ok() {
            return Ok(());
        }
        if is_directory {
            return self.create_directory(path);
        }
        if let Some(directory) = path.parent() {
            self.create_directory(directory)?;
        }
        let text = path.to_str().ok_or(io::ErrorKind::InvalidFilename)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
        self.resolve(text, flags, Mode::from_raw_mode(0o644)).map(|_| ())
    }

    /// Removes a dangling link, so that something else can be created.
    pub(crate) fn remove_dangling_link(&self, path: &Path) {
        let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else { return };
        if self.open_path(path).is_ok() {
            return;
        }
        let Ok(directory) = self.open_path(directory) else { return };
        let about = statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW);
        if about.is_ok_and(|about| FileType::from_raw_mode(about.st_mode) == FileType::Symlink) {
            // If that fails, creating the mount point reports the error.
            let _ = unlinkat(&directory, name, AtFlags::empty());
        }
    }

    /// An `O_PATH` descriptor of the entry at a path.
    pub(crate) fn open_path(&self, path: &Path) -> io::Result<OwnedFd> {
        let text = path.to_str().ok_or(io::ErrorKind::InvalidFilename)?;
        self.resolve(text, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
    }

    /// Creates a directory and its parents if they do not exist.
    pub(crate) fn create_directory(&self, path: &Path) -> io::Result<()> {
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
