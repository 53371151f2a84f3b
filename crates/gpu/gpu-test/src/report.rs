//! The result of a query.

use std::fmt::{self, Write};

use cudock_facts::version::{Capability, CudaVersion};
use serde::{Deserialize, Serialize};

use crate::error::CudaFailure;

/// The driver as seen by a process. Field names are stable.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeviceReport {
    /// The newest CUDA version that the driver supports.
    pub driver_cuda: CudaVersion,
    /// The loaded file, which distinguishes a copy in the image from the host's.
    pub library: String,
    /// The devices, in CUDA's order.
    pub devices: Vec<DeviceInfo>,
}

/// One GPU or MIG instance. Fields that a failed device did not report are none.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceInfo {
    /// The index among the devices visible to the process.
    pub ordinal: u32,
    /// The product name, such as "NVIDIA H200".
    pub name: Option<String>,
    /// The UUID, such as `GPU-8a4ff2b5-…`, or `MIG-…` for a MIG instance. None with drivers before
    /// CUDA 9.2.
    pub uuid: Option<String>,
    pub capability: Option<Capability>,
    /// Total memory in bytes.
    pub memory_total: Option<u64>,
    /// Free memory in bytes, after this process's own context.
    pub memory_free: Option<u64>,
    /// The PCI address, such as `0000:1B:00.0`.
    pub bus: Option<String>,
    /// Whether it is a MIG instance.
    pub mig: bool,
    pub computes: ComputeResult,
    /// Time in microseconds of a kernel over 2^20 numbers, the best of three runs.
    pub launch_us: Option<f64>,
    /// Rate in GB/s from pageable memory to the device, the best of three copies of 4 MiB.
    pub to_device_gb_s: Option<f64>,
    /// Rate in GB/s from the device to pageable memory.
    pub from_device_gb_s: Option<f64>,
}

/// The result of the test computation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum ComputeResult {
    /// All results are correct.
    #[default]
    Yes,
    /// The driver reported success, but results are wrong.
    Wrong {
        /// The first wrong element.
        element: u32,
        expected: u32,
        found: u32,
        /// The number of wrong elements, and of all.
        wrong: u32,
        of: u32,
    },
    /// A driver call failed.
    Failed(CudaFailure),
}

impl fmt::Display for ComputeResult {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Yes => out.write_str("computes"),
            Self::Wrong { element, expected, found, wrong, of } => write!(
                out,
                "computes wrong results: {wrong} of {of} numbers, the first at index {element} is {found} instead of {expected}"
            ),
            Self::Failed(failure) => write!(out, "does not compute: {failure}"),
        }
    }
}

impl DeviceReport {
    /// Whether all devices compute correctly.
    pub fn all_compute(&self) -> bool {
        self.devices.iter().all(|device| device.computes == ComputeResult::Yes)
    }

    /// Suggested fixes for devices that fail, without duplicates.
    pub fn hints(&self) -> Vec<String> {
        let mut hints: Vec<String> = Vec::new();
        for device in &self.devices {
            let here = match &device.computes {
                ComputeResult::Yes => &[][..],
                ComputeResult::Failed(failure) => &failure.hints,
                ComputeResult::Wrong { .. } => &[String::from(
                    "Take this GPU out of service and check its Xid and ECC errors with `dmesg | grep Xid` and `nvidia-smi -q -d ECC`.",
                )],
            };
            for hint in here {
                if !hints.contains(hint) {
                    hints.push(hint.clone());
                }
            }
        }
        hints
    }

    /// The report as text: one line for the driver, and one for each device.
    pub fn text(&self) -> String {
        let mut text = format!("driver for CUDA {}, {}\n", self.driver_cuda, self.library);
        for device in &self.devices {
            // Writing to a String cannot fail.
            writeln!(text, "{device}").ok();
        }
        text
    }
}

impl fmt::Display for DeviceInfo {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "GPU {}: {}", self.ordinal, self.name.as_deref().unwrap_or("unknown name"))?;
        if let Some(capability) = self.capability {
            write!(out, ", compute capability {capability}")?;
        }
        match (self.memory_total.map(gib), self.memory_free.map(gib)) {
            (Some(total), Some(free)) => write!(out, ", {free:.1} of {total:.1} GiB free")?,
            (Some(total), None) => write!(out, ", {total:.1} GiB")?,
            _ => {}
        }
        for known in [&self.bus, &self.uuid].into_iter().flatten() {
            write!(out, ", {known}")?;
        }
        write!(out, ": {}", self.computes)?;
        if let Some(launch) = self.launch_us {
            write!(out, ", kernel in {launch:.1} µs")?;
        }
        if let Some(rate) = self.to_device_gb_s {
            write!(out, ", {rate:.1} GB/s to it")?;
        }
        if let Some(rate) = self.from_device_gb_s {
            write!(out, ", {rate:.1} GB/s from it")?;
        }
        Ok(())
    }
}

#[allow(clippy::cast_precision_loss, reason = "printed with one digit")]
fn gib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 30)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::step::{QueryAction, QueryStep};

    fn h200() -> DeviceInfo {
        DeviceInfo {
            ordinal: 0,
            name: Some("NVIDIA H200".to_owned()),
            uuid: Some("GPU-00010203-0405-0607-0809-0a0b0c0d0e0f".to_owned()),
            capability: Some(Capability::new(9, 0)),
            memory_total: Some(150_109_880_320),
            memory_free: Some(149_500_000_000),
            bus: Some("0000:1B:00.0".to_owned()),
            mig: false,
            computes: ComputeResult::Yes,
            launch_us: Some(9.25),
            to_device_gb_s: Some(8.5),
            from_device_gb_s: Some(11.75),
        }
    }

    fn silent(ordinal: u32, code: i32) -> DeviceInfo {
        let step = QueryStep { device: Some(ordinal), action: QueryAction::OpenDevice };
        let failure = CudaFailure::new(step, code, None, None);
        DeviceInfo { ordinal, computes: ComputeResult::Failed(failure), ..DeviceInfo::default() }
    }

    fn report(devices: Vec<DeviceInfo>) -> DeviceReport {
        DeviceReport {
            driver_cuda: CudaVersion::new(13, 0),
            library: "/usr/lib/libcuda.so.580.1".to_owned(),
            devices,
        }
    }

    #[test]
    fn the_text_has_a_line_for_each_device() {
        assert_eq!(
            report(vec![h200(), silent(1, 999)]).text(),
            "driver for CUDA 13.0, /usr/lib/libcuda.so.580.1\n\
             GPU 0: NVIDIA H200, compute capability 9.0, 139.2 of 139.8 GiB free, 0000:1B:00.0, \
             GPU-00010203-0405-0607-0809-0a0b0c0d0e0f: computes, kernel in 9.2 µs, 8.5 GB/s to it, 11.8 GB/s from it\n\
             GPU 1: unknown name: does not compute: opening GPU 1 (cuDeviceGet) failed: unknown error \
             (cudaErrorUnknown, error 999)\n"
        );
    }

    #[test]
    fn duplicate_hints_are_removed() {
        let both = report(vec![silent(0, 999), silent(1, 999)]);
        assert!(!both.all_compute());
        assert_eq!(both.hints(), report(vec![silent(0, 999)]).hints());
        assert!(!both.hints().is_empty());
        assert!(report(vec![h200()]).hints().is_empty());
    }

    #[test]
    fn a_report_survives_serialization() {
        let wrong = ComputeResult::Wrong { element: 1, expected: 2, found: 3, wrong: 4, of: 5 };
        let report = report(vec![h200(), silent(1, 100), DeviceInfo { computes: wrong, ..h200() }]);
        let json = serde_json::to_string(&report).unwrap();
        assert_eq!(serde_json::from_str::<DeviceReport>(&json).unwrap(), report);
    }

    #[test]
    fn field_names_are_stable() {
        let json = serde_json::to_value(report(vec![h200()])).unwrap();
        assert_eq!(
            json,
            serde_json::json!({
                "driver_cuda": "13.0",
                "library": "/usr/lib/libcuda.so.580.1",
                "devices": [{
                    "ordinal": 0,
                    "name": "NVIDIA H200",
                    "uuid": "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f",
                    "capability": "9.0",
                    "memory_total": 150_109_880_320_u64,
                    "memory_free": 149_500_000_000_u64,
                    "bus": "0000:1B:00.0",
                    "mig": false,
                    "computes": {"outcome": "yes"},
                    "launch_us": 9.25,
                    "to_device_gb_s": 8.5,
                    "from_device_gb_s": 11.75,
                }],
            })
        );
        let failed = serde_json::to_value(silent(1, 100).computes).unwrap();
        assert_eq!(failed["outcome"], "failed");
        assert_eq!(failed["step"], serde_json::json!({"device": 1, "action": "open-device"}));
        assert_eq!((&failed["code"], &failed["name"]), (&100.into(), &"cudaErrorNoDevice".into()));
    }
}
