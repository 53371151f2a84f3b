//! The environment and user of a container's first process, for processes that join it later.
//!
//! `/proc/PID/environ` is memory of the process, which many programs overwrite to change their title. So the watcher stores
//! the environment on a tmpfs in its private mount namespace, where it never reaches a disk and vanishes with the watcher.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::container::home::ContainerDir;
use crate::container::state_file::{read_json, write_json};
use crate::error::RuntimeError;
use crate::start::user::Identity;

#[derive(Clone, Default, Serialize, Deserialize)]
pub(crate) struct Started {
    pub(crate) environment: Vec<(String, String)>,
    /// The variables set by the user, which a restart needs again.
    pub(crate) given: Vec<(String, String)>,
    /// The user of processes that join without `--user`, with the groups of the GPUs.
    #[serde(flatten)]
    pub(crate) identity: Identity,
    /// The groups of the GPUs, which every user needs.
    pub(crate) gpu_groups: Vec<u32>,
}

impl std::fmt::Debug for Started {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Started").field("identity", &self.identity).finish_non_exhaustive()
    }
}

impl Started {
    pub(crate) fn write(&self, dir: &ContainerDir) -> Result<(), RuntimeError> {
        write_json(&file(dir), self)
    }

    /// Reads it from a running container through its watcher. `None` if an older version started the watcher.
    pub(crate) fn read(dir: &ContainerDir) -> Result<Option<Self>, RuntimeError> {
        let Some(watcher) = dir.status()?.watcher else { return Ok(None) };
        let inside = file(dir);
        let inside = inside.strip_prefix("/").unwrap_or(&inside);
        match read_json(&Path::new("/proc").join(watcher.to_string()).join("root").join(inside)) {
            Err(error) if error.is_missing() => Ok(None),
            read => read.map(Some),
        }
    }
}

fn file(dir: &ContainerDir) -> PathBuf {
    dir.run().join("started.json")
}
