//! What NVIDIA's management library says.
//!
//! It is asked in a child process: a broken driver hangs or crashes whoever loads its libraries, and a doctor
//! must outlive its patient.

use std::ffi::OsStr;
use std::io::Read;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use cudock_facts::version::{Capability, CudaVersion};
use nvml_wrapper::enums::device::UsedGpuMemory;
use nvml_wrapper::{Device, Nvml, cuda_driver_version_major, cuda_driver_version_minor};

use serde::{Deserialize, Serialize};

use crate::host::{NvmlAnswer, NvmlGpu, NvmlReport};

/// How long the library may take. A host without persistence mode needs seconds for each GPU.
const PATIENCE: Duration = Duration::from_secs(60);

/// Asks in a child: `program` with `arguments` must print what [`ask_here`] answers, as JSON.
pub fn ask_in_child(program: &Path, arguments: &[&OsStr]) -> NvmlAnswer {
    match output_of(program, arguments) {
        Ok((answer, status)) => serde_json::from_str(&answer)
            .unwrap_or_else(|_| NvmlAnswer::Failed(format!("the query ended without an answer ({status})"))),
        Err(error) => NvmlAnswer::Failed(error),
    }
}

/// What a child wrote, and how it ended.
fn output_of(program: &Path, arguments: &[&OsStr]) -> Result<(String, ExitStatus), String> {
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| format!("cannot start the query: {error}"))?;
    let deadline = Instant::now() + PATIENCE;
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(5)),
            Ok(None) => {
                // A process stuck in the driver may not even die; it is left to init then.
                child.kill().ok();
                let seconds = PATIENCE.as_secs();
                return Err(format!("no answer within {seconds} s: the driver hangs"));
            }
            Err(error) => return Err(format!("cannot wait for the query: {error}")),
        }
    };
    let mut answer = String::new();
    if let Some(mut output) = child.stdout.take() {
        output.read_to_string(&mut answer).ok();
    }
    Ok((answer, status))
}

/// Asks in this process, through the library at `path` or where the loader finds it.
pub fn ask_here(path: Option<&OsStr>) -> NvmlAnswer {
    match report(path.unwrap_or(OsStr::new("libnvidia-ml.so.1"))) {
        Ok(report) => NvmlAnswer::Answered(report),
        Err(error) => NvmlAnswer::Failed(error),
    }
}

fn report(library: &OsStr) -> Result<NvmlReport, String> {
    let nvml = Nvml::builder().lib_path(library).init().map_err(|error| error.to_string())?;
    let driver = nvml.sys_driver_version().map_err(|error| error.to_string())?;
    let count = nvml.device_count().map_err(|error| error.to_string())?;
    let gpus =
        (0..count).filter_map(|index| nvml.device_by_index(index).ok()).map(|device| gpu(&device)).collect();
    Ok(NvmlReport {
        driver: driver.parse().map_err(|error| format!("{error}"))?,
        cuda: nvml.sys_cuda_driver_version().ok().and_then(|version| {
            let major = u8::try_from(cuda_driver_version_major(version)).ok()?;
            let minor = u8::try_from(cuda_driver_version_minor(version)).ok()?;
            Some(CudaVersion::new(major, minor))
        }),
        gpus,
    })
}

fn gpu(device: &Device<'_>) -> NvmlGpu {
    let memory = device.memory_info().ok();
    let mig = device.mig_mode().ok().map(|mode| mode.current == 1);
    NvmlGpu {
        name: device.name().unwrap_or_else(|_| "unknown".to_owned()),
        capability: device.cuda_compute_capability().ok().and_then(|capability| {
            let number = u16::try_from(capability.major * 10 + capability.minor).ok()?;
            Capability::from_number(number)
        }),
        uuid: device.uuid().ok(),
        memory_total: memory.as_ref().map(|memory| memory.total),
        memory_used: memory.as_ref().map(|memory| memory.used),
        persistence: device.is_in_persistent_mode().ok(),
        mig,
        mig_devices: mig.filter(|enabled| *enabled).and_then(|_| mig_devices(device)),
        compute_mode: device.compute_mode().ok().map(|mode| format!("{mode:?}")),
    }
}

fn mig_devices(device: &Device<'_>) -> Option<u32> {
    let most = device.mig_device_count().ok()?;
    let there = (0..most).filter(|index| device.mig_device_by_index(*index).is_ok()).count();
    u32::try_from(there).ok()
}

/// How full and busy the GPUs are, asked for again and again through one open library.
pub struct Gauges {
    nvml: Nvml,
}

/// A GPU at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gauge {
    /// Its number.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// Bytes in use, by everybody.
    pub memory_used: u64,
    /// Bytes it has.
    pub memory_total: u64,
    /// Percent of the last moments in which a kernel ran.
    pub utilisation_percent: Option<u32>,
}

impl Gauges {
    /// Opens the library; none where there is none. A broken driver may hang here.
    pub fn open() -> Option<Self> {
        let nvml = Nvml::builder().lib_path(OsStr::new("libnvidia-ml.so.1")).init().ok()?;
        Some(Self { nvml })
    }

    /// Reads all GPUs.
    pub fn read(&self) -> Vec<Gauge> {
        let count = self.nvml.device_count().unwrap_or(0);
        (0..count)
            .filter_map(|index| {
                let device = self.nvml.device_by_index(index).ok()?;
                let memory = device.memory_info().ok()?;
                Some(Gauge {
                    index,
                    name: device.name().ok()?,
                    memory_used: memory.used,
                    memory_total: memory.total,
                    utilisation_percent: device.utilization_rates().ok().map(|rates| rates.gpu),
                })
            })
            .collect()
    }
}

/// A process on a GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuProcess {
    /// The GPU's number.
    pub gpu: u32,
    /// The process, as the host numbers it.
    pub pid: u32,
    /// Percent of the last moments in which its kernels ran; none where the driver does not tell.
    pub percent: Option<u32>,
    /// Bytes of GPU memory it holds; none where the driver does not tell.
    pub memory_bytes: Option<u64>,
}

/// How far back the driver's samples of utilization count.
const RECENT: Duration = Duration::from_secs(2);

/// The running program, for a child that asks NVML. It can be executed even where its file cannot be found by name, as in
/// another mount namespace.
pub fn this_program() -> &'static Path {
    Path::new("/proc/self/exe")
}

/// The processes on all GPUs, asked for in a child: `program` with `arguments` must print what [`processes_here`]
/// answers, as JSON.
pub fn processes_in_child(program: &Path, arguments: &[&OsStr]) -> Result<Vec<GpuProcess>, String> {
    let (answer, status) = output_of(program, arguments)?;
    serde_json::from_str::<Result<_, String>>(&answer)
        .unwrap_or_else(|_| Err(format!("the query ended without an answer ({status})")))
}

/// The processes on all GPUs, asked for in this process.
pub fn processes_here(path: Option<&OsStr>) -> Result<Vec<GpuProcess>, String> {
    let library = path.unwrap_or(OsStr::new("libnvidia-ml.so.1"));
    let nvml = Nvml::builder().lib_path(library).init().map_err(|error| error.to_string())?;
    let count = nvml.device_count().map_err(|error| error.to_string())?;
    let mut all = Vec::new();
    for gpu in 0..count {
        if let Ok(device) = nvml.device_by_index(gpu) {
            all.extend(processes_of(gpu, &device));
        }
    }
    Ok(all)
}

fn processes_of(gpu: u32, device: &Device<'_>) -> Vec<GpuProcess> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().saturating_sub(RECENT);
    let since = u64::try_from(since.as_micros()).unwrap_or_default();
    // An error says that there were no samples, as well as that the card has none: then nothing is known.
    let samples = device.process_utilization_stats(since).ok();
    let percent = |pid: u32| {
        let of_pid = samples.as_ref()?.iter().filter(|sample| sample.pid == pid);
        Some(of_pid.max_by_key(|sample| sample.timestamp).map_or(0, |sample| sample.sm_util))
    };
    let compute = device.running_compute_processes().unwrap_or_default();
    let graphics = device.running_graphics_processes().unwrap_or_default();
    let mut all: Vec<GpuProcess> = Vec::new();
    for process in compute.into_iter().chain(graphics) {
        if all.iter().any(|known| known.pid == process.pid) {
            continue;
        }
        let memory_bytes = match process.used_gpu_memory {
            UsedGpuMemory::Used(bytes) => Some(bytes),
            UsedGpuMemory::Unavailable => None,
        };
        all.push(GpuProcess { gpu, pid: process.pid, percent: percent(process.pid), memory_bytes });
    }
    all
}
