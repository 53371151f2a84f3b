//! A folder that nothing leads out of: every file operation of unpacking is relative to a handle made here.

use std::io;
use std::path::Path;

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, Stat, openat, openat2, readlinkat, statat,
};
use rustix::io::Errno;

/// Opens by name only: nothing of what is there is read or started.
const NAME_ONLY: OFlags =
    OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// Opens a folder so that it can be listed and its attributes changed.
const WHOLE: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// The root of a tree of files.
#[derive(Debug)]
pub(super) struct Beneath {
    root: OwnedFd,
    /// Whether to walk part by part, as where the kernel has no `openat2`.
    walks: bool,
}

impl Beneath {
    /// The tree below this folder. Links on the way to the folder itself are followed; it is the caller's.
    pub(super) fn open(folder: &Path) -> io::Result<Self> {
        let root = openat(CWD, folder, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Self { root, walks: false })
    }

    /// The root itself.
    pub(super) fn root(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }

    /// A handle for what is done to the entries of a folder. The path has no links in it, or it is an error.
    pub(super) fn folder(&self, path: &[u8]) -> io::Result<OwnedFd> {
        self.open_folder(path, NAME_ONLY)
    }

    /// A handle for what is done to a folder itself.
    pub(super) fn whole_folder(&self, path: &[u8]) -> io::Result<OwnedFd> {
        self.open_folder(path, WHOLE)
    }

    fn open_folder(&self, path: &[u8], flags: OFlags) -> io::Result<OwnedFd> {
        let path = if path.is_empty() { b"." } else { path };
        if !self.walks {
            let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
            loop {
                match openat2(&self.root, path, flags, Mode::empty(), resolve) {
                    Err(Errno::INTR | Errno::AGAIN) => {}
                    // Old kernels lack the call, and filters of old container engines forbid it.
                    Err(Errno::NOSYS | Errno::PERM) => break,
                    opened => return Ok(opened?),
                }
            }
        }
        self.walk(path, flags)
    }

    /// Part by part, each without following a link.
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

/// What lies under a name in a folder, links not followed; none if nothing does.
pub(super) fn entry(folder: impl AsFd, name: &[u8]) -> io::Result<Option<Stat>> {
    match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(stat)),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// What kind of thing it is.
pub(super) fn kind(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

/// Whether it is overlayfs's mark for a removed name.
pub(super) fn is_whiteout(stat: &Stat) -> bool {
    kind(stat) == FileType::CharacterDevice && stat.st_rdev == 0
}

/// Where a link leads.
pub(super) fn leads_to(folder: impl AsFd, name: &[u8]) -> io::Result<Vec<u8>> {
    Ok(readlinkat(folder, name, Vec::new())?.into_bytes())
}

/// The folder of a path and its name in it.
pub(super) fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(slash) => (path.get(..slash).unwrap_or_default(), path.get(slash + 1..).unwrap_or_default()),
        None => (&[], path),
    }
}

/// The path of a name in a folder.
pub(super) fn join(folder: &[u8], name: &[u8]) -> Vec<u8> {
    if folder.is_empty() { name.to_vec() } else { [folder, name].join(&b'/') }
}

/// The folders above a path, the nearest first; the root, which is empty, last.
pub(super) fn above(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    let first = (!path.is_empty()).then(|| split(path).0);
    std::iter::successors(first, |folder| (!folder.is_empty()).then(|| split(folder).0))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn neither_way_of_opening_follows_a_link_or_leaves_the_root() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().join("root");
        std::fs::create_dir_all(root.join("a/b/c")).unwrap();
        std::fs::create_dir(scratch.path().join("outside")).unwrap();
        symlink("/", root.join("absolute")).unwrap();
        symlink("../outside", root.join("up")).unwrap();
        symlink("a", root.join("within")).unwrap();
        symlink("../../outside", root.join("a/b/up")).unwrap();
        std::fs::write(root.join("file"), "").unwrap();
        for walks in [false, true] {
            let beneath = Beneath { walks, ..Beneath::open(&root).unwrap() };
            for inside in ["", "a", "a/b", "a/b/c"] {
                assert!(beneath.folder(inside.as_bytes()).is_ok(), "{inside} {walks}");
                assert!(beneath.whole_folder(inside.as_bytes()).is_ok(), "{inside} {walks}");
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
                let error = beneath.folder(outside.as_bytes()).unwrap_err();
                let refused =
                    [Errno::LOOP, Errno::XDEV, Errno::NOTDIR].map(|errno| Some(errno.raw_os_error()));
                assert!(refused.contains(&error.raw_os_error()), "{outside} {walks}: {error}");
            }
            assert!(beneath.folder(b"file").is_err() && beneath.folder(b"a/none").is_err());
        }
    }

    #[test]
    fn folders_above_a_path_end_with_the_root() {
        let above_of = |path: &str| above(path.as_bytes()).map(<[u8]>::to_vec).collect::<Vec<_>>();
        assert_eq!(above_of("a/b/c"), [b"a/b".to_vec(), b"a".to_vec(), b"".to_vec()]);
        assert_eq!(above_of("a"), [b"".to_vec()]);
        assert!(above_of("").is_empty());
        assert_eq!((split(b"a/b"), split(b"a")), ((&b"a"[..], &b"b"[..]), (&b""[..], &b"a"[..])));
        assert_eq!((join(b"", b"x"), join(b"a/b", b"x")), (b"x".to_vec(), b"a/b/x".to_vec()));
    }
}
