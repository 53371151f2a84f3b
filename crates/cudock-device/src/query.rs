//! The query: the driver, then each device in turn.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use cudock_facts::version::{Capability, CudaVersion};
use cudock_host::Root;

use crate::driver_api::{self, Code, DeviceHandle, Driver, OpenError};
use crate::error::{DeviceError, Failure};
use crate::proof;
use crate::report::{Device, Outcome, Report};
use crate::search::{COMPANIONS, COMPILER, LIBRARY, Search, loaded_from};
use crate::step::{Action, Step};

/// How much of a file tells for which machine it is.
const ELF_HEADER: u64 = 64;

/// Loads what libcuda will need of the C library, before the process joins a container.
///
/// A process that joins a container keeps its own `libc.so.6`, but would take `libm` and the rest from the image. If
/// that is of another release of the C library they do not fit, and loading libcuda fails though nothing is wrong with
/// the container. What is loaded already is not searched for again. Gives the names that this machine lacks, which is
/// no fault: newer C libraries have these parts built in.
pub fn prepare() -> Vec<&'static str> {
    COMPANIONS.into_iter().filter(|name| !driver_api::keep_loaded(OsStr::new(name))).collect()
}

/// Asks the driver that a program in this process's file system, with this process's environment, would load.
///
/// `progress` is told of each step before it is taken: when the process hangs, the last one told is where.
pub fn query(progress: &mut dyn FnMut(Step)) -> Result<Report, DeviceError> {
    let environment: BTreeMap<String, String> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect();
    let root = Root::live();
    let search = Search::new(&root, &environment);
    let mut trail = Trail { progress, device: None };
    trail.announce(Action::LoadLibrary);
    let driver = match search.library_path(beginning) {
        Some(folder) => {
            // The loader of this process does not know the folder, so what libcuda loads later is loaded now.
            driver_api::keep_loaded(OsStr::new(&format!("{folder}/{COMPILER}")));
            open(OsStr::new(&format!("{folder}/{LIBRARY}")))?
        }
        None => open(OsStr::new(LIBRARY)).map_err(|error| match error {
            DeviceError::CannotLoad { reason, .. } => search.why_not(reason),
            other => other,
        })?,
    };
    let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    ask(&driver, loaded_from(&maps).unwrap_or(LIBRARY), &mut trail)
}

/// As [`query`], of the driver's library at a path.
pub fn query_library(path: &Path, progress: &mut dyn FnMut(Step)) -> Result<Report, DeviceError> {
    let mut trail = Trail { progress, device: None };
    trail.announce(Action::LoadLibrary);
    let driver = open(path.as_os_str())?;
    ask(&driver, &path.to_string_lossy(), &mut trail)
}

fn open(library: &OsStr) -> Result<Driver, DeviceError> {
    if cfg!(target_feature = "crt-static") {
        return Err(DeviceError::StaticProgram);
    }
    let name = || library.to_string_lossy().into_owned();
    Driver::open(library).map_err(|error| match error {
        OpenError::Loader(reason) => DeviceError::CannotLoad { library: name(), reason },
        OpenError::Lacks(symbol) => DeviceError::NotADriver { library: name(), symbol: symbol.to_owned() },
    })
}

fn beginning(path: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(ELF_HEADER).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Where the query is.
pub(crate) struct Trail<'p> {
    progress: &'p mut dyn FnMut(Step),
    device: Option<u32>,
}

impl Trail<'_> {
    fn announce(&mut self, action: Action) -> Step {
        let step = Step { device: self.device, action };
        (self.progress)(step);
        step
    }

    /// Announces a step, takes it, and puts the driver's name to an error.
    pub(crate) fn step<T>(
        &mut self,
        driver: &Driver,
        action: Action,
        take: impl FnOnce() -> Result<T, Code>,
    ) -> Result<T, Failure> {
        let step = self.announce(action);
        take().map_err(|code| Failure::new(step, code.0, driver.error_name(code), driver.error_string(code)))
    }
}

fn ask(driver: &Driver, library: &str, trail: &mut Trail<'_>) -> Result<Report, DeviceError> {
    let library = library.to_owned();
    let asked = (|| {
        trail.step(driver, Action::Initialise, || driver.init())?;
        let version = trail.step(driver, Action::DriverVersion, || driver.version())?;
        Ok((version, trail.step(driver, Action::CountDevices, || driver.count())?))
    })();
    let (number, count) = match asked {
        Ok(answers) => answers,
        Err(failure) => return Err(DeviceError::Driver { library, failure: Box::new(failure) }),
    };
    let Some(driver_cuda) = u32::try_from(number).ok().and_then(CudaVersion::from_api) else {
        return Err(DeviceError::OddVersion { library, number });
    };
    let devices: Vec<Device> =
        (0..u32::try_from(count).unwrap_or(0)).map(|ordinal| examine(driver, ordinal, trail)).collect();
    if devices.is_empty() {
        return Err(DeviceError::NoDevice { library });
    }
    Ok(Report { driver_cuda, library, devices })
}

/// Describes a device and has it compute. An error ends that device's turn and nobody else's.
fn examine(driver: &Driver, ordinal: u32, trail: &mut Trail<'_>) -> Device {
    trail.device = Some(ordinal);
    let mut device = Device {
        ordinal,
        name: None,
        uuid: None,
        capability: None,
        memory_total: None,
        memory_free: None,
        bus: None,
        mig: false,
        computes: Outcome::Yes,
        launch_us: None,
        to_device_gb_s: None,
        from_device_gb_s: None,
    };
    let outcome = describe(driver, &mut device, trail)
        .and_then(|handle| proof::prove(driver, handle, &mut device, trail));
    device.computes = outcome.unwrap_or_else(Outcome::Failed);
    trail.device = None;
    device
}

fn describe(driver: &Driver, device: &mut Device, trail: &mut Trail<'_>) -> Result<DeviceHandle, Failure> {
    let handle = trail.step(driver, Action::OpenDevice, || driver.device(device.ordinal))?;
    let name = trail.step(driver, Action::Name, || driver.name(handle))?;
    device.name = Some(name.clone());
    let (instance, gpu) = trail.step(driver, Action::Uuid, || {
        let instance = driver.uuid_of_instance(handle)?;
        let gpu = driver.uuid_of_gpu(handle);
        // The older function only tells slices from whole GPUs where there is the newer one.
        Ok((instance, if instance.is_some() { gpu.unwrap_or(None) } else { gpu? }))
    })?;
    device.mig = is_mig(&name, instance, gpu);
    device.uuid = instance.or(gpu).map(|uuid| uuid_text(device.mig && instance.is_some(), uuid));
    let (major, minor) = trail.step(driver, Action::Capability, || driver.capability(handle))?;
    device.capability = capability(major, minor);
    device.memory_total = Some(trail.step(driver, Action::TotalMemory, || driver.total_memory(handle))?);
    device.bus = Some(trail.step(driver, Action::BusId, || driver.bus(handle))?);
    Ok(handle)
}

/// A slice has a UUID of its own beside its GPU's, and says so in its name, such as "NVIDIA A100 MIG 1g.5gb".
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
    fn a_uuid_is_written_as_nvidia_smi_does() {
        assert_eq!(uuid_text(false, COUNTED), "GPU-00010203-0405-0607-0809-0a0b0c0d0eff");
        assert_eq!(uuid_text(true, COUNTED), "MIG-00010203-0405-0607-0809-0a0b0c0d0eff");
    }

    #[test]
    fn a_slice_is_known_by_its_two_uuids_or_by_its_name() {
        assert!(!is_mig("NVIDIA A100-SXM4-40GB", Some(ONE), Some(ONE)));
        assert!(!is_mig("NVIDIA A100-SXM4-40GB", None, Some(ONE)));
        assert!(is_mig("NVIDIA A100-SXM4-40GB", Some(COUNTED), Some(ONE)));
        assert!(is_mig("NVIDIA A100-SXM4-40GB MIG 1g.5gb", None, Some(ONE)));
    }

    #[test]
    fn an_impossible_capability_is_none() {
        assert_eq!(capability(9, 0), Some(Capability::new(9, 0)));
        for (major, minor) in [(0, 0), (-1, 0), (9, 10), (9, -1), (300, 0)] {
            assert_eq!(capability(major, minor), None);
        }
    }

    #[test]
    fn the_parts_of_the_c_library_are_loaded_or_named() {
        let missing = prepare();
        assert!(missing.iter().all(|name| COMPANIONS.contains(name)));
        if cfg!(target_env = "gnu") {
            assert!(!missing.contains(&"libm.so.6"), "a program for glibc runs here, so there is a libm");
        }
    }
}
