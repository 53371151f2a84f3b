//! Where layers lie, and who may touch them.
//!
//! ```text
//! layers/sha256/<diff id>/{fs,record.json}          a layer that is good above any other
//! layers/sha256/<diff id>-<chain>/{fs,record.json}  one that is good above these layers alone
//! layers/sha256/<diff id>-<chain>.partial/          being unpacked, by whoever holds its lock
//! layers/sha256/….gone/                             being removed, likewise
//! l/<short>                                         links to them, for mounts of many layers
//! ```
//!
//! Locks are `flock`s on these folders. Who unpacks or removes has one alone; who uses a layer shares it. A lock is of
//! use only if the folder is still there under its name when it has been obtained.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FlockOperation, Mode, OFlags, fchmod, flock, openat};
use rustix::io::Errno;

use super::error::UnpackError;
use super::record::Record;
use super::remove::{remove_below, remove_folder};
use super::stream::digits_of;

pub(super) const PARTIAL: &str = "partial";
const GONE: &str = "gone";
/// The folder with the files of a layer.
const FILES: &str = "fs";
const SPARE: &str = "spare";

/// The folder of all layers of one flavour.
#[derive(Debug, Clone)]
pub(super) struct Shelf {
    folder: PathBuf,
    links: PathBuf,
}

/// A layer, held so that nobody removes it.
#[derive(Debug)]
pub(super) struct Held {
    /// Its files.
    pub(super) path: PathBuf,
    pub(super) record: Record,
    /// Whose lock lasts as long as this is open.
    _lock: File,
}

impl Shelf {
    pub(super) fn open(store: &Path, flavour: &str) -> Result<Self, UnpackError> {
        let shelf = Self { folder: store.join(flavour).join("sha256"), links: store.join("l") };
        for folder in [&shelf.folder, &shelf.links] {
            // Files of images are nobody's business but ours: programs with privileges are among them.
            let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
            made.map_err(UnpackError::store("make folder", folder))?;
        }
        Ok(shelf)
    }

    /// The layer of this name, if it is complete and good.
    pub(super) fn take(&self, name: &str) -> Result<Option<Held>, UnpackError> {
        let folder = self.folder.join(name);
        let wrong = |error| UnpackError::store("lock", &folder)(error);
        loop {
            let Some(file) = open_folder(&folder).map_err(wrong)? else { return Ok(None) };
            lock(&file, FlockOperation::LockShared).map_err(wrong)?;
            if !is_still_there(&file, &folder) {
                continue;
            }
            if let Some(record) = Record::read(&folder) {
                return Ok(Some(Held { path: folder.join(FILES), record, _lock: file }));
            }
            // Not good any more: away with it, unless somebody else is at it.
            drop(file);
            if !self.discard(name)? {
                return Ok(None);
            }
        }
    }

    /// Holds a layer by the path of its files.
    pub(super) fn hold(&self, files: &Path) -> Result<Held, UnpackError> {
        let gone = || UnpackError::Gone(files.to_owned());
        let folder =
            files.parent().filter(|folder| folder.parent() == Some(&self.folder)).ok_or_else(gone)?;
        let name = folder.file_name().and_then(|name| name.to_str()).ok_or_else(gone)?;
        self.take(name)?.filter(|held| held.path == files).ok_or_else(gone)
    }

    /// Hands out an empty folder to unpack into. Where somebody else is at it, waits for them and gives none: it may
    /// be there by then, or has to be begun again.
    pub(super) fn begin(&self, name: &str, waiting: &dyn Fn()) -> Result<Option<Partial>, UnpackError> {
        let folder = self.folder.join(format!("{name}.{PARTIAL}"));
        let wrong = |error| UnpackError::store("unpack into", &folder)(error);
        match fs::DirBuilder::new().mode(0o700).create(&folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(wrong(error)),
            _ => {}
        }
        let Some(file) = open_folder(&folder).map_err(wrong)? else { return Ok(None) };
        if let Err(error) = flock(&file, FlockOperation::NonBlockingLockExclusive) {
            if error != Errno::WOULDBLOCK {
                return Err(wrong(error.into()));
            }
            waiting();
            // A shared lock is enough to see the other finish, and more might never come: whoever has unpacked a layer
            // goes on holding it, under its new name.
            lock(&file, FlockOperation::LockShared).map_err(wrong)?;
            return Ok(None);
        }
        if !is_still_there(&file, &folder) {
            return Ok(None);
        }
        // What a killed run left.
        remove_below(&file).map_err(wrong)?;
        // Neither group nor rights are inherited from where the store lies.
        fchmod(&file, Mode::RWXU).map_err(|error| wrong(error.into()))?;
        for below in [FILES, SPARE] {
            fs::DirBuilder::new().mode(0o700).create(folder.join(below)).map_err(wrong)?;
        }
        Ok(Some(Partial { shelf: self.clone(), folder, file, complete: false }))
    }

    /// Removes a layer that nobody uses; false if somebody does, or if it is not there.
    pub(super) fn discard(&self, name: &str) -> Result<bool, UnpackError> {
        let folder = self.folder.join(name);
        let wrong = |error| UnpackError::store("remove", &folder)(error);
        let Some(file) = open_folder(&folder).map_err(wrong)? else { return Ok(false) };
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() || !is_still_there(&file, &folder)
        {
            return Ok(false);
        }
        let gone = self.folder.join(format!("{name}.{GONE}"));
        remove_folder(&gone).map_err(wrong)?;
        fs::rename(&folder, &gone).map_err(wrong)?;
        let _ = fs::remove_file(self.links.join(short(name)));
        remove_folder(&gone).map_err(wrong)?;
        Ok(true)
    }

    /// The names of complete layers, and of what killed runs left.
    pub(super) fn names(&self) -> Result<(Vec<String>, Vec<String>), UnpackError> {
        let wrong = |error| UnpackError::store("list", &self.folder)(error);
        let (mut complete, mut left) = (Vec::new(), Vec::new());
        for entry in fs::read_dir(&self.folder).map_err(wrong)? {
            let Ok(name) = entry.map_err(wrong)?.file_name().into_string() else { continue };
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

    /// Removes what killed runs left; what another process is at is left alone.
    pub(super) fn sweep(&self) -> Result<(), UnpackError> {
        for name in self.names()?.1 {
            let folder = self.folder.join(name);
            let wrong = |error| UnpackError::store("remove", &folder)(error);
            let Some(file) = open_folder(&folder).map_err(wrong)? else { continue };
            if flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok()
                && is_still_there(&file, &folder)
            {
                remove_folder(&folder).map_err(wrong)?;
            }
        }
        Ok(())
    }

    pub(super) fn record(&self, name: &str) -> Option<Record> {
        Record::read(&self.folder.join(name))
    }

    pub(super) fn files(&self, name: &str) -> PathBuf {
        self.folder.join(name).join(FILES)
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The short name of a layer, below the store's folder; none where it has none.
    pub(super) fn short(&self, files: &Path) -> Option<PathBuf> {
        let name = files.parent()?.file_name()?.to_str()?;
        let link = self.links.join(short(name));
        let leads = fs::canonicalize(&link).ok()?;
        (leads == fs::canonicalize(files).ok()?).then(|| Path::new("l").join(short(name)))
    }
}

fn short(name: &str) -> String {
    digits_of(name.as_bytes()).chars().take(10).collect()
}

/// A layer being unpacked. What is not completed is removed when this goes.
pub(super) struct Partial {
    shelf: Shelf,
    folder: PathBuf,
    file: File,
    complete: bool,
}

impl Partial {
    /// Where its files go.
    pub(super) fn files(&self) -> PathBuf {
        self.folder.join(FILES)
    }

    /// Where it may put things aside.
    pub(super) fn spare(&self) -> PathBuf {
        self.folder.join(SPARE)
    }

    /// Puts the layer in its place under this name and goes on holding it. Where another was faster, it is theirs.
    pub(super) fn complete(mut self, name: &str, record: Record) -> Result<Held, UnpackError> {
        let place = self.shelf.folder.join(name);
        let wrong = |error| UnpackError::store("write", &place)(error);
        let _ = fs::remove_dir(self.spare());
        record.write(&self.folder).map_err(wrong)?;
        match fs::rename(&self.folder, &place) {
            Ok(()) => {}
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::AlreadyExists
                ) =>
            {
                let shared = self.shelf.clone();
                drop(self);
                let theirs = shared.take(name)?;
                return theirs.ok_or_else(|| UnpackError::Gone(place.clone()));
            }
            Err(error) => return Err(wrong(error)),
        }
        self.complete = true;
        let link = self.shelf.links.join(short(name));
        let _ = fs::remove_file(&link);
        // Relative, so that the store can be moved. Without it mounts name the layer itself.
        if let Some(flavour) = self.shelf.folder.parent().and_then(Path::file_name) {
            let target = Path::new("..").join(flavour).join("sha256").join(name).join(FILES);
            let _ = std::os::unix::fs::symlink(target, link);
        }
        lock(&self.file, FlockOperation::LockShared).map_err(wrong)?;
        if !is_still_there(&self.file, &place) {
            return Err(UnpackError::Gone(place));
        }
        let file = self.file.try_clone().map_err(wrong)?;
        Ok(Held { path: place.join(FILES), record, _lock: file })
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        if !self.complete && is_still_there(&self.file, &self.folder) {
            // What cannot be removed now, the next run will.
            let _ = remove_folder(&self.folder);
        }
    }
}

fn open_folder(path: &Path) -> io::Result<Option<File>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match openat(CWD, path, flags, Mode::empty()) {
        Ok(folder) => Ok(Some(File::from(folder))),
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
    let (Ok(ours), Ok(theirs)) = (file.metadata(), fs::symlink_metadata(path)) else { return false };
    (ours.dev(), ours.ino()) == (theirs.dev(), theirs.ino())
}
