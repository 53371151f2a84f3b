//! Directory trees that stand for machines and images.

use std::fs;
use std::marker::PhantomData;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// A tree in a temporary directory. `K` is what it stands for, which adds builders of its own.
#[must_use]
#[derive(Debug)]
pub struct Tree<K> {
    directory: tempfile::TempDir,
    kind: PhantomData<K>,
}

impl<K> Tree<K> {
    pub(crate) fn empty() -> Self {
        Self { directory: tempfile::tempdir().unwrap(), kind: PhantomData }
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    pub fn at(&self, path: &str) -> PathBuf {
        self.directory.path().canonicalize().unwrap().join(path.trim_start_matches('/'))
    }

    /// A path whose directory exists.
    pub(crate) fn made(&self, path: &str) -> PathBuf {
        let at = self.at(path);
        fs::create_dir_all(at.parent().unwrap()).unwrap();
        at
    }

    pub fn file(self, path: &str, contents: impl AsRef<[u8]>) -> Self {
        fs::write(self.made(path), contents).unwrap();
        self
    }

    pub fn link(self, path: &str, target: &str) -> Self {
        symlink(target, self.made(path)).unwrap();
        self
    }

    pub fn directory(self, path: &str) -> Self {
        fs::create_dir_all(self.at(path)).unwrap();
        self
    }

    pub fn program(self, path: &str) -> Self {
        let at = self.made(path);
        fs::write(&at, "#!/bin/sh\n").unwrap();
        fs::set_permissions(at, fs::Permissions::from_mode(0o755)).unwrap();
        self
    }

    /// Removes a file or a directory.
    pub fn without(self, path: &str) -> Self {
        let at = self.at(path);
        let removed = if at.is_dir() { fs::remove_dir_all(at) } else { fs::remove_file(at) };
        removed.unwrap();
        self
    }
}
