//! Whether a deployment sees the GPUs that are paid for.

use std::sync::atomic::AtomicBool;

use cudock_base::Usd;
use cudock_facts::Facts;
use schemars::JsonSchema;
use serde::Serialize;

use crate::cloud::CloudApi;
use crate::error::DeployError;
use crate::journal::DeploymentRecord;
use crate::observe::DeploymentName;
use crate::observe::exec::exec;
use crate::observe::logs::read_logs;

/// Devices that are listed at most: no machine has more.
const MOST_DEVICES: usize = 64;

/// The report of `cudock verify`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct VerifyReport {
    #[serde(flatten)]
    pub deployment: DeploymentName,
    pub price_per_hour: Usd,
    pub verdict: DeviceVerdict,
    /// The GPU of the size.
    pub paid_gpu: Option<String>,
    pub paid_count: u32,
    /// The product names that the deployment reported.
    pub found: Vec<String>,
}

impl VerifyReport {
    pub fn is_complete(&self) -> bool {
        self.verdict == DeviceVerdict::Complete
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DeviceVerdict {
    /// All GPUs that are paid for are there.
    Complete,
    /// Fewer than are paid for.
    Missing,
    /// The GPU differs from that of the size.
    Different,
    /// The deployment has not listed its devices.
    Unknown,
}

/// Compares the devices in a deployment with what is paid for: those that a command in it lists, or where none can be run,
/// those that its log lists.
pub fn verify(
    cloud: &dyn CloudApi,
    facts: &Facts,
    record: &DeploymentRecord,
    interrupted: &AtomicBool,
) -> Result<VerifyReport, DeployError> {
    let query = ["nvidia-smi", "-L"].map(str::to_owned);
    let found = match exec(cloud, record, &query, interrupted) {
        Ok(output) if output.exit_code == 0 => listed_devices(&output.stdout),
        Err(DeployError::Interrupted) => return Err(DeployError::Interrupted),
        _ => {
            let logs = read_logs(cloud, &record.identity, None);
            listed_devices(&logs.map_err(|error| {
                DeployError::cloud(format!("cannot read the log of `{}`", record.name), error)
            })?)
        }
    };
    let paid_gpu = gpu_of_size(facts, record.size.as_deref());
    let verdict = judge(facts, record.gpus, paid_gpu.as_deref(), &found);
    Ok(VerifyReport {
        deployment: DeploymentName::of(record),
        price_per_hour: record.price_per_hour,
        verdict,
        paid_gpu,
        paid_count: record.gpus,
        found,
    })
}

/// The GPU of a size or a workload profile.
fn gpu_of_size(facts: &Facts, size: Option<&str>) -> Option<String> {
    let name = size?;
    let profile = || {
        let profiles = &facts.services().profile;
        profiles
            .iter()
            .find(|profile| profile.name.eq_ignore_ascii_case(name))
            .map(|profile| profile.gpu.clone())
    };
    facts.sizes().find(name).one().and_then(|size| size.gpu.clone()).or_else(profile)
}

fn judge(facts: &Facts, paid: u32, paid_gpu: Option<&str>, found: &[String]) -> DeviceVerdict {
    if found.is_empty() && paid > 0 {
        return DeviceVerdict::Unknown;
    }
    let is_paid_for = |product: &String| {
        paid_gpu.is_none_or(|gpu| facts.gpus().find(product).rows().iter().any(|row| row.id == gpu))
    };
    if !found.iter().all(is_paid_for) {
        return DeviceVerdict::Different;
    }
    let count = u32::try_from(found.len()).unwrap_or(u32::MAX);
    if count < paid { DeviceVerdict::Missing } else { DeviceVerdict::Complete }
}

/// The devices that a log lists as `nvidia-smi -L` does: `GPU 0: Tesla T4 (UUID: GPU-…)`. The last listing counts.
fn listed_devices(logs: &str) -> Vec<String> {
    let mut devices: Vec<String> = Vec::new();
    for line in logs.lines() {
        let Some((index, product)) = device(line) else { continue };
        if index == 0 {
            devices.clear();
        }
        if devices.len() < MOST_DEVICES {
            devices.push(product.to_owned());
        }
    }
    devices
}

/// The index and the product name in a line.
fn device(line: &str) -> Option<(u32, &str)> {
    let (_, rest) = line.split_once("GPU ")?;
    let (index, rest) = rest.split_once(": ")?;
    let (product, _) = rest.split_once(" (UUID: ")?;
    Some((index.parse().ok()?, product.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_listing_of_devices_counts() {
        let logs = "starting\nGPU 0: Tesla T4 (UUID: GPU-1)\nGPU 1: Tesla T4 (UUID: GPU-2)\nGPU memory: 3\n\
                    2026-11-17 GPU 0: NVIDIA A100 80GB PCIe (UUID: GPU-3)\n";
        assert_eq!(listed_devices(logs), ["NVIDIA A100 80GB PCIe"]);
        assert!(listed_devices("GPU 0: no end\nGPU x: T4 (UUID: 1)").is_empty());
    }

    #[test]
    fn devices_are_compared_with_what_is_paid_for() {
        let facts = Facts::embedded();
        let t4 = || vec!["Tesla T4".to_owned()];
        for (paid, gpu, found, verdict) in [
            (1, Some("T4"), t4(), DeviceVerdict::Complete),
            (4, Some("T4"), t4(), DeviceVerdict::Missing),
            (1, Some("H100"), t4(), DeviceVerdict::Different),
            (1, Some("T4"), vec![], DeviceVerdict::Unknown),
            (0, None, vec![], DeviceVerdict::Complete),
        ] {
            assert_eq!(judge(&facts, paid, gpu, &found), verdict, "{paid} {gpu:?} {found:?}");
        }
    }
}
