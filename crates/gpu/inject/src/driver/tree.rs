use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};

use cudock_base::Arch;
use cudock_host::{Files, Root};

/// A root file system with its location on the host.
#[derive(Debug, Clone)]
pub(super) struct DriverTree {
    root: Root,
}

impl DriverTree {
    pub(super) fn new(root: &Root) -> Self {
        Self { root: root.clone() }
    }

    pub(super) fn base(&self) -> &Path {
        self.root.base()
    }

    pub(super) fn files(&self) -> &dyn Files {
        &self.root
    }

    /// A directory of this tree as a root of its own.
    pub(super) fn below(&self, path: &str) -> Option<Self> {
        let outside = self.host(path)?;
        outside.is_dir().then(|| Root::tree(&outside).ok()).flatten().map(|root| Self { root })
    }

    /// The host path of a path of this tree, with all links resolved; `None` if it does not exist.
    pub(super) fn host(&self, path: &str) -> Option<PathBuf> {
        self.real(path).map(|real| self.outside(&real))
    }

    /// The host path of a path without links.
    pub(super) fn outside(&self, real: &str) -> PathBuf {
        self.root.base().join(real.trim_start_matches('/'))
    }

    pub(super) fn real(&self, path: &str) -> Option<String> {
        Files::real(&self.root, path)
    }

    pub(super) fn exists(&self, path: &str) -> bool {
        self.real(path).is_some()
    }

    /// Whether a directory, given by a path without links, has an entry. Cheaper than resolving a path.
    pub(super) fn has(&self, directory: &str, name: &str) -> bool {
        fs::symlink_metadata(self.outside(directory).join(name)).is_ok()
    }

    /// The existing directories with links resolved, each once.
    pub(super) fn real_directories(&self, directories: impl Iterator<Item = String>) -> Vec<String> {
        let mut real: Vec<String> = Vec::new();
        for directory in directories.filter_map(|directory| self.real(&directory)) {
            if !real.contains(&directory) {
                real.push(directory);
            }
        }
        real
    }

    pub(super) fn names(&self, directory: &str) -> Vec<String> {
        Files::names(&self.root, directory)
    }

    pub(super) fn text(&self, path: &str) -> Option<String> {
        Files::text(&self.root, path)
    }

    pub(super) fn metadata(&self, path: &str) -> Option<Metadata> {
        fs::metadata(self.host(path)?).ok()
    }

    /// Whether it is a regular file that is not empty: a committed container leaves empty files behind.
    pub(super) fn is_full_file(&self, path: &str) -> bool {
        self.metadata(path).is_some_and(|metadata| metadata.is_file() && metadata.len() > 0)
    }

    pub(super) fn arch(&self) -> Arch {
        self.root.cpu_arch()
    }
}
