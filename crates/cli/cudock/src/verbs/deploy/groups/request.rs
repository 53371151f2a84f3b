//! Turns the arguments of `up` into the settings of a group.

use std::path::Path;

use cudock_cli::{GpuChoice, UpArgs};
use cudock_group::Group;
use cudock_runtime::flags::{automatic_network, existing_directory};
use cudock_runtime::group::{self, GroupSettings};

use crate::failure::Failure;

pub(crate) fn settings(args: &UpArgs, group: &Group) -> Result<GroupSettings, Failure> {
    let network = args.network.clone().unwrap_or_else(automatic_network);
    Ok(GroupSettings {
        network: group::flags::network(network, &args.publish, group)?,
        volumes: group::flags::volumes(&args.volume)?,
        driver_root: args.driver_root.as_deref().map(existing_directory).transpose()?,
        device_root: args.device_root.as_deref().map(existing_directory).transpose()?,
        without_gpus: args.gpus == GpuChoice::None,
    })
}

/// Changes to the file's directory, which its paths are relative to.
pub(crate) fn enter_directory_of(file: &Path) -> Result<(), Failure> {
    let directory = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::env::set_current_dir(directory)
        .map_err(|error| Failure::outside(format!("cannot go to {}: {error}", directory.display())))
}
