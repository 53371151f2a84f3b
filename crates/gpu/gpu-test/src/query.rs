//! Queries the driver, then each device.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use cudock_facts::version::{Capability, CudaVersion};
use cudock_host::Root;

use crate::compute_check;
use crate::driver_api::{self, CudaDriver, DeviceHandle, LibraryError};
use crate::error::{CudaFailure, DeviceError};
use crate::report::{ComputeResult, DeviceInfo, DeviceReport};
use crate::search::{COMPANIONS, COMPILER, LIBRARY, LibrarySearch, loaded_from};
use crate::step::{QueryAction, QueryStep};
use crate::tracker::StepTracker;

const ELF_HEADER: u64 = 64;

/// Loads the parts of the C library that libcuda needs, before the process joins a container.
///
/// A process that joins a container keeps its `libc.so.6`, but would load `libm` and others from the image. If those have a
/// different version, loading libcuda fails although nothing is wrong with the container. Loaded libraries are not
/// searched for again. Returns the names that are missing on this machine, which is not an error: newer C libraries
/// include these parts.
pub fn prepare() -> Vec<&'static str> {
    COMPANIONS.into_iter().filter(|name| !driver_api::preload(OsStr::new(name))).collect()
}

/// Queries the driver that a program with this process's file system and environment would load.
///
/// `progress` is called before each step: if the process hangs, the last step is the cause.
pub fn query(progress: &mut dyn FnMut(QueryStep)) -> Result<DeviceReport, DeviceError> {
    let environment: BTreeMap<String, String> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect();
    let root = Root::live();
    let search = LibrarySearch::new(&root, &environment);
    progress(LOAD_LIBRARY);
    let driver = match search.library_path(read_header) {
        Some(directory) => {
            // The loader of this process does not search this directory, so preload what libcuda will need.
            driver_api::preload(OsStr::new(&format!("{directory}/{COMPILER}")));
            open(OsStr::new(&format!("{directory}/{LIBRARY}")))?
        }
        None => open(OsStr::new(LIBRARY)).map_err(|error| match error {
            DeviceError::CannotLoad { reason, .. } => search.explain_failure(reason),
            other => other,
        })?,
    };
    let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    query_driver(&driver, loaded_from(&maps).unwrap_or(LIBRARY), progress)
}

/// Like [`query`], for a given driver library.
pub fn query_library(path: &Path, progress: &mut dyn FnMut(QueryStep)) -> Result<DeviceReport, DeviceError> {
    progress(LOAD_LIBRARY);
    let driver = open(path.as_os_str())?;
    query_driver(&driver, &path.to_string_lossy(), progress)
}

fn open(library: &OsStr) -> Result<CudaDriver, DeviceError> {
    if cfg!(target_feature = "crt-static") {
        return Err(DeviceError::StaticProgram);
    }
    let name = || library.to_string_lossy().into_owned();
    CudaDriver::open(library).map_err(|error| match error {
        LibraryError::Loader(reason) => DeviceError::CannotLoad { library: name(), reason },
        LibraryError::MissingSymbol(symbol) => {
            DeviceError::NotADriver { library: name(), symbol: symbol.to_owned() }
        }
    })
}

fn read_header(path: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(ELF_HEADER).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

const LOAD_LIBRARY: QueryStep = QueryStep { device: None, action: QueryAction::LoadLibrary };

fn query_driver(
    driver: &CudaDriver,
    library: &str,
    progress: &mut dyn FnMut(QueryStep),
) -> Result<DeviceReport, DeviceError> {
    let library = library.to_owned();
    let mut tracker = StepTracker::new(driver, progress);
    let queried = (|| {
        tracker.step(QueryAction::Initialize, || driver.init())?;
        let version = tracker.step(QueryAction::DriverVersion, || driver.version())?;
        Ok((version, tracker.step(QueryAction::CountDevices, || driver.count())?))
    })();
    let (number, count) = match queried {
        Ok(values) => values,
        Err(failure) => return Err(DeviceError::Driver { library, failure: Box::new(failure) }),
    };
    let Some(driver_cuda) = u32::try_from(number).ok().and_then(CudaVersion::from_api) else {
        return Err(DeviceError::OddVersion { library, number });
    };
    let devices: Vec<DeviceInfo> =
        (0..u32::try_from(count).unwrap_or(0)).map(|ordinal| check_device(ordinal, &mut tracker)).collect();
    if devices.is_empty() {
        return Err(DeviceError::NoDevice { library });
    }
    Ok(DeviceReport { driver_cuda, library, devices })
}

/// Describes a device and runs the test computation. An error affects only this device.
fn check_device(ordinal: u32, tracker: &mut StepTracker<'_>) -> DeviceInfo {
    tracker.device = Some(ordinal);
    let mut device = DeviceInfo { ordinal, ..DeviceInfo::default() };
    let result =
        describe(&mut device, tracker).and_then(|handle| compute_check::run(handle, &mut device, tracker));
    device.computes = result.unwrap_or_else(ComputeResult::Failed);
    tracker.device = None;
    device
}

fn describe(device: &mut DeviceInfo, tracker: &mut StepTracker<'_>) -> Result<DeviceHandle, CudaFailure> {
    let driver = tracker.driver;
    let handle = tracker.step(QueryAction::OpenDevice, || driver.device(device.ordinal))?;
    let name = tracker.step(QueryAction::Name, || driver.name(handle))?;
    device.name = Some(name.clone());
    let (instance, gpu) = tracker.step(QueryAction::Uuid, || {
        let instance = driver.uuid_of_instance(handle)?;
        let gpu = driver.uuid_of_gpu(handle);
        // The older function only distinguishes MIG instances if the newer one exists.
        Ok((instance, if instance.is_some() { gpu.unwrap_or(None) } else { gpu? }))
    })?;
    device.mig = is_mig(&name, instance, gpu);
    device.uuid = instance.or(gpu).map(|uuid| uuid_text(device.mig && instance.is_some(), uuid));
    let (major, minor) = tracker.step(QueryAction::Capability, || driver.capability(handle))?;
    device.capability = capability(major, minor);
    device.memory_total = Some(tracker.step(QueryAction::TotalMemory, || driver.total_memory(handle))?);
    device.bus = Some(tracker.step(QueryAction::BusId, || driver.bus(handle))?);
    Ok(handle)
}

/// A MIG instance has its own UUID in addition to the GPU's, and a name such as "NVIDIA A100 MIG 1g.5gb".
fn is_mig(name: &str, instance: Option<[u8; 16]>, gpu: Option<[u8; 16]>) -> bool {
    let differ = instance.zip(gpu).is_some_and(|(instance, gpu)| instance != gpu);
    differ || name.contains(" MIG ")
}

fn uuid_text(mig: bool, bytes: [u8; 16]) -> String {
    let kind = if mig { "MIG" } else { "GPU" };
    let dash = |at| if matches!(at, 0 | 4 | 6 | 8 | 10) { "-" } else { "" };
    let digits: String =
        bytes.iter().enumerate().map(|(at, byte)| format!("{}{byte:02x}", dash(at))).collect();
    format!("{kind}{digits}")
}

fn capability(major: i32, minor: i32) -> Option<Capability> {
    let (major, minor) = (u8::try_from(major).ok()?, u8::try_from(minor).ok()?);
    (major > 0 && minor <= 9).then(|| Capability::new(major, minor))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: [u8; 16] = [1; 16];
    const COUNTED: [u8; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 255];

    #[test]
    fn uuids_are_formatted_like_nvidia_smi() {
        assert_eq!(uuid_text(false, COUNTED), "GPU-00010203-0405-0607-0809-0a0b0c0d0eff");
        assert_eq!(uuid_text(true, COUNTED), "MIG-00010203-0405-0607-0809-0a0b0c0d0eff");
    }

    #[test]
    fn a_mig_instance_is_detected_by_uuid_or_name() {
        assert!(!is_mig("NVIDIA A100-SXM4-40GB", Some(ONE), Some(ONE)));
        assert!(!is_mig("NVIDIA A100-SXM4-40GB", None, Some(ONE)));
        assert!(is_mig("NVIDIA A100-SXM4-40GB", Some(COUNTED), Some(ONE)));
        assert!(is_mig("NVIDIA A100-SXM4-40GB MIG 1g.5gb", None, Some(ONE)));
    }

    #[test]
    fn an_invalid_capability_is_none() {
        assert_eq!(capability(9, 0), Some(Capability::new(9, 0)));
        for (major, minor) in [(0, 0), (-1, 0), (9, 10), (9, -1), (300, 0)] {
            assert_eq!(capability(major, minor), None);
        }
    }

    #[test]
    fn parts_of_the_c_library_are_loaded_or_reported() {
        let missing = prepare();
        assert!(missing.iter().all(|name| COMPANIONS.contains(name)));
        if cfg!(target_env = "gnu") {
            assert!(!missing.contains(&"libm.so.6"), "a program for glibc runs here, so there is a libm");
        }
    }
}
