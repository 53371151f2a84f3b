//! The directory of a container: its files, and the container while it is new.

use std::fs;
use std::path::{Path, PathBuf};

use crate::container::config::ContainerConfig;
use crate::container::state_file::read_json;
use crate::container::status::Watch;
use crate::error::RuntimeError;
use crate::files::trash::{discard, trash_of};

#[derive(Debug, Clone)]
pub struct ContainerDir {
    path: PathBuf,
}

impl ContainerDir {
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The container's id, which is the name of the directory.
    pub fn id(&self) -> String {
        self.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    }

    pub(crate) fn config_file(&self) -> PathBuf {
        self.path.join("config.json")
    }

    pub(crate) fn status_file(&self) -> PathBuf {
        self.path.join("status.json")
    }

    /// Locked by the watcher while it runs.
    pub(crate) fn watch_lock(&self) -> PathBuf {
        self.path.join("watched")
    }

    /// Exists while the container is being stopped.
    pub(crate) fn stop_mark(&self) -> PathBuf {
        self.path.join("stopping")
    }

    pub fn log(&self) -> PathBuf {
        self.path.join("log.jsonl")
    }

    pub(crate) fn upper(&self) -> PathBuf {
        self.path.join("upper")
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.path.join("work")
    }

    /// Files that live as long as the watcher: a tmpfs in its mount namespace.
    pub(crate) fn run(&self) -> PathBuf {
        self.path.join("run")
    }

    pub(crate) fn rootfs(&self) -> PathBuf {
        self.run().join("rootfs")
    }

    pub(crate) fn bundle(&self) -> PathBuf {
        self.run().join("bundle")
    }

    pub(crate) fn oci(&self) -> PathBuf {
        self.run().join("oci")
    }

    pub fn config(&self) -> Result<ContainerConfig, RuntimeError> {
        read_json(&self.config_file())
    }

    /// Takes the container out of the list, so that its files can be removed later. `None` if it is gone already.
    pub(crate) fn discard(&self) -> Result<Option<PathBuf>, RuntimeError> {
        let Some(root) = self.path.parent().and_then(Path::parent) else { return Ok(None) };
        discard(&self.path, &self.config_file(), &trash_of(root))
    }

    /// The outcome of an operation, or `removed` if it failed because the container was removed meanwhile.
    pub(crate) fn unless_removed<T>(
        &self,
        outcome: Result<T, RuntimeError>,
        removed: impl FnOnce() -> Result<T, RuntimeError>,
    ) -> Result<T, RuntimeError> {
        match outcome {
            Err(_) if !self.config_file().exists() => removed(),
            other => other,
        }
    }
}

/// A container that was just created. It is removed again, unless it is left to a watcher or kept.
#[derive(Debug)]
pub struct NewContainer {
    dir: ContainerDir,
    watch: Watch,
    is_kept: bool,
}

impl NewContainer {
    pub(crate) fn new(dir: ContainerDir, watch: Watch) -> Self {
        Self { dir, watch, is_kept: false }
    }

    pub fn dir(&self) -> &ContainerDir {
        &self.dir
    }

    /// The lock that shows others that the container is being started.
    pub(crate) fn watch(&self) -> &Watch {
        &self.watch
    }

    /// Leaves it to a watcher that has inherited the lock.
    pub(crate) fn leave_to_watcher(mut self) {
        self.watch.leave_to_watcher();
        self.is_kept = true;
    }

    /// Keeps it, to be started later.
    pub(crate) fn keep(mut self) {
        self.is_kept = true;
    }
}

impl Drop for NewContainer {
    fn drop(&mut self) {
        if !self.is_kept {
            // The error that led here is the one to report.
            let _ = self.dir.clear();
        }
    }
}

/// Syncs a container's files to disk, in the background, since it may take long.
pub(crate) fn persist(dir: &ContainerDir) {
    let path = dir.path.clone();
    crate::namespace::sys::orphaned(move || {
        let files = [path.join("config.json"), path.join("status.json"), path.clone()];
        for file in files.iter().chain(path.parent().map(Path::to_owned).iter()) {
            if let Ok(file) = fs::File::open(file) {
                let _ = file.sync_all();
            }
        }
    });
}
