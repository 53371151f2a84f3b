//! Path lookup confined to a directory: every file operation of unpacking is relative to a handle opened here.

use cudock_base::bug::Parts;
use std::io;
use std::path::Path;

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, Stat, openat, openat2, readlinkat, statat,
};
use rustix::io::Errno;

/// Opens a directory without permission to read it.
const NAME_ONLY: OFlags =
    OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// Opens a directory to list it and to change its attributes.
const READABLE: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// A directory that lookups cannot escape.
#[derive(Debug)]
pub(super) struct ConfinedRoot {
    root: OwnedFd,
    /// Whether to look up components one by one, as on kernels without `openat2`.
    component_wise: bool,
}

impl ConfinedRoot {
    /// Opens a directory. Symlinks in `directory` itself are followed: it is chosen by the caller.
    pub(super) fn open(directory: &Path) -> io::Result<Self> {
        let root = openat(CWD, directory, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Self { root, component_wise: false })
    }

    pub(super) fn root(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }

    /// A handle for operations on the entries of a directory. Fails if the path contains symlinks.
    pub(super) fn dir(&self, path: &[u8]) -> io::Result<OwnedFd> {
        self.open_dir(path, NAME_ONLY)
    }

    /// A handle for operations on a directory itself.
    pub(super) fn readable_dir(&self, path: &[u8]) -> io::Result<OwnedFd> {
        self.open_dir(path, READABLE)
    }

    fn open_dir(&self, path: &[u8], flags: OFlags) -> io::Result<OwnedFd> {
        let path = if path.is_empty() { b"." } else { path };
        if !self.component_wise {
            let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
            loop {
                match openat2(&self.root, path, flags, Mode::empty(), resolve) {
                    Err(Errno::INTR | Errno::AGAIN) => {}
                    // Old kernels lack the call, and seccomp filters of old container engines deny it.
                    Err(Errno::NOSYS | Errno::PERM) => break,
                    opened => return Ok(opened?),
                }
            }
        }
        self.walk(path, flags)
    }

    /// Looks up components one by one, never following a symlink.
    fn walk(&self, path: &[u8], flags: OFlags) -> io::Result<OwnedFd> {
        let mut at = openat(&self.root, ".", NAME_ONLY, Mode::empty())?;
        let mut parts = path.split(|byte| *byte == b'/').filter(|part| !part.is_empty()).peekable();
        while let Some(part) = parts.next() {
            if part == b".." {
                return Err(Errno::XDEV.into());
            }
            let flags = if parts.peek().is_none() { flags } else { NAME_ONLY };
            at = openat(&at, part, flags, Mode::empty())?;
        }
        Ok(at)
    }
}

/// Metadata of an entry, without following symlinks; none if it does not exist.
pub(super) fn stat_entry(directory: impl AsFd, name: &[u8]) -> io::Result<Option<Stat>> {
    match statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(stat)),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

pub(super) fn file_type(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

pub(super) fn is_whiteout(stat: &Stat) -> bool {
    file_type(stat) == FileType::CharacterDevice && stat.st_rdev == 0
}

pub(super) fn link_target(directory: impl AsFd, name: &[u8]) -> io::Result<Vec<u8>> {
    Ok(readlinkat(directory, name, Vec::new())?.into_bytes())
}

pub(super) fn split_path(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(slash) => (path.part(..slash), path.part(slash + 1..)),
        None => (&[], path),
    }
}

pub(super) fn join_path(directory: &[u8], name: &[u8]) -> Vec<u8> {
    if directory.is_empty() { name.to_vec() } else { [directory, name].join(&b'/') }
}

/// The ancestors of a path, the nearest first, ending with the root, which is empty.
pub(super) fn ancestors(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    let first = (!path.is_empty()).then(|| split_path(path).0);
    std::iter::successors(first, |directory| (!directory.is_empty()).then(|| split_path(directory).0))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn no_lookup_follows_a_symlink_or_leaves_the_root() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().join("root");
        std::fs::create_dir_all(root.join("a/b/c")).unwrap();
        std::fs::create_dir(scratch.path().join("outside")).unwrap();
        symlink("/", root.join("absolute")).unwrap();
        symlink("../outside", root.join("up")).unwrap();
        symlink("a", root.join("within")).unwrap();
        symlink("../../outside", root.join("a/b/up")).unwrap();
        std::fs::write(root.join("file"), "").unwrap();
        for component_wise in [false, true] {
            let root = ConfinedRoot { component_wise, ..ConfinedRoot::open(&root).unwrap() };
            for inside in ["", "a", "a/b", "a/b/c"] {
                assert!(root.dir(inside.as_bytes()).is_ok(), "{inside} {component_wise}");
                assert!(root.readable_dir(inside.as_bytes()).is_ok(), "{inside} {component_wise}");
            }
            for outside in [
                "absolute",
                "absolute/etc",
                "up",
                "within",
                "within/b",
                "a/b/up",
                "..",
                "a/../..",
                "a/b/up/x",
            ] {
                let error = root.dir(outside.as_bytes()).unwrap_err();
                let rejected =
                    [Errno::LOOP, Errno::XDEV, Errno::NOTDIR].map(|errno| Some(errno.raw_os_error()));
                assert!(rejected.contains(&error.raw_os_error()), "{outside} {component_wise}: {error}");
            }
            assert!(root.dir(b"file").is_err() && root.dir(b"a/none").is_err());
        }
    }

    #[test]
    fn ancestors_of_a_path_end_with_the_root() {
        let ancestors_of = |path: &str| ancestors(path.as_bytes()).map(<[u8]>::to_vec).collect::<Vec<_>>();
        assert_eq!(ancestors_of("a/b/c"), [b"a/b".to_vec(), b"a".to_vec(), b"".to_vec()]);
        assert_eq!(ancestors_of("a"), [b"".to_vec()]);
        assert!(ancestors_of("").is_empty());
        assert_eq!((split_path(b"a/b"), split_path(b"a")), ((&b"a"[..], &b"b"[..]), (&b""[..], &b"a"[..])));
        assert_eq!((join_path(b"", b"x"), join_path(b"a/b", b"x")), (b"x".to_vec(), b"a/b/x".to_vec()));
    }
}
