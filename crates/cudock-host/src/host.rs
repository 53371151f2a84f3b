//! What a machine or container says about its GPU stack, before anyone judges it.

use std::collections::BTreeMap;

use cudock_facts::version::{Capability, CudaVersion, DriverVersion};
use pep440_rs::Version;
use serde::{Deserialize, Serialize};

/// Everything that was read.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Host {
    /// What kind of place this is.
    pub surroundings: Surroundings,
    /// Variables that steer CUDA, NVIDIA's runtime and Python, as far as they are set.
    pub environment: BTreeMap<String, String>,
    /// GPUs and `NVSwitches` on the PCI bus.
    pub pci: Vec<PciDevice>,
    /// The kernel's side of the driver.
    pub kernel: KernelDriver,
    /// Device nodes.
    pub nodes: Vec<Node>,
    /// Copies of the driver's libraries, in the order in which the loader would find them; those it would not
    /// find come last.
    pub libraries: Vec<DriverLibrary>,
    /// Whether the loader's cache lists the driver's libraries; none if there is no readable cache.
    pub loader_cache: Option<LoaderCache>,
    /// What NVML answered.
    pub nvml: NvmlAnswer,
    /// CUDA toolkits.
    pub toolkits: Vec<CudaToolkit>,
    /// Container engines and NVIDIA's toolkit for them.
    pub containers: Containers,
    /// The Python environment a program started here would run in.
    pub python: Option<PythonEnvironment>,
    /// Run-time libraries of CUDA that the loader would find, by SONAME.
    pub cuda_libraries: BTreeMap<String, String>,
}

/// What kind of place this is.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Surroundings {
    /// "Ubuntu 24.04.3 LTS"
    pub os: Option<String>,
    /// The kernel's release.
    pub kernel: Option<String>,
    /// `x86_64` or aarch64.
    pub cpu_arch: String,
    /// What made this a container, such as `/.dockerenv`.
    pub container: Option<String>,
    /// Whether this is WSL2.
    pub wsl: bool,
}

/// A device on the PCI bus.
#[derive(Debug, Clone, Serialize)]
pub struct PciDevice {
    /// 0000:00:06.0
    pub address: String,
    /// 0x10de is NVIDIA.
    pub vendor: u16,
    /// The model.
    pub device: u16,
    /// What kind of device it is, in three bytes.
    pub class: u32,
    /// The kernel driver that holds it.
    pub driver: Option<String>,
}

/// NVIDIA's number on the PCI bus.
pub const NVIDIA: u16 = 0x10de;
/// AMD's number on the PCI bus.
pub const AMD: u16 = 0x1002;

impl PciDevice {
    /// Whether it is a GPU: a display controller, or a processing accelerator as AMD's are.
    pub fn is_gpu(&self) -> bool {
        self.class >> 16 == 0x03 || (self.vendor == AMD && self.class >> 16 == 0x12)
    }

    /// Whether it is an NVIDIA `NVSwitch`: a bridge of the kind "other".
    pub fn is_nvswitch(&self) -> bool {
        self.vendor == NVIDIA && self.class >> 8 == 0x0680
    }
}

/// The kernel's side of the driver.
#[derive(Debug, Clone, Default, Serialize)]
pub struct KernelDriver {
    /// From `/proc/driver/nvidia/version`.
    pub proc_version: Option<DriverVersion>,
    /// From `/sys/module/nvidia/version`.
    pub sys_version: Option<DriverVersion>,
    /// Whether the loaded module is the open one.
    pub open: Option<bool>,
    /// Loaded modules that matter: nvidia, `nvidia_uvm`, nouveau …
    pub modules: Vec<String>,
    /// Cards the module has taken, from `/proc/driver/nvidia/gpus`.
    pub gpus: Vec<KernelGpu>,
    /// Whether there is an `nvidia-modprobe`, which loads modules and makes nodes when a program first needs them.
    pub makes_nodes: bool,
    /// Whether a fabric manager runs, where that could be told.
    pub fabric_manager: Option<bool>,
}

impl KernelDriver {
    /// The version of the loaded module.
    pub fn version(&self) -> Option<DriverVersion> {
        self.proc_version.or(self.sys_version)
    }

    /// Whether a module is loaded.
    pub fn has(&self, module: &str) -> bool {
        self.modules.iter().any(|name| name == module)
    }
}

/// A card as the kernel module sees it.
#[derive(Debug, Clone, Serialize)]
pub struct KernelGpu {
    /// Its PCI address.
    pub address: String,
    /// NVIDIA H200
    pub model: Option<String>,
    /// The number in `/dev/nvidia0`.
    pub minor: Option<u32>,
}

/// A device node.
#[derive(Debug, Clone, Serialize)]
pub struct Node {
    /// `/dev/nvidia0`
    pub path: String,
    /// Permission bits.
    pub mode: u32,
    /// Whether it is a device; none in a tree, where nodes may have become files.
    pub is_device: Option<bool>,
    /// Whether this user may read and write it; none where that could not be told.
    pub usable: Option<bool>,
}

/// A copy of one of the driver's libraries.
#[derive(Debug, Clone, Serialize)]
pub struct DriverLibrary {
    /// libcuda.so.1
    pub name: String,
    /// Where it is.
    pub path: String,
    /// Where its links lead; none if they lead nowhere.
    pub real_path: Option<String>,
    /// Its size.
    pub size: u64,
    /// The version in its name.
    pub version: Option<DriverVersion>,
    /// What it is.
    pub kind: LibraryKind,
    /// How the loader comes to it.
    pub found_by: FoundBy,
}

/// What a driver library is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LibraryKind {
    /// The driver's own.
    Driver,
    /// From a cuda-compat package.
    Compat,
    /// A toolkit's stub: for linking, never for running.
    Stub,
    /// Zero bytes, as containers committed to an image leave them.
    Empty,
    /// A link that leads nowhere.
    Dangling,
}

/// How the loader comes to a library.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FoundBy {
    /// `LD_LIBRARY_PATH`.
    LibraryPath,
    /// The directories of `/etc/ld.so.conf`, through its cache.
    Configuration,
    /// The directories it always searches.
    Default,
    /// Not at all.
    NotSearched,
}

/// What the loader's cache lists.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct LoaderCache {
    /// libcuda.so.1
    pub libcuda: bool,
    /// libnvidia-ml.so.1
    pub nvml: bool,
}

/// What NVML answered.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NvmlAnswer {
    /// It was not asked: a directory tree has no driver.
    #[default]
    NotAsked,
    /// It could not be asked, or said no.
    Failed(String),
    /// It answered.
    Answered(NvmlReport),
}

/// NVML's report.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct NvmlReport {
    /// The driver's version.
    pub driver: DriverVersion,
    /// The CUDA version it carries.
    pub cuda: Option<CudaVersion>,
    /// The cards it sees.
    pub gpus: Vec<NvmlGpu>,
}

/// A card as NVML sees it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct NvmlGpu {
    /// NVIDIA H200
    pub name: String,
    /// Its compute capability.
    pub capability: Option<Capability>,
    /// What `CUDA_VISIBLE_DEVICES` may call it.
    #[serde(default)]
    pub uuid: Option<String>,
    /// Memory in bytes.
    pub memory_total: Option<u64>,
    /// Memory in use.
    pub memory_used: Option<u64>,
    /// Persistence mode.
    pub persistence: Option<bool>,
    /// MIG mode.
    pub mig: Option<bool>,
    /// How many MIG devices there are.
    pub mig_devices: Option<u32>,
    /// Whether compute is open to all, to one process, or to none.
    pub compute_mode: Option<String>,
}

/// A CUDA toolkit on disk.
#[derive(Debug, Clone, Serialize)]
pub struct CudaToolkit {
    /// /usr/local/cuda-12.4
    pub path: String,
    /// Its version.
    pub version: Option<CudaVersion>,
    /// Whether it has a compiler.
    pub nvcc: bool,
    /// The version of the cuda-compat libcuda beside it.
    pub compat: Option<DriverVersion>,
}

/// Container engines and NVIDIA's toolkit for them.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Containers {
    /// Programs of the NVIDIA Container Toolkit, by name, and where they are.
    pub toolkit: BTreeMap<String, String>,
    /// Its version, from the package database.
    pub toolkit_version: Option<String>,
    /// Docker, containerd and podman, as far as they are installed.
    pub engines: Vec<Engine>,
    /// CDI specifications.
    pub cdi: Vec<CdiSpec>,
    /// Whether systemd runs the control groups.
    pub systemd: bool,
    /// "v1", "v2" or "hybrid".
    pub cgroup: Option<String>,
    /// Whether `/dev/char` has links for the GPU nodes, without which a systemd reload takes GPUs away.
    pub dev_char_links: Option<bool>,
}

/// A container engine.
#[derive(Debug, Clone, Serialize)]
pub struct Engine {
    /// docker, containerd, podman
    pub name: String,
    /// The file it is configured by.
    pub config: Option<String>,
    /// Why that file cannot be used.
    pub config_error: Option<String>,
    /// Whether NVIDIA's runtime is configured.
    pub nvidia_runtime: bool,
    /// Whether CDI is switched on, where that needs a switch.
    pub cdi: Option<bool>,
    /// Whether it is told to leave control groups to itself rather than to systemd.
    pub cgroupfs: bool,
}

/// A CDI specification.
#[derive(Debug, Clone, Serialize)]
pub struct CdiSpec {
    /// /etc/cdi/nvidia.yaml
    pub path: String,
    /// nvidia.com/gpu
    pub kind: Option<String>,
    /// Why it cannot be used.
    pub error: Option<String>,
    /// Device names in it.
    pub devices: Vec<String>,
    /// Files it mounts that do not exist.
    pub missing: Vec<String>,
    /// The driver version in its file names.
    pub driver: Option<DriverVersion>,
}

/// A Python environment.
#[derive(Debug, Clone, Serialize)]
pub struct PythonEnvironment {
    /// /opt/venv
    pub prefix: String,
    /// How it was found: `VIRTUAL_ENV`, `CONDA_PREFIX` or `PATH`.
    pub found_by: String,
    /// Where its packages are.
    pub site_packages: Vec<String>,
    /// Distributions that matter for GPUs.
    pub distributions: Vec<Distribution>,
    /// SONAMEs of libraries inside NVIDIA's wheels.
    pub wheel_libraries: Vec<String>,
    /// What torch says of its own build.
    pub torch: Option<TorchBuildInfo>,
}

impl PythonEnvironment {
    /// An installed distribution, by its normalised name.
    pub fn get(&self, name: &str) -> Option<&Distribution> {
        self.distributions.iter().find(|distribution| distribution.name == name)
    }
}

/// An installed Python distribution.
#[derive(Debug, Clone, Serialize)]
pub struct Distribution {
    /// Its name, in lower case with dashes.
    pub name: String,
    /// Its version.
    pub version: Version,
    /// Where its metadata is.
    pub path: String,
    /// What it requires, without extras: names and exact versions.
    pub requires: Vec<Requirement>,
}

/// What a distribution requires.
#[derive(Debug, Clone, Serialize)]
pub struct Requirement {
    /// The normalised name.
    pub name: String,
    /// The version, where it is pinned to one.
    pub exactly: Option<Version>,
}

/// What `torch/version.py` says.
#[derive(Debug, Clone, Serialize)]
pub struct TorchBuildInfo {
    /// 2.11.0+cu130
    pub version: Version,
    /// The CUDA it was built for; none is a CPU or `ROCm` build.
    pub cuda: Option<CudaVersion>,
    /// The `ROCm` version.
    pub hip: Option<String>,
}
