//! Walks a directory on disk as a root file system.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use cudock_base::{cores, parallel};

use crate::error::ImageError;
use crate::kind::FileKind;
use crate::layer::{Content, EntryHeader};
use crate::tree::{Special, Tree, TreeFile, TreeNode};

/// Maximum nesting of directories.
const MAX_DEPTH: usize = 256;

/// Reads a directory as if it were the root file system of a container. Other file systems mounted below it are skipped,
/// as are unreadable files and directories. Symlinks stay symlinks, as in an image; with `follow` they are replaced by
/// their targets, even outside `root`, because installers link packages into environments. `inspect` is called from
/// several threads.
pub fn walk_directory<T: Send>(
    root: &Path,
    follow: bool,
    inspect: impl Fn(&EntryHeader, &mut Content<'_, '_>) -> io::Result<Option<T>> + Sync,
) -> Result<Tree<T>, ImageError> {
    let unreadable = |source| ImageError::Io { path: root.to_owned(), source };
    let device = fs::metadata(root).map_err(unreadable)?.dev();
    fs::read_dir(root).map_err(unreadable)?;
    let mut tree = Tree::default();
    let mut files: Vec<(PathBuf, EntryHeader)> = Vec::new();
    let mut lister =
        DirectoryLister { device, follow, entered: HashSet::new(), tree: &mut tree, files: &mut files };
    lister.list(root, "", 0);
    let results = parallel(&files, cores(), |(path, header)| {
        // A file that vanished or cannot be read is of no use to a container of this user either.
        inspect(header, &mut Content::from_file(path, header.size())).ok().flatten()
    });
    for ((_, header), kept) in files.into_iter().zip(results) {
        let Some(kept) = kept else { continue };
        let kind = FileKind::File(TreeFile { size: header.size(), kept: Some(kept) });
        tree.insert(&header.path, TreeNode { mode: header.mode, kind });
    }
    Ok(tree)
}

/// Collects entries recursively, and enters each directory only once.
struct DirectoryLister<'t, T> {
    device: u64,
    follow: bool,
    entered: HashSet<(u64, u64)>,
    tree: &'t mut Tree<T>,
    files: &'t mut Vec<(PathBuf, EntryHeader)>,
}

impl<T> DirectoryLister<'_, T> {
    fn list(&mut self, directory: &Path, prefix: &str, depth: usize) {
        let Ok(entries) = fs::read_dir(directory) else { return };
        for entry in entries.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = if prefix.is_empty() { name } else { format!("{prefix}/{name}") };
            let meta = if self.follow { fs::metadata(entry.path()) } else { entry.metadata() };
            let Ok(meta) = meta.or_else(|_| entry.metadata()) else { continue };
            let mode = meta.permissions().mode() & 0o7777;
            let kind = self.kind(&entry.path(), &path, &meta, mode, depth);
            self.tree.insert(&path, TreeNode { mode, kind });
        }
    }

    fn kind(
        &mut self,
        on_disk: &Path,
        path: &str,
        meta: &fs::Metadata,
        mode: u32,
        depth: usize,
    ) -> FileKind<TreeFile<T>, Special> {
        if meta.is_dir() {
            let here = self.follow || meta.dev() == self.device;
            if here && depth < MAX_DEPTH && self.entered.insert((meta.dev(), meta.ino())) {
                self.list(on_disk, path, depth + 1);
            }
            FileKind::Directory
        } else if meta.is_symlink() {
            let target = fs::read_link(on_disk).unwrap_or_default();
            FileKind::Symlink(target.to_string_lossy().into_owned())
        } else if meta.is_file() {
            if meta.len() > 0 {
                let header = EntryHeader { path: path.to_owned(), kind: FileKind::File(meta.len()), mode };
                self.files.push((on_disk.to_owned(), header));
            }
            FileKind::File(TreeFile { size: meta.len(), kept: None })
        } else {
            FileKind::Other(Special)
        }
    }
}
