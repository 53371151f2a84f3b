//! Named volumes: directories that outlive the containers that use them.
//!
//! ```text
//! volumes/NAME/volume.json   when it was created
//! volumes/NAME/data          its files
//! ```

use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use rustix::fs::fstat;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{OnError, RuntimeError};
use crate::flags::is_docker_name;
use crate::home::{Home, entries, read_json, remove_tree, write_json};
use crate::in_root::InRoot;
use crate::plan::{MountPlan, Plan};
use crate::status::now;
use crate::tree::{CopyOptions, TreeCopy};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct NamedVolume {
    pub name: String,
    pub path: PathBuf,
    /// When it was created, in milliseconds since 1970.
    pub created: u64,
    /// The containers that use it, running or not.
    pub used_by: Vec<String>,
}

#[derive(Serialize, Deserialize)]
struct VolumeRecord {
    created: u64,
}

impl Home {
    fn volumes(&self) -> PathBuf {
        self.root().join("volumes")
    }

    fn volume_dir(&self, name: &str) -> Result<PathBuf, RuntimeError> {
        if is_docker_name(name) {
            return Ok(self.volumes().join(name));
        }
        Err(RuntimeError::Request(format!(
            "`{name}` is not a valid volume name: use letters, digits, dots, dashes and underscores"
        )))
    }

    /// Where the files of a volume are, whether or not it exists.
    pub fn volume_data(&self, name: &str) -> Result<PathBuf, RuntimeError> {
        Ok(self.volume_dir(name)?.join("data"))
    }

    pub fn has_volume(&self, name: &str) -> bool {
        self.volume_dir(name).is_ok_and(|dir| dir.join("volume.json").is_file())
    }

    /// Creates a volume if it does not exist.
    pub fn create_volume(&self, name: &str) -> Result<(), RuntimeError> {
        let dir = self.volume_dir(name)?;
        fs::create_dir_all(self.root()).on("cannot create", self.root())?;
        let _lock = self.lock()?;
        if dir.join("volume.json").is_file() {
            return Ok(());
        }
        let data = dir.join("data");
        fs::create_dir_all(&data).on("cannot create", &data)?;
        write_json(&dir.join("volume.json"), &VolumeRecord { created: now() })
    }

    pub fn named_volumes(&self) -> Result<Vec<NamedVolume>, RuntimeError> {
        let directory = self.volumes();
        let volumes = entries(&directory)?.flatten();
        let containers = self.all()?;
        let mut all = Vec::new();
        for entry in volumes {
            // A volume that is being created or removed has no record.
            let Ok(record) = read_json::<VolumeRecord>(&entry.path().join("volume.json")) else { continue };
            let name = entry.file_name().to_string_lossy().into_owned();
            let used_by = containers.iter().map(|(_, plan)| plan).filter(|plan| uses(plan, &name));
            all.push(NamedVolume {
                used_by: used_by.map(|plan| plan.name.clone()).collect(),
                path: entry.path().join("data"),
                created: record.created,
                name,
            });
        }
        all.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(all)
    }

    /// Removes a volume and everything in it, unless a container uses it.
    pub fn remove_volume(&self, name: &str) -> Result<(), RuntimeError> {
        let dir = self.volume_dir(name)?;
        let lock = self.lock()?;
        if !self.has_volume(name) {
            return Err(RuntimeError::Request(format!("no volume `{name}`: `cudock volume ls` lists them")));
        }
        if let Some((_, plan)) = self.all()?.into_iter().find(|(_, plan)| uses(plan, name)) {
            return Err(RuntimeError::Request(format!(
                "volume {name} is used by container {user}: cudock rm {user}",
                user = plan.name
            )));
        }
        // Removed first: without its record it is no longer a volume, even if removing the rest fails.
        let record = dir.join("volume.json");
        fs::remove_file(&record).on("cannot remove", &record)?;
        let removed = remove_tree(&dir);
        drop(lock);
        removed
    }
}

fn uses(plan: &Plan, name: &str) -> bool {
    plan.mounts.iter().any(|mount| matches!(mount, MountPlan::Volume { name: used, .. } if used == name))
}

/// Copies the image's files at the mount points into empty volumes, as docker does.
pub(crate) fn fill(rootfs: &Path, mounts: &[MountPlan]) -> Result<(), RuntimeError> {
    for mount in mounts {
        if let MountPlan::Volume { source, target, copy: true, .. } = mount {
            fill_one(rootfs, source, target).on("cannot fill the volume", source)?;
        }
    }
    Ok(())
}

fn fill_one(rootfs: &Path, source: &Path, target: &Path) -> io::Result<()> {
    let volume = File::open(source)?;
    // Two containers that start at once must not both fill it.
    volume.lock()?;
    if fs::read_dir(source)?.next().is_some() {
        return Ok(());
    }
    let root = InRoot::open(rootfs)?;
    let Ok(original) = root.open_path(target) else { return Ok(()) };
    let stat = fstat(&original)?;
    if rustix::fs::FileType::from_raw_mode(stat.st_mode) != rustix::fs::FileType::Directory {
        return Ok(());
    }
    let mut copy = TreeCopy::new(CopyOptions { owners: true, special_bits: true });
    copy.contents(original.as_fd(), volume.as_fd())?;
    copy.attributes(&stat, volume.as_fd())
}
