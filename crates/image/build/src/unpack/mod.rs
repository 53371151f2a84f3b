//! Unpacks packages, each once, into the cache.
//!
//! Names in an archive never become names on disk: contents are stored as `files/0`, `files/1`, …, and a list says which
//! path, mode and kind each has in an image. So a hostile name can at most be refused. A directory appears under its digest
//! only when it is complete.

mod deb;
pub(crate) mod error;
mod names;
mod store;
mod wheel;

use std::fs;
use std::path::{Path, PathBuf};

use cudock_base::{Digest, FileError, files};
use cudock_image::FileKind;
use serde::{Deserialize, Serialize};

pub use error::UnpackError;
pub use names::check_path;
pub use store::{Contents, Discard, Limits};

use crate::error::BuildError;
use store::DiskStore;

/// The version of the list, which changes when packages are unpacked in another way.
const LIST: &str = "list-1.json";

/// Where in an image an entry belongs. Wheels name a scheme, and the version of Python decides the directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Scheme {
    /// The root of the image.
    Root,
    /// The directory that Python imports from.
    Site,
    Scripts,
    Headers,
    Data,
}

/// An entry of an unpacked package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackedEntry {
    pub scheme: Scheme,
    /// Relative to the scheme's directory, checked.
    pub path: String,
    /// Permission bits without setuid and setgid.
    pub mode: u32,
    pub kind: FileKind<PackedContent>,
}

/// The content of a file, by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackedContent {
    pub index: u32,
    pub size: u64,
}

/// The contents of an archive, and notes about dropped entries.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackageList {
    pub entries: Vec<PackedEntry>,
    /// Entries changed or dropped by rule: device nodes, setuid bits.
    pub notes: Vec<String>,
}

/// A package in the cache.
#[derive(Debug)]
pub struct UnpackedPackage {
    pub digest: Digest,
    pub list: PackageList,
    directory: PathBuf,
}

impl UnpackedPackage {
    /// The file with a content.
    pub fn content(&self, index: u32) -> PathBuf {
        self.directory.join("files").join(index.to_string())
    }
}

/// The two kinds of packages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PackageKind {
    Wheel,
    Deb,
}

/// Lists a package and passes its contents on; the error says why it is refused. `name` is the file's name.
pub fn read_package(
    kind: PackageKind,
    name: &str,
    bytes: &[u8],
    contents: &mut dyn Contents,
) -> Result<PackageList, UnpackError> {
    match kind {
        PackageKind::Wheel => wheel::read(name, bytes, contents),
        PackageKind::Deb => deb::read(bytes, contents),
    }
}

/// Unpacks a verified archive below `cache`, unless it is there already.
pub fn unpack(
    cache: &Path,
    kind: PackageKind,
    name: &str,
    digest: &Digest,
    archive: &Path,
) -> Result<UnpackedPackage, BuildError> {
    let directory = cache.join("unpacked").join(digest.hex());
    if let Some(list) = read_list(&directory) {
        return Ok(UnpackedPackage { digest: digest.clone(), list, directory });
    }
    let bytes = cudock_mmap::map(archive).map_err(|error| FileError::at("read", archive)(error.source))?;
    // One per process: another that unpacks the same package finishes first or second, with the same result.
    let unfinished = files::temporary_path(&directory);
    remove(&unfinished)?;
    let result = fill(&unfinished, kind, name, &bytes);
    let list = match result {
        Ok(list) => list,
        Err(error) => {
            remove(&unfinished)?;
            return Err(BuildError::package(name, error));
        }
    };
    match fs::rename(&unfinished, &directory) {
        Ok(()) => {}
        // Another process was first, or an older list is there.
        Err(_) if read_list(&directory).is_some() => remove(&unfinished)?,
        Err(_) => {
            remove(&directory)?;
            fs::rename(&unfinished, &directory).map_err(FileError::at("write", &directory))?;
        }
    }
    Ok(UnpackedPackage { digest: digest.clone(), list, directory })
}

fn fill(directory: &Path, kind: PackageKind, name: &str, bytes: &[u8]) -> Result<PackageList, UnpackError> {
    let contents = directory.join("files");
    fs::create_dir_all(&contents).map_err(FileError::at("create directory", &contents))?;
    let mut store = DiskStore::new(contents, Limits::for_archive(bytes.len()));
    let list = read_package(kind, name, bytes, &mut store)?;
    let path = directory.join(LIST);
    let text = serde_json::to_vec(&list).map_err(|error| UnpackError::refused(error.to_string()))?;
    files::write_atomically(&path, &text).map_err(FileError::at("write", &path))?;
    Ok(list)
}

fn read_list(directory: &Path) -> Option<PackageList> {
    serde_json::from_slice(&fs::read(directory.join(LIST)).ok()?).ok()
}

fn remove(directory: &Path) -> Result<(), FileError> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(FileError::at("remove", directory)(error))
        }
        _ => Ok(()),
    }
}
