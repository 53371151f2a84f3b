//! Reads many files, directories and wheels in parallel.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use cudock_base::{cores, parallel};

use crate::read::{Binary, ReadError, is_candidate, read};
use cudock_mmap::{MapError, map};

/// Members of a zip file are decompressed in memory; the largest known one with GPU code is a fifth of this.
const MAX_MEMBER: u64 = 4 << 30;

/// The limit of nested directories.
const MAX_DEPTH: usize = 64;

#[derive(Debug, Clone)]
pub struct Inspected {
    /// The path; in a zip file, the path of the zip file, `!/` and the name of the member.
    pub path: String,
    pub size: u64,
    pub binary: Binary,
}

/// A file that could not be read.
#[derive(Debug)]
pub struct InspectError {
    pub path: String,
    pub error: FileError,
}

#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error(transparent)]
    Map(#[from] MapError),
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error("invalid zip file: {0}")]
    Zip(#[from] zip::result::ZipError),
    #[error("{size} bytes is too large for a member of a zip file (at most {MAX_MEMBER})")]
    TooLarge { size: u64 },
}

/// A file to read: one that was named, or found in a directory.
struct InspectTask {
    path: PathBuf,
    named: bool,
}

/// Reads all named files, files in named directories, and members of zip files, on all cores. `inspect_file` is called with
/// each file and its bytes; the results are returned in the order of the paths.
///
/// Irrelevant files in a directory are skipped; a named file that cannot be read is an error.
pub fn inspect<T: Send>(
    paths: &[PathBuf],
    inspect_file: impl Fn(Inspected, &[u8]) -> Option<T> + Sync,
) -> (Vec<T>, Vec<InspectError>) {
    let mut tasks = Vec::new();
    for path in paths {
        if path.is_dir() {
            collect_files(path, 0, &mut tasks);
        } else {
            tasks.push(InspectTask { path: path.clone(), named: true });
        }
    }
    let results = parallel(&tasks, cores(), |task| {
        let (mut found, mut invalid) = (Vec::new(), Vec::new());
        inspect_task(task, &inspect_file, &mut found, &mut invalid);
        (found, invalid)
    });
    let (found, errors): (Vec<_>, Vec<_>) = results.into_iter().unzip();
    (found.into_iter().flatten().collect(), errors.into_iter().flatten().collect())
}

/// The files in a directory, sorted so that reports are reproducible. Symlinks are not followed.
fn collect_files(directory: &Path, depth: usize, tasks: &mut Vec<InspectTask>) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    let mut entries: Vec<_> = entries.flatten().collect();
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && depth < MAX_DEPTH => collect_files(&entry.path(), depth + 1, tasks),
            Ok(kind) if kind.is_file() => tasks.push(InspectTask { path: entry.path(), named: false }),
            _ => {}
        }
    }
}

fn inspect_task<T>(
    task: &InspectTask,
    inspect_file: &impl Fn(Inspected, &[u8]) -> Option<T>,
    found: &mut Vec<T>,
    errors: &mut Vec<InspectError>,
) {
    let path = task.path.display().to_string();
    let result = read_prefix(&task.path).and_then(|start| {
        if start.starts_with(b"PK\x03\x04") {
            return zip(&task.path, inspect_file, found, errors);
        }
        if !is_candidate(&start) {
            return if task.named { Err(ReadError::Unknown.into()) } else { Ok(()) };
        }
        let bytes = map(&task.path)?;
        let inspected = Inspected { path: path.clone(), size: bytes.len() as u64, binary: read(&bytes)? };
        found.extend(inspect_file(inspected, &bytes));
        Ok(())
    });
    if let Err(error) = result
        && (task.named || matches!(error, FileError::Read(ReadError::Damaged(_)) | FileError::Zip(_)))
    {
        errors.push(InspectError { path, error });
    }
}

fn read_prefix(path: &Path) -> Result<Vec<u8>, FileError> {
    let invalid = |source| MapError { path: path.to_owned(), source };
    let mut start = Vec::new();
    File::open(path).map_err(invalid)?.take(16).read_to_end(&mut start).map_err(invalid)?;
    Ok(start)
}

/// Reads the members of a zip file, each decompressed in memory.
fn zip<T>(
    path: &Path,
    inspect_file: &impl Fn(Inspected, &[u8]) -> Option<T>,
    found: &mut Vec<T>,
    errors: &mut Vec<InspectError>,
) -> Result<(), FileError> {
    let bytes = map(path)?;
    let mut archive = zip::ZipArchive::new(io::Cursor::new(&bytes[..]))?;
    for index in 0..archive.len() {
        let name = archive.name_for_index(index).and_then(Result::ok).unwrap_or_default().into_owned();
        let member = format!("{}!/{name}", path.display());
        match decompressed(&mut archive, index) {
            Ok(None) => {}
            Ok(Some(bytes)) => match read(&bytes) {
                Ok(binary) => {
                    let inspected = Inspected { path: member, size: bytes.len() as u64, binary };
                    found.extend(inspect_file(inspected, &bytes));
                }
                Err(error) => errors.push(InspectError { path: member, error: error.into() }),
            },
            Err(error) => errors.push(InspectError { path: member, error }),
        }
    }
    Ok(())
}

/// The contents of a member, if its first bytes are relevant.
fn decompressed(
    archive: &mut zip::ZipArchive<io::Cursor<&[u8]>>,
    index: usize,
) -> Result<Option<Vec<u8>>, FileError> {
    let mut member = archive.by_index(index)?;
    let mut start = Vec::new();
    member.by_ref().take(16).read_to_end(&mut start)?;
    if !is_candidate(&start) {
        return Ok(None);
    }
    if member.size() > MAX_MEMBER {
        return Err(FileError::TooLarge { size: member.size() });
    }
    let rest = member.size();
    member.take(rest).read_to_end(&mut start)?;
    Ok(Some(start))
}
