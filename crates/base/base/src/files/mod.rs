//! Files that are written whole or not at all, read within bounds, and locked.

pub(crate) mod generated;
pub(crate) mod scratch;
pub(crate) mod stamp;

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{FlockOperation, flock, makedev};
use rustix::io::Errno;

use crate::UsageError;
use crate::report::{ErrorKind, Report};

/// An operation on a file or directory that failed.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} {}", path.display())]
pub struct FileError {
    /// The attempted action: `read`, `write`, `create directory`.
    pub action: &'static str,
    pub path: PathBuf,
    pub source: io::Error,
}

impl FileError {
    /// For `map_err`: adds the attempted action, as a verb, and its path.
    pub fn at(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        debug_assert!(!action.starts_with("cannot"), "the message begins with it");
        let path = path.to_owned();
        move |source| Self { action, path, source }
    }

    pub fn is_storage_full(&self) -> bool {
        self.source.kind() == io::ErrorKind::StorageFull
    }
}

impl Report for FileError {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Outside
    }
}

/// The largest text file that a user may name on the command line.
const MAX_TEXT: u64 = 16 << 20;

/// Reads a text file that a user named. Pipes are read, too (`-f <(command)`), but devices other than `/dev/null` are not, and
/// nothing is read without a limit.
pub fn read_text(path: &Path) -> Result<String, UsageError> {
    use std::os::unix::fs::{FileTypeExt, MetadataExt};
    let wrong =
        |why: &dyn std::fmt::Display| UsageError::new(format!("cannot read {}: {why}", path.display()));
    let metadata = path.metadata().map_err(|error| wrong(&error))?;
    let kind = metadata.file_type();
    let is_null = kind.is_char_device() && metadata.rdev() == makedev(1, 3);
    if !is_null && (kind.is_char_device() || kind.is_block_device() || kind.is_dir()) {
        return Err(wrong(&"not a regular file"));
    }
    let mut text = String::new();
    let file = File::open(path).map_err(|error| wrong(&error))?;
    file.take(MAX_TEXT + 1).read_to_string(&mut text).map_err(|error| wrong(&error))?;
    if text.len() as u64 > MAX_TEXT {
        return Err(wrong(&format!("larger than {} MiB", MAX_TEXT >> 20)));
    }
    Ok(text)
}

/// How the names of temporary files end.
const TEMPORARY: &str = ".new";

/// A path next to `path` that no other thread or process uses.
pub fn temporary_path(path: &Path) -> PathBuf {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}-{}{TEMPORARY}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed)));
    path.with_file_name(name)
}

/// Whether a name is one of [`temporary_path`]: `index.json.1234-0.new`.
fn is_temporary(name: &str) -> bool {
    let numbers = name.strip_suffix(TEMPORARY).and_then(|name| name.rsplit_once('.')?.1.split_once('-'));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    numbers.is_some_and(|(process, count)| is_number(process) && is_number(count))
}

/// Removes the temporary files of killed processes from a directory. The caller must ensure that no
/// other process writes there.
pub fn remove_leftovers(directory: &Path) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_name().to_str().is_some_and(is_temporary) {
            remove_optional(&entry.path())?;
        }
    }
    Ok(())
}

/// Removes the temporary files of a file that processes have left which were killed while they wrote it. Those of running processes
/// are locked.
pub fn remove_abandoned(path: &Path) -> io::Result<()> {
    let (Some(directory), Some(name)) = (path.parent(), path.file_name().and_then(OsStr::to_str)) else {
        return Ok(());
    };
    let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let is_its = entry.file_name().to_str().is_some_and(|found| {
            is_temporary(found) && found.strip_prefix(name).is_some_and(|rest| rest.starts_with('.'))
        });
        if is_its && File::open(entry.path()).is_ok_and(|file| file.try_lock().is_ok()) {
            remove_optional(&entry.path())?;
        }
    }
    Ok(())
}

/// Replaces a file in one step: if the process is killed or the disk is full, the old one remains.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write_durably(path, bytes, None)
}

/// Does the same without waiting for the disk: after a power cut the file may be empty.
pub fn write_unsynced(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write_beside(path, |file| file.write_all(bytes))
}

/// Replaces the content of a user's file in one step. It keeps its mode, and a link to it stays a link.
pub fn rewrite_atomically(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let path = path.canonicalize()?;
    let mode = path.metadata()?.permissions();
    write_durably(&path, bytes, Some(mode))
}

fn write_durably(path: &Path, bytes: &[u8], mode: Option<fs::Permissions>) -> io::Result<()> {
    write_beside(path, |file| {
        mode.map_or(Ok(()), |mode| file.set_permissions(mode))?;
        file.write_all(bytes)?;
        file.sync_all()
    })?;
    // The new name is durable once the directory is; some file systems cannot sync one.
    if let Some(directory) = path.parent().and_then(|directory| File::open(directory).ok()) {
        let _ = directory.sync_all();
    }
    Ok(())
}

fn write_beside(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let temporary = temporary_path(path);
    let written = File::create_new(&temporary).and_then(|mut file| {
        // For `remove_abandoned`. Some file systems have no locks.
        let _ = file.try_lock();
        write(&mut file)?;
        fs::rename(&temporary, path)
    });
    if written.is_err() {
        // The first error is the one to report.
        let _ = fs::remove_file(&temporary);
    }
    written
}

/// The text of a file, or `None` if it does not exist. A file of more than `limit` bytes is refused rather than cut.
pub fn read_optional(path: &Path, limit: u64) -> io::Result<Option<String>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    let mut text = String::new();
    file.take(limit.saturating_add(1)).read_to_string(&mut text)?;
    if u64::try_from(text.len()).is_ok_and(|length| length > limit) {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("larger than {limit} bytes")));
    }
    Ok(Some(text))
}

/// Reads the next bytes into `buffer`, and returns them; none at the end.
pub fn read_some<'b>(from: &mut impl Read, buffer: &'b mut [u8]) -> io::Result<&'b [u8]> {
    loop {
        match from.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            count => return Ok(buffer.get(..count?).unwrap_or_default()),
        }
    }
}

/// Whether a path is a file that at least one user may execute.
pub fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

/// Removes a file that may not exist.
pub fn remove_optional(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Locks a file exclusively. Calls `on_wait` before it waits for another process; closing the file unlocks it.
pub fn lock(file: &File, on_wait: &dyn Fn()) -> io::Result<()> {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => return Ok(()),
        Err(Errno::WOULDBLOCK) => on_wait(),
        // Some file systems cannot lock without waiting; any other error shows below, too.
        Err(_) => {}
    }
    Ok(rustix::io::retry_on_intr(|| flock(file, FlockOperation::LockExclusive))?)
}

/// The lock of a file that the caller has locked. A child process that is being started has a copy of the descriptor until
/// it executes its program, so closing the file alone would leave it locked for a moment.
#[derive(Debug)]
pub struct FileLock {
    file: File,
    unlocks: bool,
}

impl From<File> for FileLock {
    fn from(locked: File) -> Self {
        Self { file: locked, unlocks: true }
    }
}

impl FileLock {
    /// Does not unlock it: it stays locked as long as a copy of the descriptor, such as one that a process has inherited, is open.
    pub fn leave_to_copies(&mut self) {
        self.unlocks = false;
    }
}

impl AsFd for FileLock {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        if self.unlocks {
            let _ = self.file.unlock();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_abandoned_temporary_files_of_one_file_are_removed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("cudock.lock");
        let names = [
            "cudock.lock.12-0.new",
            "cudock.lock.13-0.new",
            "other.12-0.new",
            "cudock.lock.new",
            "cudock.lock",
        ];
        for name in names {
            fs::write(directory.path().join(name), "x").unwrap();
        }
        let written = File::open(directory.path().join(names[1])).unwrap();
        written.try_lock().unwrap();
        remove_abandoned(&path).unwrap();
        let left: Vec<&&str> = names.iter().filter(|name| directory.path().join(name).exists()).collect();
        assert_eq!(left, [&names[1], &names[2], &names[3], &names[4]]);
    }

    #[test]
    fn a_copy_of_the_descriptor_keeps_no_lock() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        let file = File::create(&path).unwrap();
        let copy = file.try_clone().unwrap();
        file.lock().unwrap();
        let other = File::open(&path).unwrap();
        let lock = FileLock::from(file);
        assert!(other.try_lock().is_err());
        drop(lock);
        other.try_lock().unwrap();
        drop(copy);
    }

    #[test]
    fn a_lock_that_is_left_to_a_copy_ends_with_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        let file = File::create(&path).unwrap();
        let copy = file.try_clone().unwrap();
        file.lock().unwrap();
        let mut lock = FileLock::from(file);
        lock.leave_to_copies();
        drop(lock);
        let other = File::open(&path).unwrap();
        assert!(other.try_lock().is_err());
        drop(copy);
        other.try_lock().unwrap();
    }

    #[test]
    fn only_temporary_files_are_leftovers() {
        let directory = tempfile::tempdir().unwrap();
        let temporary = temporary_path(&directory.path().join("index.json"));
        for name in ["index.json", "notes.new", "a.1-b.new", "1-2.new"] {
            fs::write(directory.path().join(name), "").unwrap();
        }
        fs::write(&temporary, "").unwrap();
        remove_leftovers(directory.path()).unwrap();
        assert!(!temporary.exists());
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 4);
    }

    #[test]
    fn a_file_is_replaced_and_nothing_is_left_beside_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x");
        assert_eq!(read_optional(&path, 10).unwrap(), None);
        write_atomically(&path, b"1").unwrap();
        write_unsynced(&path, b"2").unwrap();
        assert_eq!(read_optional(&path, 10).unwrap().as_deref(), Some("2"));
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
        remove_optional(&path).unwrap();
        remove_optional(&path).unwrap();
        assert_eq!(read_optional(&path, 10).unwrap(), None);
    }

    #[test]
    fn a_rewritten_file_keeps_its_mode_and_its_links() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let directory = tempfile::tempdir().unwrap();
        let (path, link) = (directory.path().join("x"), directory.path().join("link"));
        fs::write(&path, "1").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        symlink("x", &link).unwrap();
        rewrite_atomically(&link, b"2").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&path).unwrap(), b"2");
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o755);
        assert!(rewrite_atomically(&directory.path().join("absent"), b"").is_err());
    }

    #[test]
    fn a_write_that_fails_leaves_the_old_file_alone() {
        let directory = tempfile::tempdir().unwrap();
        // A directory cannot be replaced by a file.
        let path = directory.path().join("taken");
        fs::create_dir(&path).unwrap();
        assert!(write_atomically(&path, b"new").is_err());
        assert!(write_unsynced(&path, b"new").is_err());
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_file_is_read_whole_or_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        assert_eq!(read_optional(&path.join("below"), 4).unwrap(), None);
        fs::write(&path, "1234").unwrap();
        assert_eq!(read_optional(&path, 4).unwrap().as_deref(), Some("1234"));
        assert_eq!(read_optional(&path, 3).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        assert!(read_optional(directory.path(), 4).is_err());
    }

    #[test]
    fn a_second_lock_waits_for_the_first() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        let first = File::create(&path).unwrap();
        lock(&first, &|| panic!("nobody holds it")).unwrap();
        let (waiting, waited) = std::sync::mpsc::channel();
        let other = std::thread::spawn(move || {
            let second = File::open(&path).unwrap();
            lock(&second, &|| waiting.send(()).unwrap()).unwrap();
        });
        waited.recv().unwrap();
        drop(first);
        other.join().unwrap();
    }

    #[test]
    fn devices_and_directories_are_not_read_as_text() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("a.txt");
        std::fs::write(&file, "text").unwrap();
        assert_eq!(read_text(&file).unwrap(), "text");
        assert_eq!(read_text(Path::new("/dev/null")).unwrap(), "");
        for wrong in [Path::new("/dev/zero"), directory.path(), Path::new("/nowhere/a.txt")] {
            let error = read_text(wrong).unwrap_err().to_string();
            assert!(error.starts_with(&format!("cannot read {}: ", wrong.display())), "{error}");
        }
    }
}
