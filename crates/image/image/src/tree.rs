//! The merged file system of an image, as a container sees it.

use std::collections::BTreeMap;
use std::ops::Bound;

use crate::kind::FileKind;

/// The number of symlinks that Linux follows in one path.
const MAX_LINKS: usize = 40;

/// A file system, keyed by path. Paths have no leading slash; the root has no entry.
#[derive(Debug, Clone)]
pub struct Tree<T> {
    nodes: BTreeMap<String, TreeNode<T>>,
}

impl<T> Default for Tree<T> {
    fn default() -> Self {
        Self { nodes: BTreeMap::new() }
    }
}

#[derive(Debug, Clone)]
pub struct TreeNode<T> {
    /// Permission bits.
    pub mode: u32,
    pub kind: FileKind<TreeFile<T>, Special>,
}

/// A regular file.
#[derive(Debug, Clone)]
pub struct TreeFile<T> {
    pub size: u64,
    /// The part of it that the walk kept.
    pub kept: Option<T>,
}

/// A device or a FIFO.
#[derive(Debug, Clone, Copy)]
pub struct Special;

/// One change that a layer makes to the layers below it.
#[derive(Debug, Clone)]
pub(crate) enum LayerChange<T> {
    Put(String, TreeNode<T>),
    Link { path: String, target: String },
    Remove(String),
    Empty(String),
}

impl<T> TreeNode<T> {
    /// The part of a file that the walk kept.
    pub fn kept(&self) -> Option<&T> {
        match &self.kind {
            FileKind::File(file) => file.kept.as_ref(),
            _ => None,
        }
    }

    pub fn size(&self) -> Option<u64> {
        match &self.kind {
            FileKind::File(file) => Some(file.size),
            _ => None,
        }
    }

    pub fn is_directory(&self) -> bool {
        self.kind.is_directory()
    }
}

impl<T> Tree<T> {
    /// The entry at a path. Symlinks are not followed.
    pub fn get(&self, path: &str) -> Option<&TreeNode<T>> {
        self.nodes.get(path.trim_matches('/'))
    }

    /// Resolves a path, following symlinks in all its components; returns the real path and the entry. Symlinks cannot lead
    /// out of the tree.
    pub fn resolve(&self, path: &str) -> Option<(String, &TreeNode<T>)> {
        let real = self.real_path(path, true)?;
        self.nodes.get_key_value(&real).map(|(path, node)| (path.clone(), node))
    }

    /// The names in a directory. Symlinks to it are followed.
    pub fn names(&self, directory: &str) -> impl Iterator<Item = &str> {
        let real = self.real_path(directory, true);
        let prefix = real.map(|real| if real.is_empty() { real } else { format!("{real}/") });
        let mut next = prefix.clone();
        std::iter::from_fn(move || {
            let prefix = prefix.as_deref()?;
            loop {
                let from = next.take()?;
                let range = (Bound::Included(from.as_str()), Bound::Unbounded);
                let (path, _) = self.nodes.range::<str, _>(range).next()?;
                let name = path.strip_prefix(prefix)?;
                let Some((child, _)) = name.split_once('/') else {
                    next = Some(format!("{path}\0"));
                    return Some(name);
                };
                // A descendant: continue after the whole subtree.
                next = Some(format!("{prefix}{child}0"));
            }
        })
    }

    /// All entries, ordered by path.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &TreeNode<T>)> {
        self.nodes.iter().map(|(path, node)| (path.as_str(), node))
    }

    /// Inserts an entry, and the directories above it if they are missing.
    pub fn insert(&mut self, path: &str, node: TreeNode<T>) {
        let path = path.trim_matches('/');
        if path.is_empty() {
            return;
        }
        if !node.is_directory() && self.nodes.get(path).is_some_and(TreeNode::is_directory) {
            self.remove_children(path);
        }
        self.ensure_directories(path);
        self.nodes.insert(path.to_owned(), node);
    }

    fn ensure_directories(&mut self, path: &str) {
        let mut rest = path;
        while let Some((parent, _)) = rest.rsplit_once('/') {
            if self.nodes.get(parent).is_some_and(TreeNode::is_directory) {
                return;
            }
            self.nodes.insert(parent.to_owned(), TreeNode { mode: 0o755, kind: FileKind::Directory });
            rest = parent;
        }
    }

    fn remove_children(&mut self, path: &str) {
        self.nodes.extract_if(format!("{path}/")..format!("{path}0"), |_, _| true).for_each(drop);
    }

    /// The real path of a path, whether or not it exists; none for a symlink loop.
    fn real_path(&self, path: &str, follow_last: bool) -> Option<String> {
        let path = path.trim_matches('/');
        // Most paths contain no symlink.
        if let Some(node) = self.nodes.get(path)
            && !matches!(node.kind, FileKind::Symlink(_))
        {
            return Some(path.to_owned());
        }
        let mut links = 0;
        let mut real = String::with_capacity(path.len());
        // The remaining components, the next one last.
        let mut parts: Vec<String> = path.rsplit('/').map(str::to_owned).collect();
        while let Some(part) = parts.pop() {
            match part.as_str() {
                "" | "." => continue,
                ".." => {
                    real.truncate(real.rfind('/').unwrap_or(0));
                    continue;
                }
                name => {
                    if !real.is_empty() {
                        real.push('/');
                    }
                    real.push_str(name);
                }
            }
            if parts.is_empty() && !follow_last {
                break;
            }
            if let Some(TreeNode { kind: FileKind::Symlink(target), .. }) = self.nodes.get(&real) {
                links += 1;
                if links > MAX_LINKS || target.len() > 4096 {
                    return None;
                }
                if target.starts_with('/') {
                    real.clear();
                } else {
                    real.truncate(real.rfind('/').unwrap_or(0));
                }
                parts.extend(target.rsplit('/').map(str::to_owned));
            }
        }
        Some(real)
    }
}

impl<T: Clone> Tree<T> {
    /// Applies a layer on top of the tree.
    ///
    /// Whiteouts only affect the layers below, whatever the order of entries, so removals come first. Paths through symlinks
    /// of lower layers go where those lead, as container engines unpack them.
    pub(crate) fn apply(&mut self, changes: Vec<LayerChange<T>>) -> Result<(), String> {
        for change in &changes {
            match change {
                LayerChange::Remove(path) => {
                    if let Some(real) = self.real_path(path, false) {
                        self.remove_children(&real);
                        self.nodes.remove(&real);
                    }
                }
                LayerChange::Empty(path) => {
                    if path.is_empty() {
                        self.nodes.clear();
                    } else if let Some(real) = self.real_path(path, true) {
                        self.remove_children(&real);
                    }
                }
                LayerChange::Put(..) | LayerChange::Link { .. } => {}
            }
        }
        // Entries of one directory are usually adjacent, so its real path is cached.
        let mut known: Option<(String, String)> = None;
        for change in changes {
            match change {
                LayerChange::Put(path, node) => self.put(&path, node, &mut known)?,
                LayerChange::Link { path, target } => {
                    let real = self.resolve_parent(&target, &mut None)?;
                    let node = self.nodes.get(&real).filter(|node| !node.is_directory());
                    let node = node.cloned().ok_or_else(|| {
                        format!("`{path}` is a hard link to `{target}`, which does not exist")
                    })?;
                    self.put(&path, node, &mut known)?;
                }
                LayerChange::Remove(_) | LayerChange::Empty(_) => {}
            }
        }
        Ok(())
    }

    fn put(
        &mut self,
        path: &str,
        node: TreeNode<T>,
        known: &mut Option<(String, String)>,
    ) -> Result<(), String> {
        let target = self.resolve_parent(path, known)?;
        // A replaced directory may have contained symlinks on the cached path.
        let may_redirect =
            !node.kind.is_file() || self.nodes.get(&target).is_some_and(|node| !node.kind.is_file());
        self.insert(&target, node);
        if may_redirect {
            *known = None;
        }
        Ok(())
    }

    fn resolve_parent(&self, path: &str, known: &mut Option<(String, String)>) -> Result<String, String> {
        let Some((parent, name)) = path.rsplit_once('/') else { return Ok(path.to_owned()) };
        if let Some((_, real)) = known.as_ref().filter(|(known, _)| known == parent) {
            return Ok(format!("{real}/{name}"));
        }
        let real =
            self.real_path(parent, true).ok_or_else(|| format!("`{path}` leads through a symlink loop"))?;
        let target = if real.is_empty() { name.to_owned() } else { format!("{real}/{name}") };
        if !real.is_empty() {
            *known = Some((parent.to_owned(), real));
        }
        Ok(target)
    }
}
