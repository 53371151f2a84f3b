//! Named volumes: directories that outlive the containers that use them.
//!
//! ```text
//! volumes/NAME/volume.json   when it was created
//! volumes/NAME/data          its files
//! volumes/NAME/filling       the image's files, while they are copied
//! volumes/NAME/filled        all of the image's files, until they are in `data`
//! ```

use std::fs;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::container::config::{ContainerConfig, MountConfig};
use crate::container::home::{Home, directories, entries, remove_tree};
use crate::container::state_file::{read_json, write_json};
use crate::container::status::now;
use crate::error::{OnError, RuntimeError};
use crate::files::trash::{discard, trash_of};
use crate::flags::is_docker_name;
use crate::volumes::fill::remove_unfinished;

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
        // Without its record it is a leftover of an interrupted creation or removal.
        remove_tree(&dir)?;
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
            let used_by = containers.iter().map(|(_, config)| config).filter(|config| uses(config, &name));
            all.push(NamedVolume {
                used_by: used_by.map(|config| config.name.clone()).collect(),
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
        if let Some((_, config)) = self.all()?.into_iter().find(|(_, config)| uses(config, name)) {
            return Err(RuntimeError::Request(format!(
                "volume {name} is used by container {user}: cudock rm {user}",
                user = config.name
            )));
        }
        let trash = discard(&dir, &dir.join("volume.json"), &trash_of(self.root()))?;
        drop(lock);
        trash.map_or(Ok(()), |trash| remove_tree(&trash))
    }

    /// Takes volumes whose creation or removal was interrupted out of the list, and returns where they are now. The caller has
    /// locked the data directory. Also removes what interrupted starts have copied.
    pub(crate) fn discard_unfinished_volumes(&self) -> Vec<PathBuf> {
        let mut discarded = Vec::new();
        for directory in directories(&self.volumes()) {
            let record = directory.join("volume.json");
            if record.is_file() {
                remove_unfinished(&directory);
            } else {
                discarded.extend(discard(&directory, &record, &trash_of(self.root())).ok().flatten());
            }
        }
        discarded
    }
}

fn uses(config: &ContainerConfig, name: &str) -> bool {
    config.mounts.iter().any(|mount| matches!(mount, MountConfig::Volume { name: used, .. } if used == name))
}
