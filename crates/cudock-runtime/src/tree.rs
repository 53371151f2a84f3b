//! Directory trees copied from one root to another, where whoever owns one of them may be hostile.
//!
//! Nothing is reached by a path below the two directories to begin with: each entry is opened by its name in the directory
//! that is open, and links are copied, never followed, on both sides. An entry is opened for its contents only after its
//! inode was seen to be a plain file, so that no device of a container is opened from outside.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Gid, Mode, OFlags, Stat, Timespec, Timestamps, Uid, fchmod, fchown, fstat,
    futimens, mkdirat, openat, readlinkat, statat, symlinkat, unlinkat,
};

/// Each level keeps two directories open.
const MOST_LEVELS: usize = 400;

/// How a tree is copied.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Options {
    /// Keep owners and groups; else the copies belong to whoever copies.
    pub(crate) owners: bool,
    /// Keep the set-user-ID, set-group-ID and sticky bits.
    pub(crate) special_bits: bool,
}

/// What was copied.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Copied {
    /// Files, links and directories.
    pub entries: u64,
    /// Bytes of files.
    pub bytes: u64,
    /// Devices, pipes and sockets, which are left out.
    pub skipped: u64,
}

/// Copies one entry of a directory, with all below it where it is a directory. A file or link in its place is replaced.
pub(crate) fn copy_entry(
    from: (BorrowedFd<'_>, &OsStr),
    to: (BorrowedFd<'_>, &OsStr),
    options: Options,
    copied: &mut Copied,
) -> io::Result<()> {
    copy(from, to, options, copied, 0)
}

/// Copies what a handle stands for, which was opened with `O_PATH`.
pub(crate) fn copy_handle(
    from: &OwnedFd,
    to: (BorrowedFd<'_>, &OsStr),
    options: Options,
    copied: &mut Copied,
) -> io::Result<()> {
    copy_seen(from, to, options, copied, 0)
}

/// Copies everything in a directory into another.
pub(crate) fn copy_contents(
    from: BorrowedFd<'_>,
    to: BorrowedFd<'_>,
    options: Options,
    copied: &mut Copied,
) -> io::Result<()> {
    contents(from, to, options, copied, 0)
}

/// Gives a copy the mode, the times and, where asked, the owner of the original.
pub(crate) fn copy_attributes(about: &Stat, to: BorrowedFd<'_>, options: Options) -> io::Result<()> {
    if options.owners {
        fchown(to, Some(Uid::from_raw(about.st_uid)), Some(Gid::from_raw(about.st_gid)))?;
    }
    let mask = if options.special_bits { 0o7777 } else { 0o777 };
    fchmod(to, Mode::from_raw_mode(about.st_mode & mask))?;
    let time = |seconds: i64, nanoseconds| Timespec { tv_sec: seconds, tv_nsec: nanoseconds };
    let times = Timestamps {
        last_access: time(about.st_atime, i64::try_from(about.st_atime_nsec).unwrap_or_default()),
        last_modification: time(about.st_mtime, i64::try_from(about.st_mtime_nsec).unwrap_or_default()),
    };
    Ok(futimens(to, &times)?)
}

fn copy(
    (from, name): (BorrowedFd<'_>, &OsStr),
    to: (BorrowedFd<'_>, &OsStr),
    options: Options,
    copied: &mut Copied,
    level: usize,
) -> io::Result<()> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    copy_seen(&openat(from, name, flags, Mode::empty())?, to, options, copied, level)
}

fn copy_seen(
    seen: &OwnedFd,
    (to, new_name): (BorrowedFd<'_>, &OsStr),
    options: Options,
    copied: &mut Copied,
    level: usize,
) -> io::Result<()> {
    let about = fstat(seen)?;
    match FileType::from_raw_mode(about.st_mode) {
        FileType::Directory => {
            match mkdirat(to, new_name, Mode::from_raw_mode(0o700)) {
                Ok(()) | Err(rustix::io::Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
            let made = open_directory(to, new_name)?;
            contents(seen.as_fd(), made.as_fd(), options, copied, level + 1)?;
            copy_attributes(&about, made.as_fd(), options)?;
        }
        FileType::RegularFile => {
            make_room(to, new_name)?;
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let made = openat(to, new_name, flags, Mode::from_raw_mode(0o600))?;
            // A file that grows while it is copied is copied as long as it was.
            let length = u64::try_from(about.st_size).unwrap_or_default();
            copied.bytes += io::copy(&mut reopen(seen)?.take(length), &mut File::from(made.try_clone()?))?;
            copy_attributes(&about, made.as_fd(), options)?;
        }
        FileType::Symlink => {
            let target = readlinkat(seen, "", Vec::new())?;
            make_room(to, new_name)?;
            symlinkat(target, to, new_name)?;
            if options.owners {
                let owner = (Some(Uid::from_raw(about.st_uid)), Some(Gid::from_raw(about.st_gid)));
                rustix::fs::chownat(to, new_name, owner.0, owner.1, AtFlags::SYMLINK_NOFOLLOW)?;
            }
        }
        _ => {
            copied.skipped += 1;
            return Ok(());
        }
    }
    copied.entries += 1;
    Ok(())
}

fn contents(
    from: BorrowedFd<'_>,
    to: BorrowedFd<'_>,
    options: Options,
    copied: &mut Copied,
    level: usize,
) -> io::Result<()> {
    if level > MOST_LEVELS {
        return Err(io::Error::other(format!("more than {MOST_LEVELS} directories inside each other")));
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
        match copy((listed.as_fd(), name), (to, name), options, copied, level) {
            // It was removed while we copied.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(io::Error::new(error.kind(), format!("{}: {error}", name.display()))),
            Ok(()) => {}
        }
    }
    Ok(())
}

/// A directory by its name in another; a link is not one.
pub(crate) fn open_directory(parent: BorrowedFd<'_>, name: &OsStr) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(parent, name, flags, Mode::empty())?)
}

/// Removes a file or link that a new one replaces. A directory is not removed.
fn make_room(parent: BorrowedFd<'_>, name: &OsStr) -> io::Result<()> {
    match statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(rustix::io::Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
        Ok(about) if FileType::from_raw_mode(about.st_mode) == FileType::Directory => {
            Err(io::Error::from(io::ErrorKind::IsADirectory))
        }
        Ok(_) => Ok(unlinkat(parent, name, AtFlags::empty())?),
    }
}

/// Opens a plain file that is known by a handle, so that it is that very file.
fn reopen(seen: &OwnedFd) -> io::Result<File> {
    let path = format!("/proc/self/fd/{}", seen.as_raw_fd());
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
        let mut copied = Copied::default();
        let name = OsStr::new(name);
        copy_entry((from.as_fd(), name), (to.as_fd(), name), Options::default(), &mut copied)?;
        Ok(copied)
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
    fn pipes_are_left_out_and_not_waited_for() {
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
        for _ in 0..MOST_LEVELS + 10 {
            deep.push("d");
        }
        fs::create_dir_all(&deep).unwrap();
        let error = copied(&from, &to, "tree").unwrap_err().to_string();
        assert!(error.contains("directories inside each other"), "{error}");
    }
}
