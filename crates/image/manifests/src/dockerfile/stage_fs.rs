//! Models a stage's file system, as far as it was copied from the build context.

use std::cell::Cell;

use crate::files::{self, Files, join, parent};
use crate::sources::{is_cuda_source, is_harmless};

/// The limit for files that one pattern copies.
const MAX_MATCHES: usize = 256;
/// The limit for file lookups in one Dockerfile.
const MAX_LOOKUPS: usize = 1024;

/// The files and directories that a stage's commands see.
pub(super) struct StageFs<'a> {
    pub(super) files: &'a dyn Files,
    /// The working directory, without a leading `/`.
    pub(super) workdir: String,
    pub(super) image: Option<String>,
    /// Directories that packages were installed to, besides those of the system.
    pub(super) prefixes: Vec<String>,
    /// CUDA sources that were copied.
    pub(super) cuda_sources: Vec<String>,
    /// How many requirements files were included by others.
    pub(super) included: Cell<usize>,
    /// Whether cmake is in what was declared.
    pub(super) cmake: Searched,
    /// The first command that may have changed any file.
    pub(super) changed_by: Option<String>,
    copies: Vec<Copied>,
    lookups: Cell<usize>,
}

/// How much of what was declared a search has seen, and what it found.
#[derive(Default)]
pub(super) struct Searched {
    pub(super) compiled: usize,
    pub(super) notes: usize,
    pub(super) is_found: bool,
}

/// A file or directory of the context, or text of the Dockerfile itself, and its path in the container.
struct Copied {
    source: CopySource,
    target: String,
}

impl Copied {
    /// Whether a path may be what was copied, or a part of it.
    fn covers(&self, path: &str) -> bool {
        self.target == path || below(&self.target, path).is_some()
    }

    fn is_changed(&self, path: &str) -> bool {
        match self.source {
            CopySource::Changed(Written::File) => self.target == path,
            CopySource::Changed(Written::Below) => self.covers(path),
            _ => false,
        }
    }
}

/// The rest of a path below a directory.
fn below<'p>(directory: &str, path: &'p str) -> Option<&'p str> {
    let rest = path.strip_prefix(directory)?;
    if directory.is_empty() { Some(rest) } else { rest.strip_prefix('/') }
}

enum CopySource {
    File(String),
    Directory(String),
    Text(String),
    /// A command of the stage wrote it, so its contents are not those of the context.
    Changed(Written),
}

/// The paths that a command wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Written {
    File,
    /// Any file below a directory.
    Below,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Copy {
    /// Files whose contents are unknown.
    pub(super) opaque: Vec<String>,
    pub(super) exists: bool,
}

impl<'a> StageFs<'a> {
    pub(super) fn new(files: &'a dyn Files) -> Self {
        let (workdir, included, lookups) = (String::new(), Cell::new(0), Cell::new(0));
        let (prefixes, cuda_sources, copies) = (Vec::new(), Vec::new(), Vec::new());
        let cmake = Searched::default();
        let (image, changed_by) = (None, None);
        Self { files, workdir, image, prefixes, cuda_sources, included, cmake, changed_by, copies, lookups }
    }

    fn may_look_up(&self) -> bool {
        self.lookups.set(self.lookups.get() + 1);
        self.lookups.get() <= MAX_LOOKUPS
    }

    /// The number of copies, for [`Self::truncate`].
    pub(super) fn copies(&self) -> usize {
        self.copies.len()
    }

    /// Drops the mounts of one command, but not what it wrote.
    pub(super) fn truncate(&mut self, copies: usize) {
        let since = self.copies.split_off(copies.min(self.copies.len()));
        self.copies
            .extend(since.into_iter().filter(|copied| matches!(copied.source, CopySource::Changed(_))));
    }

    /// Copies a source of the context, which may be a pattern.
    pub(super) fn copy(&mut self, source: &str, target: &str, into_directory: bool) -> Copy {
        if !self.may_look_up() {
            return Copy::default();
        }
        let source = join("", source);
        let target = join(&self.workdir, target);
        let into_directory = into_directory || target == self.workdir;
        let is_pattern = source.contains(['*', '?']);
        let listed = if is_pattern {
            let fixed = source.split(['*', '?']).next().unwrap_or_default();
            let directory = parent(fixed);
            let below = self.files.below(directory).into_iter();
            let matches = |path: &str| {
                let depth = source.matches('/').count() + 1;
                let head = path.splitn(depth + 1, '/').take(depth).collect::<Vec<_>>().join("/");
                files::matches(&source, &head)
            };
            below.filter(|path| matches(path)).collect()
        } else {
            self.files.below(&source)
        };
        let is_itself = |path: &str| path == source;
        let name_of = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
        if is_pattern {
            self.copies.extend(listed.iter().take(MAX_MATCHES).map(|path| {
                let target = join(&target, &name_of(path));
                Copied { source: CopySource::File(path.clone()), target }
            }));
        } else if listed.iter().any(|path| is_itself(path)) {
            let target = if into_directory { join(&target, &name_of(&source)) } else { target };
            self.copies.push(Copied { source: CopySource::File(source.clone()), target });
        } else if !listed.is_empty() {
            self.copies.push(Copied { source: CopySource::Directory(source.clone()), target });
        }
        self.cuda_sources
            .extend(listed.iter().filter(|path| is_cuda_source(path)).take(MAX_MATCHES).cloned());
        let is_own = |path: &String| {
            let name = name_of(path).to_ascii_lowercase();
            name.contains("dockerfile") || name.contains("containerfile") || name == ".dockerignore"
        };
        Copy {
            // If only a Dockerfile matches, the rest of the project is elsewhere.
            exists: listed.iter().any(|path| !is_own(path)),
            opaque: listed.into_iter().filter(|path| !is_harmless(path) && !is_cuda_source(path)).collect(),
        }
    }

    /// Adds a file that the Dockerfile itself contains.
    pub(super) fn write(&mut self, target: &str, text: String) {
        let target = join(&self.workdir, target);
        self.copies.push(Copied { source: CopySource::Text(text), target });
    }

    /// Records that a command wrote a path.
    pub(super) fn change(&mut self, directory: &str, path: &str, written: Written) {
        let target = join(directory, path);
        // Others are not read, and a script may write any number of them.
        let is_read = |copied: &Copied| copied.covers(&target) || below(&target, &copied.target).is_some();
        if self.copies.iter().any(is_read) {
            self.copies.push(Copied { source: CopySource::Changed(written), target });
        }
    }

    /// The path in the context, and the text, of a file in the container.
    pub(super) fn text(&self, directory: &str, path: &str) -> Option<(String, String)> {
        if !self.may_look_up() {
            return None;
        }
        let wanted = join(directory, path);
        let known = self.copies.iter().rev().take_while(|copied| !copied.is_changed(&wanted));
        known.into_iter().find_map(|copied| match &copied.source {
            CopySource::Text(text) => (copied.target == wanted).then(|| (wanted.clone(), text.clone())),
            CopySource::File(source) => {
                (copied.target == wanted).then(|| Some((source.clone(), self.files.text(source)?))).flatten()
            }
            CopySource::Directory(source) => {
                let path = join(source, below(&copied.target, &wanted)?);
                Some((path.clone(), self.files.text(&path)?))
            }
            CopySource::Changed(_) => None,
        })
    }

    /// Whether a path contains installed packages, or is inside a directory that does.
    pub(super) fn holds_packages(&self, path: &str) -> bool {
        let path = join("", path);
        let usual = ["site-packages", "dist-packages", "venv", ".local", "conda", "wheels"];
        let own = ["usr/local", "usr/lib/python3", "opt/conda", "root/.local"];
        let within = |one: &str, other: &str| {
            one == other
                || one.strip_prefix(other).is_some_and(|rest| other.is_empty() || rest.starts_with('/'))
        };
        let covers = |prefix: &str| within(prefix, &path) || within(&path, prefix);
        usual.iter().any(|part| path.contains(part))
            || own.iter().any(|prefix| within(prefix, &path))
            || path.starts_with("usr/local/lib/python")
            || self.prefixes.iter().any(|prefix| covers(prefix))
    }
}
