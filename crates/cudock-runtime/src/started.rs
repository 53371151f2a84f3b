//! What a container's first process was started with, for processes that join it later.
//!
//! `/proc/PID/environ` is memory of the process, which many programs overwrite to change their title. So the watcher stores
//! the environment on a tmpfs in its private mount namespace, where it never reaches a disk and vanishes with the watcher.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::RuntimeError;
use crate::home::{ContainerDir, read_json, write_json};
use crate::user::Identity;

#[derive(Clone, Default, Serialize, Deserialize)]
pub(crate) struct Started {
    pub(crate) environment: Vec<(String, String)>,
    /// The variables set by the user, which a restart needs again.
    pub(crate) given: Vec<(String, String)>,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    /// Supplementary groups, including those of the GPUs.
    pub(crate) groups: Vec<u32>,
    /// The groups of the GPUs, which every user needs.
    pub(crate) gpu_groups: Vec<u32>,
    pub(crate) home: String,
}

impl std::fmt::Debug for Started {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Started").field("uid", &self.uid).field("gid", &self.gid).finish_non_exhaustive()
    }
}

impl Started {
    pub(crate) fn write(&self, dir: &ContainerDir) -> Result<(), RuntimeError> {
        write_json(&file(dir), self)
    }

    /// Reads it from a running container through its watcher. `None` if an older version started the watcher.
    pub(crate) fn read(dir: &ContainerDir) -> Result<Option<Self>, RuntimeError> {
        let Some(watcher) = dir.status()?.watcher else { return Ok(None) };
        match Self::read_through(watcher, dir) {
            Ok(started) => Ok(Some(started)),
            Err(RuntimeError::File { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn read_through(watcher: u32, dir: &ContainerDir) -> Result<Self, RuntimeError> {
        let inside = file(dir);
        let inside = inside.strip_prefix("/").unwrap_or(&inside);
        read_json(&Path::new("/proc").join(watcher.to_string()).join("root").join(inside))
    }

    /// The identity of a process that joins without `--user`.
    pub(crate) fn identity(&self) -> Identity {
        Identity { uid: self.uid, gid: self.gid, groups: self.groups.clone(), home: self.home.clone() }
    }
}

fn file(dir: &ContainerDir) -> PathBuf {
    dir.run().join("started.json")
}
