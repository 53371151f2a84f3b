//! Assigns this machine's GPUs to the containers of a group.

use std::collections::BTreeMap;

use cudock_base::Report as _;
use cudock_group::Group;
use cudock_inject::{Driver, DriverKind};

use super::flags::GroupSettings;
use crate::container::config::GpuConfig;
use crate::container::home::Home;
use crate::error::RuntimeError;
use crate::start::gpu::driver_roots;

/// The GPUs of each container that requests some: containers of a group never share one, and GPUs that other groups use
/// are assigned last.
pub(super) fn assign(
    group: &Group,
    home: &Home,
    settings: &GroupSettings,
) -> Result<BTreeMap<String, GpuConfig>, RuntimeError> {
    let wanted: Vec<(&str, u32)> = group
        .containers
        .iter()
        .filter_map(|container| {
            Some((container.name.as_str(), container.resources.as_ref()?.gpu.as_ref()?.count))
        })
        .collect();
    if wanted.is_empty() || settings.without_gpus {
        return Ok(BTreeMap::new());
    }
    let config = |devices: String| GpuConfig {
        devices,
        capabilities: None,
        driver_root: settings.driver_root.clone(),
        device_root: settings.device_root.clone(),
    };
    let driver = Driver::find(&driver_roots(&config(String::new()))?)
        .map_err(|error| no_gpu(&wanted, &error.into()))?;
    if driver.kind == DriverKind::Wsl {
        // WSL exposes all GPUs through one device, which cannot be divided.
        return Ok(wanted.iter().map(|(name, _)| ((*name).to_owned(), config("all".to_owned()))).collect());
    }
    let present: Vec<u32> = driver.gpus.iter().map(|gpu| gpu.index).collect();
    let shares = share(&wanted, &present, &in_use(home)?)?;
    Ok(shares.into_iter().map(|(name, gpus)| (name, config(device_list(&gpus)))).collect())
}

/// Adds which containers request a GPU, and how to run without one.
fn no_gpu(wanted: &[(&str, u32)], error: &RuntimeError) -> RuntimeError {
    let names: Vec<&str> = wanted.iter().map(|(name, _)| *name).collect();
    let without = "run the group without GPUs: `cudock up --gpus none`".to_owned();
    let hints: Vec<String> = std::iter::once(without).chain(error.hints()).collect();
    RuntimeError::Reported {
        code: crate::error::exit_code(error),
        text: format!("{} requests a GPU: {}", names.join(", "), crate::error::error_text(error)),
        hint: Some(hints.join("; ")),
    }
}

/// The value of `--gpus`, in which a lone number would be a count.
fn device_list(gpus: &[u32]) -> String {
    let list: Vec<String> = gpus.iter().map(ToString::to_string).collect();
    format!("\"device={}\"", list.join(","))
}

/// How many containers of running groups use each GPU.
fn in_use(home: &Home) -> Result<BTreeMap<u32, usize>, RuntimeError> {
    let mut uses = BTreeMap::new();
    for (dir, config) in home.all()? {
        let Some(gpus) = config.gpus.as_ref().filter(|_| config.group.is_some()) else { continue };
        if !dir.current(&config)?.state.is_alive() {
            continue;
        }
        for index in indices(&gpus.devices) {
            *uses.entry(index).or_default() += 1;
        }
    }
    Ok(uses)
}

fn indices(devices: &str) -> Vec<u32> {
    let list = devices.trim_matches('"').strip_prefix("device=").unwrap_or_default();
    list.split(',').filter_map(|index| index.parse().ok()).collect()
}

/// Gives each container its number of GPUs, the least used first.
fn share(
    wanted: &[(&str, u32)],
    present: &[u32],
    uses: &BTreeMap<u32, usize>,
) -> Result<BTreeMap<String, Vec<u32>>, RuntimeError> {
    let mut free: Vec<u32> = present.to_vec();
    free.sort_by_key(|index| (uses.get(index).copied().unwrap_or_default(), *index));
    let mut free = free.into_iter();
    let mut shares = BTreeMap::new();
    for (name, count) in wanted {
        let mut share: Vec<u32> = free.by_ref().take(usize::try_from(*count).unwrap_or(usize::MAX)).collect();
        if share.len() < usize::try_from(*count).unwrap_or(usize::MAX) {
            let all: u64 = wanted.iter().map(|(_, count)| u64::from(*count)).sum();
            return Err(RuntimeError::Request(format!(
                "the group requests {all} GPUs, but this machine has {}, and containers of a group do not share them: \
                 use --gpus none to run without",
                present.len(),
            )));
        }
        share.sort_unstable();
        shares.insert((*name).to_owned(), share);
    }
    Ok(shares)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn containers_of_a_group_get_different_gpus_and_unused_ones_first() {
        let uses = BTreeMap::from([(0, 1)]);
        let shares = share(&[("a", 1), ("b", 2)], &[0, 1, 2, 3], &uses).unwrap();
        assert_eq!(shares.get("a").unwrap(), &[1]);
        assert_eq!(shares.get("b").unwrap(), &[2, 3]);
        let shares = share(&[("a", 2), ("b", 2)], &[0, 1, 2, 3], &uses).unwrap();
        assert_eq!(shares.get("b").unwrap(), &[0, 3]);
    }

    #[test]
    fn more_gpus_than_available_is_an_error_with_both_numbers() {
        let error = share(&[("a", 1), ("b", 2)], &[0, 1], &BTreeMap::new()).unwrap_err().to_string();
        assert!(error.contains("3 GPUs") && error.contains("has 2"), "{error}");
    }

    #[test]
    fn gpus_are_named_and_not_counted() {
        assert_eq!(device_list(&[3]), "\"device=3\"");
        assert_eq!(indices(&device_list(&[0, 11])), [0, 11]);
        assert_eq!(indices("all"), Vec::<u32>::new());
    }
}
