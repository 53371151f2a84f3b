//! The GPUs of `--gpus`, of CDI names, or of docker's `--runtime nvidia`, which takes them from a variable.

use std::path::{Path, PathBuf};

use cudock_base::UsageError;
use cudock_inject::Capabilities;

use super::container::existing_directory;
use super::devices::cdi_gpus;
use crate::container::config::{GpuConfig, Private};
use crate::error::RuntimeError;

#[derive(Debug, Default)]
pub struct GpuFlags<'a> {
    pub gpus: Option<&'a str>,
    /// GPUs of `--device nvidia.com/gpu=NAME`.
    pub cdi_names: &'a [String],
    pub runtime: Option<&'a str>,
    /// `--driver-capabilities`
    pub capabilities: Option<&'a str>,
    pub driver_root: Option<&'a Path>,
    pub device_root: Option<&'a Path>,
}

/// The GPUs of a container that is started with these flags and variables.
pub fn gpus(flags: &GpuFlags<'_>, private: &Private) -> Result<Option<GpuConfig>, RuntimeError> {
    let Some(devices) = devices(flags, private)? else { return Ok(None) };
    if let Some(capabilities) = flags.capabilities {
        Capabilities::parse(capabilities, "--driver-capabilities")?;
    }
    let absolute = |path: Option<&Path>| -> Result<Option<PathBuf>, UsageError> {
        path.map(existing_directory).transpose()
    };
    Ok(Some(GpuConfig {
        devices,
        capabilities: flags.capabilities.map(str::to_owned),
        driver_root: absolute(flags.driver_root)?,
        device_root: absolute(flags.device_root)?,
    }))
}

fn devices(flags: &GpuFlags<'_>, private: &Private) -> Result<Option<String>, UsageError> {
    let given = flags.gpus.filter(|devices| !devices.is_empty()).map(str::to_owned);
    if given.is_some() && !flags.cdi_names.is_empty() {
        return Err(
            UsageError::new("--gpus and --device nvidia.com/gpu=… both say which GPUs").hint("leave one out")
        );
    }
    let given = given.or_else(|| cdi_gpus(flags.cdi_names));
    if given.is_some() || flags.runtime != Some("nvidia") {
        return Ok(given);
    }
    let variable = private.environment.iter().rev().find(|(name, _)| name == "NVIDIA_VISIBLE_DEVICES");
    Ok(match variable.map(|(_, value)| value.as_str()) {
        None | Some("all") => Some("all".to_owned()),
        Some("" | "void" | "none") => None,
        Some(list) => Some(format!("\"device={list}\"")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn devices_of(flags: &GpuFlags<'_>, variable: Option<&str>) -> Option<String> {
        let environment = variable.map(|value| ("NVIDIA_VISIBLE_DEVICES".to_owned(), value.to_owned()));
        let private = Private { environment: environment.into_iter().collect() };
        gpus(flags, &private).unwrap().map(|config| config.devices)
    }

    #[test]
    fn gpus_come_from_the_flag_a_cdi_name_or_the_variable_of_the_nvidia_runtime() {
        let names = ["0".to_owned()];
        let flag = GpuFlags { gpus: Some("all"), ..GpuFlags::default() };
        assert_eq!(devices_of(&flag, Some("1")).as_deref(), Some("all"));
        let cdi = GpuFlags { cdi_names: &names, ..GpuFlags::default() };
        assert_eq!(devices_of(&cdi, None).as_deref(), Some("\"device=0\""));
        let runtime = GpuFlags { runtime: Some("nvidia"), ..GpuFlags::default() };
        assert_eq!(devices_of(&runtime, None).as_deref(), Some("all"));
        assert_eq!(devices_of(&runtime, Some("0,1")).as_deref(), Some("\"device=0,1\""));
        assert_eq!(devices_of(&runtime, Some("none")), None);
        assert_eq!(devices_of(&GpuFlags::default(), Some("all")), None);
        let both = GpuFlags { gpus: Some("all"), cdi_names: &names, ..GpuFlags::default() };
        assert!(gpus(&both, &Private { environment: Vec::new() }).is_err());
    }
}
