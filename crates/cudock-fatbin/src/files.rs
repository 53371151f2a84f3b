//! Files, directories and wheels, many at a time.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::read::{Binary, ReadError, is_candidate, read};
use cudock_map::{MapError, map};

/// A member of a zip file is opened in memory; none that holds GPU code today is a fifth of this.
const MAX_MEMBER: u64 = 4 << 30;

/// Directories below directories, so that a link in a circle ends.
const MAX_DEPTH: usize = 64;

/// A file that was read.
#[derive(Debug, Clone)]
pub struct Inspected {
    /// Its path; inside a zip file, the zip file's path, `!/` and the member's name.
    pub path: String,
    /// Its size.
    pub size: u64,
    /// What is in it.
    pub binary: Binary,
}

/// A file that could not be read.
#[derive(Debug)]
pub struct Trouble {
    /// Its path.
    pub path: String,
    /// Why not.
    pub error: FileError,
}

/// Why a file could not be read.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It could not be opened.
    #[error(transparent)]
    Map(#[from] MapError),
    /// It could not be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It is broken, or holds no code of the kinds that are known.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// It is a broken zip file.
    #[error("broken zip file: {0}")]
    Zip(#[from] zip::result::ZipError),
    /// A member of a zip file is larger than is believable.
    #[error("{size} bytes is too large for a file in a zip file (at most {MAX_MEMBER})")]
    TooLarge {
        /// The claimed size.
        size: u64,
    },
}

/// What came of a task, by its number.
type Done<T> = (usize, Vec<T>, Vec<Trouble>);

/// Something to read: a file that was named, or found below a directory.
struct Task {
    path: PathBuf,
    named: bool,
}

/// Reads all files named, below directories named, and in zip files among them, on all cores. `look` is called with
/// each file and its bytes while they are at hand; what it returns comes back in the order of the paths.
///
/// Files below a directory that hold nothing of interest are passed over; one that was named and cannot be read is
/// trouble.
pub fn inspect<T: Send>(
    paths: &[PathBuf],
    look: impl Fn(Inspected, &[u8]) -> Option<T> + Sync,
) -> (Vec<T>, Vec<Trouble>) {
    let mut tasks = Vec::new();
    let mut trouble = Vec::new();
    for path in paths {
        if path.is_dir() {
            below(path, 0, &mut tasks);
        } else {
            tasks.push(Task { path: path.clone(), named: true });
        }
    }
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<Done<T>>> = Mutex::new(Vec::new());
    let workers =
        std::thread::available_parallelism().map_or(1, std::num::NonZero::get).min(tasks.len().max(1));
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(task) = tasks.get(index) else { break };
                    let (mut found, mut wrong) = (Vec::new(), Vec::new());
                    one(task, &look, &mut found, &mut wrong);
                    if let Ok(mut results) = results.lock() {
                        results.push((index, found, wrong));
                    }
                }
            });
        }
    });
    let mut results = results.into_inner().unwrap_or_default();
    results.sort_by_key(|(index, ..)| *index);
    let mut found = Vec::new();
    for (_, files, wrong) in results {
        found.extend(files);
        trouble.extend(wrong);
    }
    (found, trouble)
}

/// The files below a directory, sorted, so that reports do not change from run to run. Links are not followed.
fn below(directory: &Path, depth: usize, tasks: &mut Vec<Task>) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    let mut entries: Vec<_> = entries.flatten().collect();
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && depth < MAX_DEPTH => below(&entry.path(), depth + 1, tasks),
            Ok(kind) if kind.is_file() => tasks.push(Task { path: entry.path(), named: false }),
            _ => {}
        }
    }
}

fn one<T>(
    task: &Task,
    look: &impl Fn(Inspected, &[u8]) -> Option<T>,
    found: &mut Vec<T>,
    trouble: &mut Vec<Trouble>,
) {
    let path = task.path.display().to_string();
    let result = start_of(&task.path).and_then(|start| {
        if start.starts_with(b"PK\x03\x04") {
            return zip(&task.path, look, found, trouble);
        }
        if !is_candidate(&start) {
            return if task.named { Err(ReadError::Unknown.into()) } else { Ok(()) };
        }
        let bytes = map(&task.path)?;
        let binary = read(&bytes)?;
        found.extend(look(Inspected { path: path.clone(), size: bytes.len() as u64, binary }, &bytes));
        Ok(())
    });
    if let Err(error) = result
        && (task.named || matches!(error, FileError::Read(ReadError::Damaged(_)) | FileError::Zip(_)))
    {
        trouble.push(Trouble { path, error });
    }
}

fn start_of(path: &Path) -> Result<Vec<u8>, FileError> {
    let wrong = |source| MapError { path: path.to_owned(), source };
    let mut start = Vec::new();
    File::open(path).map_err(wrong)?.take(16).read_to_end(&mut start).map_err(wrong)?;
    Ok(start)
}

/// The members of a zip file, each opened in memory by itself.
fn zip<T>(
    path: &Path,
    look: &impl Fn(Inspected, &[u8]) -> Option<T>,
    found: &mut Vec<T>,
    trouble: &mut Vec<Trouble>,
) -> Result<(), FileError> {
    let bytes = map(path)?;
    let mut archive = zip::ZipArchive::new(io::Cursor::new(&bytes[..]))?;
    for index in 0..archive.len() {
        let name = archive.name_for_index(index).and_then(Result::ok).unwrap_or_default().into_owned();
        let member = format!("{}!/{name}", path.display());
        match opened(&mut archive, index) {
            Ok(None) => {}
            Ok(Some(opened)) => match read(&opened) {
                Ok(binary) => {
                    found
                        .extend(look(Inspected { path: member, size: opened.len() as u64, binary }, &opened));
                }
                Err(error) => trouble.push(Trouble { path: member, error: error.into() }),
            },
            Err(error) => trouble.push(Trouble { path: member, error }),
        }
    }
    Ok(())
}

/// A member's bytes, if its first ones say that it is worth opening.
fn opened(
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
