//! Copies directory trees, of which either side may be hostile.
//!
//! Each entry is opened by its name in an open directory, and links are copied, never followed, on both sides. An entry is
//! opened for reading only after its inode was checked to be a regular file, so that no device of a container is opened.
//! One directory of each side is open at a time: see [`crate::files::directory`].

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use cudock_base::text::printable;
use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Gid, Mode, OFlags, Stat, Timespec, Timestamps, Uid, fchmod, fchown, fstat,
    futimens, mkdirat, openat, readlinkat, statat, symlinkat, unlinkat,
};

use crate::files::directory::{DirectoryId, directory_id, open_directory, parent_directory};

/// How much of a file is copied between two looks at whether to go on.
const PART: u64 = 16 << 20;

/// Maximum length of a printed path.
const LONGEST_PATH: usize = 200;

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
pub(crate) struct TreeCopy<'c> {
    options: CopyOptions,
    /// Whether to stop with [`io::ErrorKind::Interrupted`].
    interrupted: &'c mut dyn FnMut() -> bool,
    pub(crate) copied: Copied,
}

/// A copy that failed at an entry of the tree.
#[derive(Debug, thiserror::Error)]
#[error("{}", printable(.entry))]
struct EntryError {
    entry: String,
    source: io::Error,
}

/// A directory of the source, and the one that it is copied to.
struct Pair {
    from: OwnedFd,
    to: OwnedFd,
}

/// A directory whose subdirectory is being copied.
struct Level {
    ids: (DirectoryId, DirectoryId),
    /// Names of the entries still to be copied.
    names: Vec<Vec<u8>>,
    /// The subdirectory.
    name: Vec<u8>,
    stat: Stat,
}

impl<'c> TreeCopy<'c> {
    pub(crate) fn new(options: CopyOptions, interrupted: &'c mut dyn FnMut() -> bool) -> Self {
        Self { options, interrupted, copied: Copied::default() }
    }

    /// Copies one entry of a directory recursively. An existing file or link is replaced.
    pub(crate) fn entry(
        &mut self,
        (from, name): (BorrowedFd<'_>, &OsStr),
        to: (BorrowedFd<'_>, &OsStr),
    ) -> io::Result<()> {
        self.opened(&open_path(from, name)?, to)
    }

    /// Copies what is behind an `O_PATH` descriptor recursively.
    pub(crate) fn opened(&mut self, opened: &OwnedFd, to: (BorrowedFd<'_>, &OsStr)) -> io::Result<()> {
        let stat = fstat(opened)?;
        if let Some(made) = self.put(opened, &stat, to)? {
            self.contents(opened.as_fd(), made.as_fd())?;
            self.finish_directory(&stat, made.as_fd())?;
        }
        Ok(())
    }

    /// Copies everything in a directory into another.
    pub(crate) fn contents(&mut self, from: BorrowedFd<'_>, to: BorrowedFd<'_>) -> io::Result<()> {
        let mut here = Pair { from: open_directory(from, c".")?, to: open_directory(to, c".")? };
        let mut names = names(&here.from)?;
        let mut above: Vec<Level> = Vec::new();
        loop {
            if (self.interrupted)() {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let Some(name) = names.pop() else {
                let Some(level) = above.pop() else { return Ok(()) };
                self.finish_directory(&level.stat, here.to.as_fd())?;
                here = here.parent(level.ids)?;
                names = level.names;
                continue;
            };
            match self.step(&here, OsStr::from_bytes(&name)) {
                Ok(None) => {}
                Ok(Some((below, stat))) => {
                    let inner = self::names(&below.from)?;
                    let ids = here.ids()?;
                    above.push(Level { ids, names: std::mem::replace(&mut names, inner), name, stat });
                    here = below;
                }
                Err(source) if source.kind() == io::ErrorKind::Interrupted => return Err(source),
                Err(source) => {
                    let entry = shown_path(above.iter().map(|level| &level.name).chain([&name]));
                    return Err(io::Error::new(source.kind(), EntryError { entry, source }));
                }
            }
        }
    }

    /// Copies one entry. A directory is only created and returned.
    fn step(&mut self, here: &Pair, name: &OsStr) -> io::Result<Option<(Pair, Stat)>> {
        let opened = match open_path(here.from.as_fd(), name) {
            // It was removed meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        let stat = fstat(&opened)?;
        let Some(to) = self.put(&opened, &stat, (here.to.as_fd(), name))? else { return Ok(None) };
        Ok(Some((Pair { from: open_directory(&opened, c".")?, to }, stat)))
    }

    /// Copies a file or a link. Creates and returns a directory, which is to be filled.
    fn put(
        &mut self,
        opened: &OwnedFd,
        stat: &Stat,
        (to, new_name): (BorrowedFd<'_>, &OsStr),
    ) -> io::Result<Option<OwnedFd>> {
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => {
                match mkdirat(to, new_name, Mode::from_raw_mode(0o700)) {
                    Ok(()) | Err(rustix::io::Errno::EXIST) => {}
                    Err(error) => return Err(error.into()),
                }
                return Ok(Some(open_directory(to, new_name)?));
            }
            FileType::RegularFile => {
                remove_existing(to, new_name)?;
                let flags =
                    OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let made = File::from(openat(to, new_name, flags, Mode::from_raw_mode(0o600))?);
                // A file that grows meanwhile is copied up to its original length.
                let length = u64::try_from(stat.st_size).unwrap_or_default();
                self.copy_bytes(reopen(opened)?.take(length), &made)?;
                self.attributes(stat, made.as_fd())?;
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
                return Ok(None);
            }
        }
        self.copied.entries += 1;
        Ok(None)
    }

    fn copy_bytes(&mut self, mut from: io::Take<File>, mut to: &File) -> io::Result<()> {
        loop {
            match io::copy(&mut from.by_ref().take(PART), &mut to)? {
                0 => return Ok(()),
                count => self.copied.bytes += count,
            }
            if (self.interrupted)() {
                return Err(io::ErrorKind::Interrupted.into());
            }
        }
    }

    fn finish_directory(&mut self, stat: &Stat, made: BorrowedFd<'_>) -> io::Result<()> {
        self.copied.entries += 1;
        self.attributes(stat, made)
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

impl Pair {
    fn ids(&self) -> io::Result<(DirectoryId, DirectoryId)> {
        Ok((directory_id(&self.from)?, directory_id(&self.to)?))
    }

    fn parent(&self, (from, to): (DirectoryId, DirectoryId)) -> io::Result<Self> {
        Ok(Self { from: parent_directory(&self.from, from)?, to: parent_directory(&self.to, to)? })
    }
}

/// The names in a directory, the last one first.
fn names(directory: &OwnedFd) -> io::Result<Vec<Vec<u8>>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            names.push(name.to_vec());
        }
    }
    names.sort_unstable_by(|a, b| b.cmp(a));
    Ok(names)
}

/// The path of these names, without its middle if it is long.
fn shown_path<'n>(names: impl Iterator<Item = &'n Vec<u8>>) -> String {
    let path: PathBuf = names.map(|name| std::ffi::OsString::from_vec(name.clone())).collect();
    let letters: Vec<char> = path.to_string_lossy().chars().collect();
    if letters.len() <= LONGEST_PATH {
        return letters.into_iter().collect();
    }
    let (first, last) = (letters.iter().take(LONGEST_PATH / 2), letters.len() - LONGEST_PATH / 2);
    first.chain(&['…']).chain(letters.iter().skip(last)).collect()
}

fn open_path(at: BorrowedFd<'_>, name: &OsStr) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(at, name, flags, Mode::empty())?)
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
    use std::process::Command;

    use cudock_testkit::process::{is_reentered, reenter_as};
    use cudock_testkit::test_name;

    use super::*;

    fn copied(from: &Path, to: &Path, name: &str) -> io::Result<Copied> {
        copied_until(from, to, name, &mut || false)
    }

    fn copied_until(
        from: &Path,
        to: &Path,
        name: &str,
        interrupted: &mut dyn FnMut() -> bool,
    ) -> io::Result<Copied> {
        let (from, to) = (File::open(from)?, File::open(to)?);
        let mut copy = TreeCopy::new(CopyOptions::default(), interrupted);
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

    /// A tree of directories inside each other, with files in them.
    fn deep_tree(top: &Path, levels: usize) {
        fs::create_dir(top).unwrap();
        let mut here = open_directory(CWD, top).unwrap();
        for level in 0..levels {
            mkdirat(&here, "a-name-of-some-length", Mode::RWXU).unwrap();
            let flags = OFlags::WRONLY | OFlags::CREATE;
            openat(&here, format!("file-{level}"), flags, Mode::RUSR).unwrap();
            here = open_directory(&here, "a-name-of-some-length").unwrap();
        }
    }

    /// Runs itself again in a process that may open few files: in this one, other tests open some as well.
    #[test]
    fn a_tree_deeper_than_descriptors_and_paths_go_is_copied() {
        let test = test_name!();
        if is_reentered(test) {
            return copies_a_deep_tree();
        }
        let mut limited = Command::new("sh");
        limited.args(["-c", "ulimit -n 20 && exec \"$@\"", "sh"]).arg(std::env::current_exe().unwrap());
        let inner = reenter_as(limited, test).output().unwrap();
        let (out, err) = (String::from_utf8_lossy(&inner.stdout), String::from_utf8_lossy(&inner.stderr));
        assert!(inner.status.success() && out.contains("1 passed"), "{out}{err}");
    }

    fn copies_a_deep_tree() {
        let base = tempfile::tempdir().unwrap();
        let (from, to) = (base.path().join("in"), base.path().join("out"));
        fs::create_dir(&from).unwrap();
        fs::create_dir(&to).unwrap();
        deep_tree(&from.join("tree"), 3000);
        assert_eq!(rustix::process::getrlimit(rustix::process::Resource::Nofile).current, Some(20));
        assert_eq!(copied(&from, &to, "tree").unwrap().entries, 6001);
        for path in [from, to] {
            crate::files::remove::remove_tree(&path).unwrap();
        }
    }

    #[test]
    fn an_error_names_the_entry_once_however_deep_it_is() {
        let base = tempfile::tempdir().unwrap();
        let at = |name: &str| base.path().join(name);
        for name in ["in/tree/a/b/taken", "out/tree/a/b"] {
            fs::create_dir_all(at(name)).unwrap();
        }
        fs::write(at("out/tree/a/b/taken"), "a file").unwrap();
        let error = copied(&at("in"), &at("out"), "tree").unwrap_err();
        assert_eq!(error.to_string(), "a/b/taken");
        let source = std::error::Error::source(&error).unwrap();
        assert!(source.to_string().starts_with("Not a directory"), "{source}");

        let long = shown_path([vec![b'x'; 150], vec![b'y'; 150]].iter());
        assert_eq!(long.chars().count(), LONGEST_PATH + 1);
        assert!(long.starts_with("xxx") && long.contains('…') && long.ends_with("yyy"), "{long}");
    }

    #[test]
    fn an_interrupted_copy_ends_between_two_entries() {
        let base = tempfile::tempdir().unwrap();
        let (from, to) = (base.path().join("in"), base.path().join("out"));
        fs::create_dir_all(from.join("tree")).unwrap();
        fs::create_dir_all(&to).unwrap();
        for number in 0..10 {
            fs::write(from.join(format!("tree/{number}")), "x").unwrap();
        }
        let mut looks = 0;
        let mut interrupted = || {
            looks += 1;
            looks > 5
        };
        let error = copied_until(&from, &to, "tree", &mut interrupted).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::Interrupted);
        assert!((1..10).contains(&fs::read_dir(to.join("tree")).unwrap().count()));
    }
}
