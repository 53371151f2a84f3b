//! A folder as the root of a file system.

use std::collections::HashSet;
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
/// directories and files that may not be read. Links stay links, as in an image; with `follow` they are what they lead to,
/// wherever that is: installers link packages into environments. `look` is called from several threads.
pub fn walk_folder<T: Send>(
    root: &Path,
    follow: bool,
    look: impl Fn(&Header, &mut Content<'_, '_>) -> io::Result<Option<T>> + Sync,
) -> Result<Tree<T>, ImageError> {
    let unreadable = |source| ImageError::Io { path: root.to_owned(), source };
    let device = fs::metadata(root).map_err(unreadable)?.dev();
    fs::read_dir(root).map_err(unreadable)?;
    let mut tree = Tree::default();
    let mut files: Vec<(PathBuf, Header)> = Vec::new();
    let mut lister = Lister { device, follow, entered: HashSet::new(), tree: &mut tree, files: &mut files };
    lister.list(root, "", 0);
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::new());
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                while let Some((path, header)) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                    // A file that vanished or may not be read holds nothing for a container of this user either.
                    if let Ok(Some(kept)) = look(header, &mut Content::of_file(path, header.size))
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

/// Lists directories, each once.
struct Lister<'t, T> {
    device: u64,
    follow: bool,
    entered: HashSet<(u64, u64)>,
    tree: &'t mut Tree<T>,
    files: &'t mut Vec<(PathBuf, Header)>,
}

impl<T> Lister<'_, T> {
    fn list(&mut self, directory: &Path, prefix: &str, depth: usize) {
        let Ok(entries) = fs::read_dir(directory) else { return };
        for entry in entries.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = if prefix.is_empty() { name } else { format!("{prefix}/{name}") };
            let meta = if self.follow { fs::metadata(entry.path()) } else { entry.metadata() };
            let Ok(meta) = meta.or_else(|_| entry.metadata()) else { continue };
            let mode = meta.permissions().mode() & 0o7777;
            let kind = self.kind(&entry.path(), &path, &meta, mode, depth);
            self.tree.insert(&path, Node { mode, kind });
        }
    }

    fn kind(
        &mut self,
        on_disk: &Path,
        path: &str,
        meta: &fs::Metadata,
        mode: u32,
        depth: usize,
    ) -> NodeKind<T> {
        if meta.is_dir() {
            let here = self.follow || meta.dev() == self.device;
            if here && depth < MAX_DEPTH && self.entered.insert((meta.dev(), meta.ino())) {
                self.list(on_disk, path, depth + 1);
            }
            NodeKind::Directory
        } else if meta.is_symlink() {
            let target = fs::read_link(on_disk).unwrap_or_default();
            NodeKind::Symlink(target.to_string_lossy().into_owned())
        } else if meta.is_file() {
            if meta.len() > 0 {
                let (path, link) = (path.to_owned(), String::new());
                let header = Header { path, kind: EntryKind::File, size: meta.len(), mode, link };
                self.files.push((on_disk.to_owned(), header));
            }
            NodeKind::File { size: meta.len(), kept: None }
        } else {
            NodeKind::Special
        }
    }
}
