//! Files of a container's root, reached from outside. Whoever made the image chose every link in it, so every path is
//! resolved as a process inside would resolve it: links cannot lead out.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

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

    /// Whether there is something by that name in the root itself that is not a plain folder.
    pub(crate) fn is_no_folder(&self, name: &str) -> bool {
        let found = rustix::fs::statat(self.root.as_fd(), name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW);
        found.is_ok_and(|about| {
            rustix::fs::FileType::from_raw_mode(about.st_mode) != rustix::fs::FileType::Directory
        })
    }

    /// A path with its links followed, as far as it exists: where something mounted there would really be.
    pub(crate) fn real(&self, path: &Path) -> io::Result<PathBuf> {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let root = fs::read_link(format!("/proc/self/fd/{}", self.root.as_raw_fd()))?;
        let mut missing = PathBuf::new();
        for known in path.ancestors() {
            let text = known.to_str().ok_or(io::ErrorKind::InvalidFilename)?;
            match self.resolve(text, flags, Mode::empty()) {
                Ok(found) => {
                    let there = fs::read_link(format!("/proc/self/fd/{}", found.as_raw_fd()))?;
                    let inside = there.strip_prefix(&root).map_err(|_| io::ErrorKind::PermissionDenied)?;
                    let whole = Path::new("/").join(inside);
                    return Ok(if missing.as_os_str().is_empty() { whole } else { whole.join(missing) });
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    let name = known.file_name().ok_or(io::ErrorKind::NotFound)?;
                    missing = if missing.as_os_str().is_empty() {
                        name.into()
                    } else {
                        Path::new(name).join(&missing)
                    };
                }
                Err(error) => return Err(error),
            }
        }
        Err(io::ErrorKind::NotFound.into())
    }

    /// Makes a folder and those above it, if they are not there.
    pub(crate) fn make_folder(&self, path: &Path) -> io::Result<()> {
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
