//! The settings of a group that are not in its file.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::container::config::NetworkConfig;

/// Settings from the command line.
#[derive(Debug, Clone, Default)]
pub struct GroupSettings {
    /// The network of the group, and its published ports.
    pub network: NetworkConfig,
    pub volumes: BTreeMap<String, PathBuf>,
    /// The root of the driver's files, if not this machine's.
    pub driver_root: Option<PathBuf>,
    /// The root of the device nodes, if not the driver's root.
    pub device_root: Option<PathBuf>,
    pub without_gpus: bool,
}
