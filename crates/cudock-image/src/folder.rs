//! A folder as the root of a file system.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::error::ImageError;
use crate::layer::{Content, EntryKind, Header};
use crate::tree::{Node, NodeKind, Tree};

/// Directories below directories.
const MAX_DEPTH: usize = 256;

/// Reads a folder as if it were the root of a file system. Other file systems mounted in it are left out, as are
/// directories and files that may not be read. `look` is called from several threads.
pub fn walk_folder<T: Send>(
    root: &Path,
    look: impl Fn(&Header, &mut Content<'_, '_>) -> io::Result<Option<T>> + Sync,
) -> Result<Tree<T>, ImageError> {
    let unreadable = |source| ImageError::Io { path: root.to_owned(), source };
    let device = fs::metadata(root).map_err(unreadable)?.dev();
    fs::read_dir(root).map_err(unreadable)?;
    let mut tree = Tree::default();
    let mut files: Vec<(PathBuf, Header)> = Vec::new();
    list(root, "", device, 0, &mut tree, &mut files);
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::new());
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                while let Some((path, header)) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                    // A file that vanished or may not be read holds nothing for a container of this user either.
                    let Ok(bytes) = cudock_map::map(path) else { continue };
                    if let Ok(Some(kept)) = look(header, &mut Content::of_bytes(&bytes))
                        && let Ok(mut results) = results.lock()
                    {
                        results.push((header.path.clone(), header.size, header.mode, kept));
                    }
                }
            });
        }
    });
    for (path, size, mode, kept) in results.into_inner().unwrap_or_default() {
        tree.insert(&path, Node { mode, kind: NodeKind::File { size, kept: Some(kept) } });
    }
    Ok(tree)
}

fn list<T>(
    directory: &Path,
    prefix: &str,
    device: u64,
    depth: usize,
    tree: &mut Tree<T>,
    files: &mut Vec<(PathBuf, Header)>,
) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if prefix.is_empty() { name } else { format!("{prefix}/{name}") };
        let Ok(meta) = entry.metadata() else { continue };
        let mode = meta.permissions().mode() & 0o7777;
        let kind = if meta.is_dir() {
            if meta.dev() == device && depth < MAX_DEPTH {
                list(&entry.path(), &path, device, depth + 1, tree, files);
            }
            NodeKind::Directory
        } else if meta.is_symlink() {
            let target = fs::read_link(entry.path()).unwrap_or_default();
            NodeKind::Symlink(target.to_string_lossy().into_owned())
        } else if meta.is_file() {
            if meta.len() > 0 {
                let header = Header {
                    path: path.clone(),
                    kind: EntryKind::File,
                    size: meta.len(),
                    mode,
                    link: String::new(),
                };
                files.push((entry.path(), header));
            }
            NodeKind::File { size: meta.len(), kept: None }
        } else {
            NodeKind::Special
        };
        tree.insert(&path, Node { mode, kind });
    }
}
