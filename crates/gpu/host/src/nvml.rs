//! Queries NVIDIA's management library.
//!
//! This happens in a child process, because a broken driver can hang or crash any process that loads its libraries.

use std::ffi::OsStr;
use std::io::Read;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use cudock_facts::version::{Capability, CudaVersion};
use nvml_wrapper::enums::device::UsedGpuMemory;
use nvml_wrapper::struct_wrappers::device::ProcessInfo;
use nvml_wrapper::{Device, Nvml, cuda_driver_version_major, cuda_driver_version_minor};

use serde::{Deserialize, Serialize};

use crate::host::{NvmlGpu, NvmlReport, NvmlResult};

/// The time limit. A host without persistence mode needs seconds for each GPU.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Queries in a child process: `program` with `arguments` must print the result of [`query_here`] as JSON.
pub fn query_in_child(program: &Path, arguments: &[&OsStr]) -> NvmlResult {
    match output_of(program, arguments) {
        Ok((answer, status)) => serde_json::from_str(&answer)
            .unwrap_or_else(|_| NvmlResult::Failed(format!("the query ended without a result ({status})"))),
        Err(error) => NvmlResult::Failed(error),
    }
}

fn output_of(program: &Path, arguments: &[&OsStr]) -> Result<(String, ExitStatus), String> {
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| format!("cannot start the query: {error}"))?;
    let deadline = Instant::now() + TIMEOUT;
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(5)),
            Ok(None) => {
                // A process stuck in the driver may not even be killable; then init reaps it.
                child.kill().ok();
                let seconds = TIMEOUT.as_secs();
                return Err(format!("timed out after {seconds} s: the driver hangs"));
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

/// Opens the library at `path`, or the one the loader finds.
fn open(path: Option<&OsStr>) -> Result<Nvml, String> {
    let library = path.unwrap_or(OsStr::new("libnvidia-ml.so.1"));
    Nvml::builder().lib_path(library).init().map_err(|error| error.to_string())
}

/// Queries in this process, with the library at `path` or the one the loader finds.
pub fn query_here(path: Option<&OsStr>) -> NvmlResult {
    open(path).and_then(|nvml| report(&nvml)).map_or_else(NvmlResult::Failed, NvmlResult::Report)
}

fn report(nvml: &Nvml) -> Result<NvmlReport, String> {
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

/// Reads memory use and utilization of GPUs repeatedly, with one open library.
pub struct GpuMonitor {
    nvml: Nvml,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GpuUsage {
    pub index: u32,
    pub name: String,
    pub uuid: Option<String>,
    /// Bytes used by all processes.
    pub memory_used: u64,
    pub memory_total: u64,
    /// The percentage of recent time in which a kernel ran.
    pub utilization_percent: Option<u32>,
    pub power_milliwatts: Option<u32>,
    pub power_limit_milliwatts: Option<u32>,
    /// Energy used since the driver was loaded.
    pub energy_millijoules: Option<u64>,
    /// Processes that compute, by id, and the bytes they use. Those of other containers may have other ids here.
    pub processes: Vec<(u32, u64)>,
    /// How many processes compute, also those whose memory is unknown; none if the driver does not say.
    pub process_count: Option<usize>,
}

impl GpuMonitor {
    /// Opens the library; none if it is missing. May hang with a broken driver.
    pub fn open() -> Option<Self> {
        open(None).ok().map(|nvml| Self { nvml })
    }

    pub fn read(&self) -> Vec<GpuUsage> {
        let count = self.nvml.device_count().unwrap_or(0);
        (0..count)
            .filter_map(|index| {
                let device = self.nvml.device_by_index(index).ok()?;
                let memory = device.memory_info().ok()?;
                let processes = device.running_compute_processes().ok();
                Some(GpuUsage {
                    index,
                    name: device.name().ok()?,
                    uuid: device.uuid().ok(),
                    memory_used: memory.used,
                    memory_total: memory.total,
                    utilization_percent: device.utilization_rates().ok().map(|rates| rates.gpu),
                    power_milliwatts: device.power_usage().ok(),
                    power_limit_milliwatts: device.enforced_power_limit().ok(),
                    energy_millijoules: device.total_energy_consumption().ok(),
                    process_count: processes.as_ref().map(Vec::len),
                    processes: processes.unwrap_or_default().iter().filter_map(with_memory).collect(),
                })
            })
            .collect()
    }
}

fn with_memory(process: &ProcessInfo) -> Option<(u32, u64)> {
    Some((process.pid, used_bytes(process)?))
}

fn used_bytes(process: &ProcessInfo) -> Option<u64> {
    match process.used_gpu_memory {
        UsedGpuMemory::Used(bytes) => Some(bytes),
        UsedGpuMemory::Unavailable => None,
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuProcess {
    pub gpu: u32,
    /// The process id on the host.
    pub pid: u32,
    /// The percentage of recent time in which its kernels ran, if known.
    pub percent: Option<u32>,
    /// Bytes of GPU memory in use, if known.
    pub memory_bytes: Option<u64>,
}

/// The age limit of utilization samples.
const RECENT: Duration = Duration::from_secs(2);

/// The running program, for a child that queries NVML. It can be executed even where its file
/// cannot be found by name, as in another mount namespace.
pub fn this_program() -> &'static Path {
    Path::new("/proc/self/exe")
}

/// The processes on all GPUs, queried in a child process: `program` with `arguments` must print the result of
/// [`processes_here`] as JSON.
pub fn processes_in_child(program: &Path, arguments: &[&OsStr]) -> Result<Vec<GpuProcess>, String> {
    let (answer, status) = output_of(program, arguments)?;
    serde_json::from_str::<Result<_, String>>(&answer)
        .unwrap_or_else(|_| Err(format!("the query ended without a result ({status})")))
}

/// The processes on all GPUs, queried in this process.
pub fn processes_here(path: Option<&OsStr>) -> Result<Vec<GpuProcess>, String> {
    let nvml = open(path)?;
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
    // The error for no samples is the same as for an unsupported GPU: then nothing is known.
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
        let memory_bytes = used_bytes(&process);
        all.push(GpuProcess { gpu, pid: process.pid, percent: percent(process.pid), memory_bytes });
    }
    all
}
