//! An untrusted root, accessed through a file descriptor: the kernel resolves paths inside it, so
//! no link, absolute or relative, leads out of it, even if the root changes meanwhile.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, Dir, DirEntry, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use crate::InjectError;

pub(crate) struct Inside {
    root: PathBuf,
    directory: OwnedFd,
}

impl Inside {
    pub(crate) fn open(root: &Path) -> Result<Self, InjectError> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::open(root, flags, Mode::empty());
        let directory = directory.map_err(InjectError::file("open", root))?;
        Ok(Self { root: root.to_owned(), directory })
    }

    /// Opens a path, links followed inside the root.
    pub(crate) fn resolve(&self, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        let inside = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        // The kernel reports EAGAIN if a path was renamed during the lookup, so it is repeated.
        for _ in 0..16 {
            match rustix::fs::openat2(&self.directory, path, flags | OFlags::CLOEXEC, Mode::empty(), inside) {
                Err(Errno::AGAIN) => {}
                done => return Ok(done?),
            }
        }
        Err(io::Error::from(Errno::AGAIN))
    }

    pub(crate) fn exists(&self, path: &str) -> bool {
        self.resolve(Path::new(path), OFlags::PATH).is_ok()
    }

    /// Names in a directory, sorted, at most a thousand; empty if the directory does not exist.
    pub(crate) fn names(&self, path: &str) -> Vec<String> {
        let directory = self.resolve(Path::new(path), OFlags::RDONLY | OFlags::DIRECTORY);
        let Some(entries) = directory.ok().and_then(|directory| Dir::read_from(directory).ok()) else {
            return Vec::new();
        };
        let name =
            |entry: rustix::io::Result<DirEntry>| entry.ok()?.file_name().to_str().ok().map(str::to_owned);
        let mut names: Vec<String> = entries.take(1024).filter_map(name).collect();
        names.sort();
        names
    }

    /// A plain file, opened for reading; none if there is no such file.
    pub(crate) fn file(&self, path: &str) -> Option<File> {
        // Only plain files are opened for reading: a pipe would never end.
        let found = self.resolve(Path::new(path), OFlags::PATH).ok()?;
        let plain = |fd: &OwnedFd| {
            let stat = rustix::fs::fstat(fd).ok()?;
            FileType::from_raw_mode(stat.st_mode).is_file().then_some(())
        };
        plain(&found)?;
        let file = self.resolve(Path::new(path), OFlags::RDONLY | OFlags::NONBLOCK).ok()?;
        plain(&file)?;
        Some(File::from(file))
    }

    /// A plain file's bytes, if they are no more than `most`; none if there is no such file.
    pub(crate) fn read(&self, path: &str, most: u64) -> Option<Vec<u8>> {
        let file = self.file(path)?;
        let mut bytes = Vec::new();
        let read = file.take(most + 1).read_to_end(&mut bytes).ok()? as u64;
        (read <= most).then_some(bytes)
    }

    /// Writes a complete file: to a temporary name in its directory, then renamed over an existing
    /// file or link.
    pub(crate) fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), InjectError> {
        let wrong = |source: io::Error| self.wrong("write", path, source);
        let (directory, name) = self.parent(path)?;
        let beside = beside(name);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        rustix::fs::unlinkat(&directory, &beside, AtFlags::empty()).ok();
        let file = rustix::fs::openat(&directory, &beside, flags, Mode::from_raw_mode(0o644));
        let mut file = File::from(file.map_err(|error| wrong(error.into()))?);
        let written = file.write_all(bytes).and_then(|()| {
            rustix::fs::fchmod(&file, Mode::from_raw_mode(0o644))?;
            rustix::fs::renameat(&directory, &beside, &directory, name)?;
            Ok(())
        });
        written.map_err(|error| {
            rustix::fs::unlinkat(&directory, &beside, AtFlags::empty()).ok();
            wrong(error)
        })
    }

    /// Creates a symbolic link, replacing anything but a directory.
    pub(crate) fn link(&self, path: &Path, target: &Path) -> Result<(), InjectError> {
        let (directory, name) = self.parent(path)?;
        let there = rustix::fs::readlinkat(&directory, name, Vec::new());
        if there.is_ok_and(|there| there.as_bytes() == target.as_os_str().as_encoded_bytes()) {
            return Ok(());
        }
        let beside = beside(name);
        rustix::fs::unlinkat(&directory, &beside, AtFlags::empty()).ok();
        let made = rustix::fs::symlinkat(target, &directory, &beside)
            .and_then(|()| rustix::fs::renameat(&directory, &beside, &directory, name));
        made.map_err(|error| {
            rustix::fs::unlinkat(&directory, &beside, AtFlags::empty()).ok();
            self.wrong("link", path, error.into())
        })
    }

    /// The directory of a path, created if it is missing, and the path's last name.
    fn parent<'a>(&self, path: &'a Path) -> Result<(OwnedFd, &'a OsStr), InjectError> {
        let plain = path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
        let name = path.file_name().filter(|_| plain).ok_or_else(|| {
            let why = io::Error::new(io::ErrorKind::InvalidInput, "not an absolute path without dots");
            self.wrong("make", path, why)
        })?;
        let directory = path.parent().unwrap_or(Path::new("/"));
        Ok((self.directory(directory).map_err(|error| self.wrong("make", directory, error))?, name))
    }

    fn directory(&self, path: &Path) -> io::Result<OwnedFd> {
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        match self.resolve(path, flags) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            done => return done,
        }
        let mut here = self.directory.as_fd().try_clone_to_owned()?;
        let mut walked = PathBuf::from("/");
        for part in path.components() {
            let Component::Normal(name) = part else { continue };
            walked.push(name);
            here = match self.resolve(&walked, flags) {
                Ok(found) => found,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    rustix::fs::mkdirat(&here, name, Mode::from_raw_mode(0o755))?;
                    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                    rustix::fs::openat(&here, name, flags, Mode::empty())?
                }
                Err(error) => return Err(error),
            };
        }
        Ok(here)
    }

    pub(crate) fn wrong(&self, action: &'static str, path: &Path, source: io::Error) -> InjectError {
        InjectError::Root { action, path: path.to_owned(), root: self.root.clone(), source }
    }
}

/// A unique temporary name: it contains the process's id.
fn beside(name: &OsStr) -> String {
    format!(".{}.cudock-{}", name.to_string_lossy(), std::process::id())
}
