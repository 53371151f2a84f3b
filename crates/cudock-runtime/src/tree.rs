//! Copies directory trees, of which either side may be hostile.
//!
//! Each entry is opened by its name in an open directory, and links are copied, never followed, on both sides. An entry is
//! opened for reading only after its inode was checked to be a regular file, so that no device of a container is opened.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Gid, Mode, OFlags, Stat, Timespec, Timestamps, Uid, fchmod, fchown, fstat,
    futimens, mkdirat, openat, readlinkat, statat, symlinkat, unlinkat,
};

/// The deepest tree; each level keeps two directories open.
const MAX_DEPTH: usize = 400;

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CopyOptions {
    /// Whether to keep owners and groups.
    pub(crate) owners: bool,
    /// Whether to keep the set-user-ID, set-group-ID and sticky bits.
    pub(crate) special_bits: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Copied {
    /// Files, links and directories.
    pub entries: u64,
    pub bytes: u64,
    /// Devices, pipes and sockets, which are skipped.
    pub skipped: u64,
}

/// A copy of trees, and what it has copied so far.
#[derive(Debug, Default)]
pub(crate) struct TreeCopy {
    options: CopyOptions,
    pub(crate) copied: Copied,
    depth: usize,
}

impl TreeCopy {
    pub(crate) fn new(options: CopyOptions) -> Self {
        Self { options, ..Self::default() }
    }

    /// Copies one entry of a directory recursively. An existing file or link is replaced.
    pub(crate) fn entry(
        &mut self,
        (from, name): (BorrowedFd<'_>, &OsStr),
        to: (BorrowedFd<'_>, &OsStr),
    ) -> io::Result<()> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        self.opened(&openat(from, name, flags, Mode::empty())?, to)
    }

    /// Copies what is behind an `O_PATH` descriptor.
    pub(crate) fn opened(
        &mut self,
        opened: &OwnedFd,
        (to, new_name): (BorrowedFd<'_>, &OsStr),
    ) -> io::Result<()> {
        let stat = fstat(opened)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => {
                match mkdirat(to, new_name, Mode::from_raw_mode(0o700)) {
                    Ok(()) | Err(rustix::io::Errno::EXIST) => {}
                    Err(error) => return Err(error.into()),
                }
                let made = open_directory(to, new_name)?;
                self.depth += 1;
                let outcome = self.contents(opened.as_fd(), made.as_fd());
                self.depth -= 1;
                outcome?;
                self.attributes(&stat, made.as_fd())?;
            }
            FileType::RegularFile => {
                remove_existing(to, new_name)?;
                let flags =
                    OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let made = openat(to, new_name, flags, Mode::from_raw_mode(0o600))?;
                // A file that grows meanwhile is copied up to its original length.
                let length = u64::try_from(stat.st_size).unwrap_or_default();
                let mut from = reopen(opened)?.take(length);
                self.copied.bytes += io::copy(&mut from, &mut File::from(made.try_clone()?))?;
                self.attributes(&stat, made.as_fd())?;
            }
            FileType::Symlink => {
                let target = readlinkat(opened, "", Vec::new())?;
                remove_existing(to, new_name)?;
                symlinkat(target, to, new_name)?;
                if self.options.owners {
                    let (user, group) = (Uid::from_raw(stat.st_uid), Gid::from_raw(stat.st_gid));
                    let flags = AtFlags::SYMLINK_NOFOLLOW;
                    rustix::fs::chownat(to, new_name, Some(user), Some(group), flags)?;
                }
            }
            _ => {
                self.copied.skipped += 1;
                return Ok(());
            }
        }
        self.copied.entries += 1;
        Ok(())
    }

    pub(crate) fn contents(&mut self, from: BorrowedFd<'_>, to: BorrowedFd<'_>) -> io::Result<()> {
        if self.depth > MAX_DEPTH {
            return Err(io::Error::other(format!("more than {MAX_DEPTH} directories inside each other")));
        }
        let listed = openat(from, ".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        let mut names = Vec::new();
        for entry in Dir::read_from(&listed)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." {
                names.push(name.to_vec());
            }
        }
        for name in names {
            use std::os::unix::ffi::OsStrExt;
            let name = OsStr::from_bytes(&name);
            match self.entry((listed.as_fd(), name), (to, name)) {
                // It was removed meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => {
                    return Err(io::Error::new(error.kind(), format!("{}: {error}", name.display())));
                }
                Ok(()) => {}
            }
        }
        Ok(())
    }

    /// Copies the mode, the times and, if requested, the owner.
    pub(crate) fn attributes(&self, stat: &Stat, to: BorrowedFd<'_>) -> io::Result<()> {
        if self.options.owners {
            fchown(to, Some(Uid::from_raw(stat.st_uid)), Some(Gid::from_raw(stat.st_gid)))?;
        }
        let mask = if self.options.special_bits { 0o7777 } else { 0o777 };
        fchmod(to, Mode::from_raw_mode(stat.st_mode & mask))?;
        let time = |seconds: i64, nanoseconds| Timespec { tv_sec: seconds, tv_nsec: nanoseconds };
        let times = Timestamps {
            last_access: time(stat.st_atime, i64::try_from(stat.st_atime_nsec).unwrap_or_default()),
            last_modification: time(stat.st_mtime, i64::try_from(stat.st_mtime_nsec).unwrap_or_default()),
        };
        Ok(futimens(to, &times)?)
    }
}

/// Opens a directory by its name in another, without following links.
pub(crate) fn open_directory(parent: BorrowedFd<'_>, name: &OsStr) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(parent, name, flags, Mode::empty())?)
}

/// Removes a file or link that is to be replaced, but no directory.
fn remove_existing(parent: BorrowedFd<'_>, name: &OsStr) -> io::Result<()> {
    match statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(rustix::io::Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
        Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Directory => {
            Err(io::Error::from(io::ErrorKind::IsADirectory))
        }
        Ok(_) => Ok(unlinkat(parent, name, AtFlags::empty())?),
    }
}

/// Opens the file behind an `O_PATH` descriptor for reading.
fn reopen(opened: &OwnedFd) -> io::Result<File> {
    let path = format!("/proc/self/fd/{}", opened.as_raw_fd());
    Ok(File::from(openat(CWD, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    use super::*;

    fn copied(from: &Path, to: &Path, name: &str) -> io::Result<Copied> {
        let (from, to) = (File::open(from)?, File::open(to)?);
        let mut copy = TreeCopy::default();
        let name = OsStr::new(name);
        copy.entry((from.as_fd(), name), (to.as_fd(), name))?;
        Ok(copy.copied)
    }

    #[test]
    fn links_are_copied_and_never_followed_on_either_side() {
        let base = tempfile::tempdir().unwrap();
        let at = |name: &str| base.path().join(name);
        for name in ["in/tree", "out/tree", "secret"] {
            fs::create_dir_all(at(name)).unwrap();
        }
        fs::write(at("secret/key"), "before").unwrap();
        fs::write(at("in/tree/file"), "text").unwrap();
        symlink(at("secret/key"), at("in/tree/link")).unwrap();
        // Left by an earlier copy, to be written through by this one.
        symlink(at("secret/key"), at("out/tree/file")).unwrap();
        copied(&at("in"), &at("out"), "tree").unwrap();
        assert_eq!(fs::read_to_string(at("secret/key")).unwrap(), "before");
        assert_eq!(fs::read_to_string(at("out/tree/file")).unwrap(), "text");
        assert_eq!(fs::read_link(at("out/tree/link")).unwrap(), at("secret/key"));

        fs::remove_dir_all(at("out/tree")).unwrap();
        symlink(at("secret"), at("out/tree")).unwrap();
        assert!(copied(&at("in"), &at("out"), "tree").is_err(), "a link is not a directory to copy into");
        assert_eq!(fs::read_dir(at("secret")).unwrap().count(), 1);
    }

    #[test]
    fn pipes_are_skipped_without_blocking() {
        let base = tempfile::tempdir().unwrap();
        let (from, to) = (base.path().join("in"), base.path().join("out"));
        fs::create_dir_all(from.join("tree")).unwrap();
        fs::create_dir_all(&to).unwrap();
        nix::unistd::mkfifo(&from.join("tree/pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        fs::write(from.join("tree/file"), "1234").unwrap();
        let done = copied(&from, &to, "tree").unwrap();
        assert_eq!(done, Copied { entries: 2, bytes: 4, skipped: 1 });
    }

    #[test]
    fn a_tree_that_is_too_deep_is_an_error_and_not_a_crash() {
        let base = tempfile::tempdir().unwrap();
        let (from, to) = (base.path().join("in"), base.path().join("out"));
        fs::create_dir_all(&to).unwrap();
        let mut deep = from.join("tree");
        for _ in 0..MAX_DEPTH + 10 {
            deep.push("d");
        }
        fs::create_dir_all(&deep).unwrap();
        let error = copied(&from, &to, "tree").unwrap_err().to_string();
        assert!(error.contains("directories inside each other"), "{error}");
    }
}
