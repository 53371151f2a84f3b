//! The merged file system: what a container of the image would see.

use std::collections::BTreeMap;
use std::ops::Bound;

/// Links that lead to links, as many as Linux follows.
const MAX_LINKS: usize = 40;

/// A file system by path. Paths have no leading slash; the root has no entry.
#[derive(Debug, Clone)]
pub struct Tree<T> {
    nodes: BTreeMap<String, Node<T>>,
}

impl<T> Default for Tree<T> {
    fn default() -> Self {
        Self { nodes: BTreeMap::new() }
    }
}

/// Something with a path.
#[derive(Debug, Clone)]
pub struct Node<T> {
    /// Permission bits.
    pub mode: u32,
    /// What it is.
    pub kind: NodeKind<T>,
}

/// What a node is.
#[derive(Debug, Clone)]
pub enum NodeKind<T> {
    /// A directory.
    Directory,
    /// A plain file, and what was kept of it.
    File {
        /// Its size.
        size: u64,
        /// What was kept of it.
        kept: Option<T>,
    },
    /// A symbolic link and where it leads.
    Symlink(String),
    /// A device or a pipe.
    Special,
}

/// What a layer does to the layers below.
#[derive(Debug, Clone)]
pub(crate) enum Change<T> {
    Put(String, Node<T>),
    Link { path: String, target: String },
    Remove(String),
    Empty(String),
}

impl<T> Node<T> {
    /// What was kept of a file.
    pub fn kept(&self) -> Option<&T> {
        match &self.kind {
            NodeKind::File { kept, .. } => kept.as_ref(),
            _ => None,
        }
    }

    /// The size of a file.
    pub fn size(&self) -> Option<u64> {
        match self.kind {
            NodeKind::File { size, .. } => Some(size),
            _ => None,
        }
    }

    /// Whether it is a directory.
    pub fn is_directory(&self) -> bool {
        matches!(self.kind, NodeKind::Directory)
    }
}

impl<T> Tree<T> {
    /// The node of a path, links not followed.
    pub fn get(&self, path: &str) -> Option<&Node<T>> {
        self.nodes.get(path.trim_matches('/'))
    }

    /// Follows links, those in the middle too, and says where the path really leads. Links stay inside the tree.
    pub fn resolve(&self, path: &str) -> Option<(String, &Node<T>)> {
        let real = self.real(path, true)?;
        self.nodes.get_key_value(&real).map(|(path, node)| (path.clone(), node))
    }

    /// The names in a directory, links to it followed.
    pub fn names(&self, directory: &str) -> impl Iterator<Item = &str> {
        let real = self.real(directory, true);
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
                // Something further down: go on behind all that is in there.
                next = Some(format!("{prefix}{child}0"));
            }
        })
    }

    /// All nodes in the order of their paths.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Node<T>)> {
        self.nodes.iter().map(|(path, node)| (path.as_str(), node))
    }

    /// How many nodes there are.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Puts a node at a path, with the directories above it.
    pub fn insert(&mut self, path: &str, node: Node<T>) {
        let path = path.trim_matches('/');
        if path.is_empty() {
            return;
        }
        let stays = node.is_directory() && self.nodes.get(path).is_some_and(Node::is_directory);
        if !stays && self.nodes.get(path).is_some_and(Node::is_directory) {
            self.remove_below(path);
        }
        self.ensure_directories(path);
        self.nodes.insert(path.to_owned(), node);
    }

    fn ensure_directories(&mut self, path: &str) {
        let mut rest = path;
        while let Some((parent, _)) = rest.rsplit_once('/') {
            if self.nodes.get(parent).is_some_and(Node::is_directory) {
                return;
            }
            self.nodes.insert(parent.to_owned(), Node { mode: 0o755, kind: NodeKind::Directory });
            rest = parent;
        }
    }

    fn remove_below(&mut self, path: &str) {
        let (from, to) = (format!("{path}/"), format!("{path}0"));
        let below: Vec<String> = self.nodes.range(from..to).map(|(path, _)| path.clone()).collect();
        for path in below {
            self.nodes.remove(&path);
        }
    }

    /// Where a path leads, whether or not something is there; none for links in a circle.
    fn real(&self, path: &str, follow_last: bool) -> Option<String> {
        let path = path.trim_matches('/');
        // Most paths lead through no link at all.
        if let Some(node) = self.nodes.get(path)
            && !matches!(node.kind, NodeKind::Symlink(_))
        {
            return Some(path.to_owned());
        }
        let mut links = 0;
        let mut real = String::with_capacity(path.len());
        // What is still to walk, the next part last.
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
            if let Some(Node { kind: NodeKind::Symlink(target), .. }) = self.nodes.get(&real) {
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
    /// Lays a layer over what is there.
    ///
    /// What a layer removes is removed from below it, whatever it adds itself; so removals come first. Paths that lead
    /// through links of lower layers go where the links lead, as engines unpack them.
    pub(crate) fn apply(&mut self, changes: Vec<Change<T>>) -> Result<(), String> {
        for change in &changes {
            match change {
                Change::Remove(path) => {
                    if let Some(real) = self.real(path, false) {
                        self.remove_below(&real);
                        self.nodes.remove(&real);
                    }
                }
                Change::Empty(path) => {
                    if path.is_empty() {
                        self.nodes.clear();
                    } else if let Some(real) = self.real(path, true) {
                        self.remove_below(&real);
                    }
                }
                Change::Put(..) | Change::Link { .. } => {}
            }
        }
        // Entries of one directory come one after the other: what its path leads to is looked up once.
        let mut known: Option<(String, String)> = None;
        for change in changes {
            match change {
                Change::Put(path, node) => {
                    let place = self.place(&path, &mut known)?;
                    let leads_elsewhere = !matches!(node.kind, NodeKind::File { .. }) || self.is_link(&place);
                    self.insert(&place, node);
                    if leads_elsewhere {
                        known = None;
                    }
                }
                Change::Link { path, target } => {
                    let real = self.place(&target, &mut None)?;
                    let node = self.nodes.get(&real).filter(|node| !node.is_directory());
                    let node = node.ok_or_else(|| {
                        format!("`{path}` is a hard link to `{target}`, which is not there")
                    })?;
                    let node = node.clone();
                    let place = self.place(&path, &mut known)?;
                    let leads_elsewhere = !matches!(node.kind, NodeKind::File { .. }) || self.is_link(&place);
                    self.insert(&place, node);
                    if leads_elsewhere {
                        known = None;
                    }
                }
                Change::Remove(_) | Change::Empty(_) => {}
            }
        }
        Ok(())
    }

    fn is_link(&self, path: &str) -> bool {
        self.nodes.get(path).is_some_and(|node| matches!(node.kind, NodeKind::Symlink(_)))
    }

    fn place(&self, path: &str, known: &mut Option<(String, String)>) -> Result<String, String> {
        let Some((parent, name)) = path.rsplit_once('/') else { return Ok(path.to_owned()) };
        if let Some((_, real)) = known.as_ref().filter(|(known, _)| known == parent) {
            return Ok(format!("{real}/{name}"));
        }
        let real =
            self.real(parent, true).ok_or_else(|| format!("`{path}` leads through links in a circle"))?;
        let place = if real.is_empty() { name.to_owned() } else { format!("{real}/{name}") };
        if !real.is_empty() {
            *known = Some((parent.to_owned(), real));
        }
        Ok(place)
    }
}
