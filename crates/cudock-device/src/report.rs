//! What the driver shows, and whether it works.

use std::fmt::{self, Write};

use cudock_facts::version::{Capability, CudaVersion};
use serde::{Deserialize, Serialize};

use crate::error::Failure;

/// What a process sees of the driver. Field names are stable.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The newest CUDA the driver knows.
    pub driver_cuda: CudaVersion,
    /// The file that was loaded, by which a copy in the image can be told from the host's.
    pub library: String,
    /// The devices, in CUDA's order.
    pub devices: Vec<Device>,
}

/// One GPU, or one slice of a GPU. What a device that failed did not tell any more is none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Device {
    /// Its number, as CUDA counts what the process may use.
    pub ordinal: u32,
    /// Such as "NVIDIA H200".
    pub name: Option<String>,
    /// Such as `GPU-8a4ff2b5-…`, or `MIG-…` for a slice. None from drivers before CUDA 9.2.
    pub uuid: Option<String>,
    /// What it can execute.
    pub capability: Option<Capability>,
    /// Bytes.
    pub memory_total: Option<u64>,
    /// Bytes, with this process's own context already taken off.
    pub memory_free: Option<u64>,
    /// Its PCI address, such as `0000:1B:00.0`.
    pub bus: Option<String>,
    /// Whether it is a slice of a GPU.
    pub mig: bool,
    /// Whether it computes.
    pub computes: Outcome,
    /// Microseconds from the launch of a kernel over 2^20 numbers to its end, the best of three.
    pub launch_us: Option<f64>,
    /// Gigabytes a second from ordinary, pageable memory to the device, the best of three copies of 4 MiB.
    pub to_device_gb_s: Option<f64>,
    /// The same from the device.
    pub from_device_gb_s: Option<f64>,
}

/// What came of the work that a device was given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum Outcome {
    /// Every number came back right.
    Yes,
    /// The driver reported success, and numbers are wrong.
    Wrong {
        /// The first of them.
        element: u32,
        /// What it should be.
        expected: u32,
        /// What came back.
        found: u32,
        /// How many are wrong.
        wrong: u32,
        /// Of how many.
        of: u32,
    },
    /// The driver refused a call.
    Failed(Failure),
}

impl Outcome {
    /// Whether every number came back right.
    pub fn is_yes(&self) -> bool {
        matches!(self, Self::Yes)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Yes => out.write_str("computes"),
            Self::Wrong { element, expected, found, wrong, of } => write!(
                out,
                "computes wrongly: {wrong} of {of} numbers, the first at {element} is {found} and not {expected}"
            ),
            Self::Failed(failure) => write!(out, "does not compute: {failure}"),
        }
    }
}

impl Report {
    /// Whether every device computes.
    pub fn all_compute(&self) -> bool {
        self.devices.iter().all(|device| device.computes.is_yes())
    }

    /// What to do about the devices that do not compute, each thing once.
    pub fn way_out(&self) -> Vec<String> {
        let mut ways: Vec<String> = Vec::new();
        for device in &self.devices {
            let here = match &device.computes {
                Outcome::Yes => &[][..],
                Outcome::Failed(failure) => &failure.way_out,
                Outcome::Wrong { .. } => &[String::from(
                    "Take this GPU out of use and look for its Xid and ECC errors with `dmesg | grep Xid` and `nvidia-smi -q -d ECC`.",
                )],
            };
            for way in here {
                if !ways.contains(way) {
                    ways.push(way.clone());
                }
            }
        }
        ways
    }

    /// The report for people: a line about the driver, and one for each device.
    pub fn text(&self) -> String {
        let mut text = format!("driver for CUDA {}, {}\n", self.driver_cuda, self.library);
        for device in &self.devices {
            // Writing into a string does not fail.
            writeln!(text, "{device}").ok();
        }
        text
    }
}

impl fmt::Display for Device {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "GPU {}: {}", self.ordinal, self.name.as_deref().unwrap_or("without a name"))?;
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
    use crate::step::{Action, Step};

    fn h200() -> Device {
        Device {
            ordinal: 0,
            name: Some("NVIDIA H200".to_owned()),
            uuid: Some("GPU-00010203-0405-0607-0809-0a0b0c0d0e0f".to_owned()),
            capability: Some(Capability::new(9, 0)),
            memory_total: Some(150_109_880_320),
            memory_free: Some(149_500_000_000),
            bus: Some("0000:1B:00.0".to_owned()),
            mig: false,
            computes: Outcome::Yes,
            launch_us: Some(9.25),
            to_device_gb_s: Some(8.5),
            from_device_gb_s: Some(11.75),
        }
    }

    fn silent(ordinal: u32, code: i32) -> Device {
        let step = Step { device: Some(ordinal), action: Action::OpenDevice };
        let failure = Failure::new(step, code, None, None);
        Device {
            ordinal,
            name: None,
            uuid: None,
            capability: None,
            memory_total: None,
            memory_free: None,
            bus: None,
            computes: Outcome::Failed(failure),
            launch_us: None,
            to_device_gb_s: None,
            from_device_gb_s: None,
            ..h200()
        }
    }

    fn report(devices: Vec<Device>) -> Report {
        Report {
            driver_cuda: CudaVersion::new(13, 0),
            library: "/usr/lib/libcuda.so.580.1".to_owned(),
            devices,
        }
    }

    #[test]
    fn people_get_a_line_for_each_device() {
        assert_eq!(
            report(vec![h200(), silent(1, 999)]).text(),
            "driver for CUDA 13.0, /usr/lib/libcuda.so.580.1\n\
             GPU 0: NVIDIA H200, compute capability 9.0, 139.2 of 139.8 GiB free, 0000:1B:00.0, \
             GPU-00010203-0405-0607-0809-0a0b0c0d0e0f: computes, kernel in 9.2 µs, 8.5 GB/s to it, 11.8 GB/s from it\n\
             GPU 1: without a name: does not compute: opening GPU 1 (cuDeviceGet) failed: unknown error \
             (cudaErrorUnknown, error 999)\n"
        );
    }

    #[test]
    fn the_way_out_of_one_fault_is_told_once() {
        let both = report(vec![silent(0, 999), silent(1, 999)]);
        assert!(!both.all_compute());
        assert_eq!(both.way_out(), report(vec![silent(0, 999)]).way_out());
        assert!(!both.way_out().is_empty());
        assert!(report(vec![h200()]).way_out().is_empty());
    }

    #[test]
    fn a_report_crosses_a_pipe_unchanged() {
        let wrong = Outcome::Wrong { element: 1, expected: 2, found: 3, wrong: 4, of: 5 };
        let report = report(vec![h200(), silent(1, 100), Device { computes: wrong, ..h200() }]);
        let json = serde_json::to_string(&report).unwrap();
        assert_eq!(serde_json::from_str::<Report>(&json).unwrap(), report);
    }

    #[test]
    fn the_names_of_fields_are_a_promise() {
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
