//! The CDI specification format.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use cudock_base::files::write_atomically;
use serde::{Deserialize, Serialize};

use crate::InjectError;

/// A specification: the devices of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Specification {
    pub cdi_version: String,
    /// nvidia.com/gpu
    pub kind: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// The devices that can be requested.
    #[serde(default)]
    pub devices: Vec<CdiDevice>,
    /// Edits that every device needs.
    #[serde(default, skip_serializing_if = "ContainerEdits::is_empty")]
    pub container_edits: ContainerEdits,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CdiDevice {
    /// 0, GPU-5a… or all
    pub name: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    #[serde(default)]
    pub container_edits: ContainerEdits,
}

/// Changes to make to a container.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContainerEdits {
    /// Variables, as NAME=VALUE.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub device_nodes: Vec<CdiNode>,
    /// Programs to run while the container is made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<Hook>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mounts: Vec<CdiMount>,
    #[serde(default, rename = "additionalGids", skip_serializing_if = "Vec::is_empty")]
    pub additional_gids: Vec<u32>,
}

/// A device node. Numbers that are left out are looked up by the engine, so they cannot become outdated.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CdiNode {
    pub path: String,
    /// Its path on the host, if it differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_path: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub major: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minor: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Hook {
    /// The time at which it runs: `createRuntime`.
    pub hook_name: String,
    pub path: String,
    /// Its arguments, its own name first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CdiMount {
    pub host_path: String,
    pub container_path: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
}

impl ContainerEdits {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl Specification {
    /// The specification as YAML, in a deterministic order.
    pub fn to_yaml(&self) -> Result<String, InjectError> {
        let text = cudock_yaml::to_string(self).map_err(|error| wrong(&error))?;
        Ok(format!("---\n{text}"))
    }

    pub fn to_json(&self) -> Result<String, InjectError> {
        let text = serde_json::to_string_pretty(self).map_err(|error| wrong(&error))?;
        Ok(format!("{text}\n"))
    }

    /// All edits in it: those of every device, and those of each.
    pub fn edits(&self) -> impl Iterator<Item = &ContainerEdits> {
        std::iter::once(&self.container_edits)
            .chain(self.devices.iter().map(|device| &device.container_edits))
    }

    /// The lowest version of the format that has all features used here, so that older engines can read it.
    pub fn lowest_version(&self) -> &'static str {
        let any = |test: fn(&ContainerEdits) -> bool| self.edits().any(test);
        let class = self.kind.split_once('/').map_or("", |(_, class)| class);
        let annotated =
            !self.annotations.is_empty() || self.devices.iter().any(|device| !device.annotations.is_empty());
        if any(|edits| !edits.additional_gids.is_empty()) {
            "0.7.0"
        } else if annotated || class.contains('.') {
            "0.6.0"
        } else if any(|edits| edits.device_nodes.iter().any(|node| node.host_path.is_some()))
            || self.devices.iter().any(|device| !device.name.starts_with(|c: char| c.is_ascii_alphabetic()))
        {
            "0.5.0"
        } else if any(|edits| edits.mounts.iter().any(|mount| mount.kind.is_some())) {
            "0.4.0"
        } else {
            "0.3.0"
        }
    }
}

fn wrong(error: &dyn std::fmt::Display) -> InjectError {
    InjectError::Specification {
        what: "the CDI specification cannot be written".to_owned(),
        why: error.to_string(),
    }
}

/// Writes the text of a specification, and its directory if necessary. Engines watch the directory, so the file appears
/// complete or not at all.
pub fn write(path: &Path, text: &str) -> io::Result<()> {
    if let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty()) {
        fs::create_dir_all(directory)?;
    }
    write_atomically(path, text.as_bytes())
}
