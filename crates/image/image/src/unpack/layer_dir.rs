//! The directories of unpacked layers, and their locks.
//!
//! ```text
//! layers/sha256/<diff id>/{fs,record.json}          a layer that does not depend on others
//! layers/sha256/<diff id>-<chain>/{fs,record.json}  a layer that depends on the layers below
//! layers/sha256/<diff id>-<chain>.partial/          being unpacked by the process that holds its lock
//! layers/sha256/….gone/                             being removed, likewise
//! ```
//!
//! Each of these directories is locked with `flock`: exclusively to unpack or remove it, shared to use it. A lock is only
//! valid if the directory still exists under its name after locking.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use cudock_base::files::FileLock;
use rustix::fs::{CWD, FlockOperation, Mode, OFlags, fchmod, flock, openat};
use rustix::io::Errno;

use super::error::UnpackError;
use super::record::LayerRecord;
use super::remove::{remove_contents, remove_tree};

pub(super) const PARTIAL: &str = "partial";
const GONE: &str = "gone";
/// The directory with the files of a layer.
const FILES: &str = "fs";
const SPARE: &str = "spare";

/// The directory of all layers with the same options.
#[derive(Debug, Clone)]
pub(super) struct LayerDir {
    directory: PathBuf,
}

/// A layer with a shared lock, which cannot be removed.
#[derive(Debug)]
pub(super) struct LockedLayer {
    /// The directory of its files.
    pub(super) path: PathBuf,
    pub(super) record: LayerRecord,
    _lock: FileLock,
}

impl LayerDir {
    pub(super) fn open(store: &Path, flavor: &str) -> Result<Self, UnpackError> {
        let directory = store.join(flavor).join("sha256");
        // Private to this user: images contain setuid programs.
        let created = fs::DirBuilder::new().recursive(true).mode(0o700).create(&directory);
        created.map_err(UnpackError::store("create directory", &directory))?;
        Ok(Self { directory })
    }

    /// Locks the layer of this name, if it is complete and valid.
    pub(super) fn take(&self, name: &str) -> Result<Option<LockedLayer>, UnpackError> {
        let directory = self.directory.join(name);
        let io_error = UnpackError::store("lock", &directory);
        loop {
            let Some(file) = open_dir(&directory).map_err(io_error)? else { return Ok(None) };
            lock(&file, FlockOperation::LockShared).map_err(io_error)?;
            if !is_still_there(&file, &directory) {
                continue;
            }
            let lock = FileLock::from(file);
            if let Some(record) = LayerRecord::read(&directory) {
                return Ok(Some(LockedLayer { path: directory.join(FILES), record, _lock: lock }));
            }
            // Not valid any more: remove it, unless it is in use.
            drop(lock);
            if !self.discard(name, &|| true)? {
                return Ok(None);
            }
        }
    }

    /// Creates an empty directory to unpack into. If another process is unpacking the layer, waits for it and returns none:
    /// then the layer may exist, or the caller must try again.
    pub(super) fn begin(&self, name: &str, waiting: &dyn Fn()) -> Result<Option<PartialLayer>, UnpackError> {
        let directory = self.directory.join(format!("{name}.{PARTIAL}"));
        let io_error = UnpackError::store("unpack into", &directory);
        match fs::DirBuilder::new().mode(0o700).create(&directory) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(io_error(error)),
            _ => {}
        }
        let Some(file) = open_dir(&directory).map_err(io_error)? else { return Ok(None) };
        if let Err(error) = flock(&file, FlockOperation::NonBlockingLockExclusive) {
            if error != Errno::WOULDBLOCK {
                return Err(io_error(error.into()));
            }
            waiting();
            // A shared lock is enough to wait for the other process, and an exclusive one might never succeed: that process
            // keeps the layer locked under its final name.
            lock(&file, FlockOperation::LockShared).map_err(io_error)?;
            return Ok(None);
        }
        if !is_still_there(&file, &directory) {
            return Ok(None);
        }
        // Leftovers of a killed process.
        remove_contents(&file).map_err(io_error)?;
        // Do not inherit group or permissions from the parent directory.
        fchmod(&file, Mode::RWXU).map_err(|error| io_error(error.into()))?;
        for below in [FILES, SPARE] {
            fs::DirBuilder::new().mode(0o700).create(directory.join(below)).map_err(io_error)?;
        }
        Ok(Some(PartialLayer { layer_dir: self.clone(), directory, file, complete: false }))
    }

    /// Removes a layer; false if it is locked, does not exist, or `is_unused` is false, which is called once the layer is locked.
    pub(super) fn discard(&self, name: &str, is_unused: &dyn Fn() -> bool) -> Result<bool, UnpackError> {
        let directory = self.directory.join(name);
        let io_error = UnpackError::store("remove", &directory);
        let Some(file) = open_dir(&directory).map_err(io_error)? else { return Ok(false) };
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err()
            || !is_still_there(&file, &directory)
            || !is_unused()
        {
            return Ok(false);
        }
        let gone = self.directory.join(format!("{name}.{GONE}"));
        remove_tree(&gone).map_err(io_error)?;
        fs::rename(&directory, &gone).map_err(io_error)?;
        remove_tree(&gone).map_err(io_error)?;
        Ok(true)
    }

    /// The names of complete layers, and of leftovers of killed processes.
    pub(super) fn names(&self) -> Result<(Vec<String>, Vec<String>), UnpackError> {
        let io_error = UnpackError::store("list", &self.directory);
        let (mut complete, mut left) = (Vec::new(), Vec::new());
        for entry in fs::read_dir(&self.directory).map_err(io_error)? {
            let Ok(name) = entry.map_err(io_error)?.file_name().into_string() else { continue };
            let ending = name.rsplit_once('.').map(|(_, ending)| ending);
            match ending {
                None => complete.push(name),
                Some(PARTIAL | GONE) => left.push(name),
                Some(_) => {}
            }
        }
        complete.sort();
        Ok((complete, left))
    }

    /// Removes leftovers of killed processes. Directories in use are kept.
    pub(super) fn sweep(&self) -> Result<(), UnpackError> {
        for name in self.names()?.1 {
            let directory = self.directory.join(name);
            let io_error = UnpackError::store("remove", &directory);
            let Some(file) = open_dir(&directory).map_err(io_error)? else { continue };
            if flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok()
                && is_still_there(&file, &directory)
            {
                remove_tree(&directory).map_err(io_error)?;
            }
        }
        Ok(())
    }

    pub(super) fn record(&self, name: &str) -> Option<LayerRecord> {
        LayerRecord::read(&self.directory.join(name))
    }

    pub(super) fn files(&self, name: &str) -> PathBuf {
        self.directory.join(name).join(FILES)
    }

    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }
}

/// A layer being unpacked. Removed on drop unless completed.
pub(super) struct PartialLayer {
    layer_dir: LayerDir,
    directory: PathBuf,
    file: File,
    complete: bool,
}

impl PartialLayer {
    pub(super) fn files(&self) -> PathBuf {
        self.directory.join(FILES)
    }

    /// A directory for temporary files.
    pub(super) fn spare(&self) -> PathBuf {
        self.directory.join(SPARE)
    }

    /// Renames the layer to its final name and keeps it locked. If another process was faster, its layer is used.
    pub(super) fn complete(mut self, name: &str, record: LayerRecord) -> Result<LockedLayer, UnpackError> {
        let target = self.layer_dir.directory.join(name);
        let io_error = UnpackError::store("write", &target);
        let _ = fs::remove_dir(self.spare());
        record.write(&self.directory).map_err(io_error)?;
        match fs::rename(&self.directory, &target) {
            Ok(()) => {}
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::AlreadyExists
                ) =>
            {
                let shared = self.layer_dir.clone();
                drop(self);
                let theirs = shared.take(name)?;
                return theirs.ok_or_else(|| UnpackError::Gone(target.clone()));
            }
            Err(error) => return Err(io_error(error)),
        }
        self.complete = true;
        lock(&self.file, FlockOperation::LockShared).map_err(io_error)?;
        if !is_still_there(&self.file, &target) {
            return Err(UnpackError::Gone(target));
        }
        let file = self.file.try_clone().map_err(io_error)?;
        Ok(LockedLayer { path: target.join(FILES), record, _lock: FileLock::from(file) })
    }
}

impl Drop for PartialLayer {
    fn drop(&mut self) {
        if !self.complete && is_still_there(&self.file, &self.directory) {
            // The next run will remove what is left.
            let _ = remove_tree(&self.directory);
        }
    }
}

fn open_dir(path: &Path) -> io::Result<Option<File>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match openat(CWD, path, flags, Mode::empty()) {
        Ok(directory) => Ok(Some(File::from(directory))),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn lock(file: &File, how: FlockOperation) -> io::Result<()> {
    loop {
        match flock(file, how) {
            Err(Errno::INTR) => {}
            other => return Ok(other?),
        }
    }
}

fn is_still_there(file: &File, path: &Path) -> bool {
    let (Ok(opened), Ok(current)) = (file.metadata(), fs::symlink_metadata(path)) else { return false };
    (opened.dev(), opened.ino()) == (current.dev(), current.ino())
}
