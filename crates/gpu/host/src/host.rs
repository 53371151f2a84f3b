//! The GPU stack of a machine or container as plain data, without judgment.

use std::collections::BTreeMap;

use cudock_base::Arch;
use cudock_facts::version::{Capability, CudaVersion, DriverVersion};
use pep440_rs::Version;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Everything that a probe reads.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct Host {
    pub system: SystemInfo,
    /// Environment variables that affect CUDA, NVIDIA's container runtime and Python.
    pub environment: BTreeMap<String, String>,
    /// GPUs and `NVSwitches` on the PCI bus.
    pub pci: Vec<PciDevice>,
    pub kernel: KernelDriver,
    pub nodes: Vec<DeviceNode>,
    /// Copies of the driver's libraries, in the order in which the loader finds them; those it does not find come last.
    pub libraries: Vec<DriverLibrary>,
    /// Whether the loader's cache lists the driver's libraries; none if there is no readable cache.
    pub loader_cache: Option<LoaderCache>,
    pub nvml: NvmlResult,
    pub toolkits: Vec<CudaToolkit>,
    pub containers: Containers,
    /// The Python environment of programs started here.
    pub python: Option<PythonEnvironment>,
    /// CUDA runtime libraries that the loader finds, by SONAME.
    pub cuda_libraries: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct SystemInfo {
    /// "Ubuntu 24.04.3 LTS"
    pub os: Option<String>,
    pub kernel: Option<String>,
    /// `x86_64` or aarch64.
    #[schemars(with = "String")]
    pub cpu_arch: Arch,
    /// The path that identifies a container, such as `/.dockerenv`.
    pub container: Option<String>,
    pub wsl: bool,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct PciDevice {
    /// `0000:00:06.0`
    pub address: String,
    /// The vendor id; 0x10de is NVIDIA.
    pub vendor: u16,
    pub device: u16,
    pub class: u32,
    /// The kernel driver it is bound to.
    pub driver: Option<String>,
}

/// PCI vendor ids.
pub const NVIDIA: u16 = 0x10de;
pub const AMD: u16 = 0x1002;

impl PciDevice {
    /// Whether it is a GPU: a display controller, or a processing accelerator from AMD.
    pub fn is_gpu(&self) -> bool {
        self.class >> 16 == 0x03 || (self.vendor == AMD && self.class >> 16 == 0x12)
    }

    /// Whether it is an NVIDIA `NVSwitch`: a bridge of class "other".
    pub(crate) fn is_nvswitch(&self) -> bool {
        self.vendor == NVIDIA && self.class >> 8 == 0x0680
    }
}

#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct KernelDriver {
    /// From `/proc/driver/nvidia/version`.
    pub proc_version: Option<DriverVersion>,
    /// From `/sys/module/nvidia/version`.
    pub sys_version: Option<DriverVersion>,
    /// Whether the open kernel module is loaded.
    pub open: Option<bool>,
    /// Relevant loaded modules: nvidia, `nvidia_uvm`, nouveau …
    pub modules: Vec<String>,
    /// GPUs of the module, from `/proc/driver/nvidia/gpus`.
    pub gpus: Vec<KernelGpu>,
    /// Whether `nvidia-modprobe` is installed, which loads modules and creates device nodes on demand.
    pub makes_nodes: bool,
    /// Whether a fabric manager runs, if known.
    pub fabric_manager: Option<bool>,
}

impl KernelDriver {
    /// The version of the loaded module.
    pub fn version(&self) -> Option<DriverVersion> {
        self.proc_version.or(self.sys_version)
    }

    pub fn has(&self, module: &str) -> bool {
        self.modules.iter().any(|name| name == module)
    }
}

/// A GPU as seen by the kernel module.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct KernelGpu {
    pub address: String,
    /// `NVIDIA H200`
    pub model: Option<String>,
    /// The minor number, as in `/dev/nvidia0`.
    pub minor: Option<u32>,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct DeviceNode {
    /// `/dev/nvidia0`
    pub path: String,
    pub mode: u32,
    /// Whether it is a device; none in a directory tree, which may contain files instead.
    pub is_device: Option<bool>,
    /// Whether this user may read and write it, if known.
    pub usable: Option<bool>,
}

/// A copy of one of the driver's libraries.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct DriverLibrary {
    /// `libcuda.so.1`
    pub name: String,
    pub path: String,
    /// The path with symlinks resolved; none if dangling.
    pub real_path: Option<String>,
    pub size: u64,
    /// The version in its file name.
    pub version: Option<DriverVersion>,
    pub kind: LibraryKind,
    pub found_by: FoundBy,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LibraryKind {
    Driver,
    /// From a cuda-compat package.
    Compat,
    /// A stub of a toolkit: for linking only.
    Stub,
    /// An empty file, as left in images committed from GPU containers.
    Empty,
    Dangling,
}

/// How the loader finds a library.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FoundBy {
    LibraryPath,
    /// Through `/etc/ld.so.conf` and its cache.
    Configuration,
    Default,
    NotSearched,
}

/// The libraries in the loader's cache.
#[derive(Debug, Clone, Copy, Default, Serialize, JsonSchema)]
pub struct LoaderCache {
    pub libcuda: bool,
    pub nvml: bool,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NvmlResult {
    /// Not queried: a directory tree has no driver.
    #[default]
    NotQueried,
    Failed(String),
    Report(NvmlReport),
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct NvmlReport {
    pub driver: DriverVersion,
    pub cuda: Option<CudaVersion>,
    pub gpus: Vec<NvmlGpu>,
}

/// A GPU as seen by NVML.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct NvmlGpu {
    /// `NVIDIA H200`
    pub name: String,
    pub capability: Option<Capability>,
    /// The UUID, which can be used in `CUDA_VISIBLE_DEVICES`.
    #[serde(default)]
    pub uuid: Option<String>,
    /// In bytes.
    pub memory_total: Option<u64>,
    pub memory_used: Option<u64>,
    pub persistence: Option<bool>,
    pub mig: Option<bool>,
    pub mig_devices: Option<u32>,
    /// The compute mode: default, exclusive or prohibited.
    pub compute_mode: Option<String>,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct CudaToolkit {
    /// `/usr/local/cuda-12.4`
    pub path: String,
    pub version: Option<CudaVersion>,
    pub nvcc: bool,
    /// The version of the libcuda in its cuda-compat directory.
    pub compat: Option<DriverVersion>,
}

#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct Containers {
    /// Programs of the NVIDIA Container Toolkit, with their paths.
    pub toolkit: BTreeMap<String, String>,
    /// The toolkit's version, from the package database.
    pub toolkit_version: Option<String>,
    /// Installed engines: docker, containerd and podman.
    pub engines: Vec<ContainerEngine>,
    pub cdi: Vec<CdiSpec>,
    /// Whether systemd manages cgroups.
    pub systemd: bool,
    /// "v1", "v2" or "hybrid".
    pub cgroup: Option<String>,
    /// Whether `/dev/char` has links to the GPU's device nodes. Without them, a systemd reload revokes GPU access.
    pub dev_char_links: Option<bool>,
}

#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct ContainerEngine {
    /// `docker`, `containerd`, `podman`
    pub name: String,
    pub config: Option<String>,
    /// Why the configuration file is invalid.
    pub config_error: Option<String>,
    pub nvidia_runtime: bool,
    /// Whether CDI is enabled, if it must be.
    pub cdi: Option<bool>,
    /// Whether it uses the cgroupfs driver instead of systemd's.
    pub cgroupfs: bool,
}

#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct CdiSpec {
    /// `/etc/cdi/nvidia.yaml`
    pub path: String,
    /// `nvidia.com/gpu`
    pub kind: Option<String>,
    /// Why it is invalid.
    pub error: Option<String>,
    pub devices: Vec<String>,
    /// Host files in it that do not exist.
    pub missing: Vec<String>,
    /// The driver version in its file names.
    pub driver: Option<DriverVersion>,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct PythonEnvironment {
    /// `/opt/venv`
    pub prefix: String,
    /// How it was found: `VIRTUAL_ENV`, `CONDA_PREFIX` or `PATH`.
    pub found_by: String,
    pub site_packages: Vec<String>,
    /// Distributions relevant for GPUs.
    pub distributions: Vec<Distribution>,
    /// SONAMEs of libraries in NVIDIA's wheels.
    pub wheel_libraries: Vec<String>,
    pub torch: Option<TorchBuildInfo>,
}

impl PythonEnvironment {
    /// An installed distribution by normalized name.
    pub fn get(&self, name: &str) -> Option<&Distribution> {
        self.distributions.iter().find(|distribution| distribution.name == name)
    }
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Distribution {
    pub name: String,
    #[schemars(with = "String")]
    pub version: Version,
    /// The path of its metadata.
    pub path: String,
    /// Its requirements without extras.
    pub requires: Vec<PackageRequirement>,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct PackageRequirement {
    pub name: String,
    /// The version, if pinned with `==`.
    #[schemars(with = "Option<String>")]
    pub exactly: Option<Version>,
}

/// The contents of `torch/version.py`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct TorchBuildInfo {
    /// `2.11.0+cu130`
    #[schemars(with = "String")]
    pub version: Version,
    /// The CUDA version it was built for; none for CPU and `ROCm` builds.
    pub cuda: Option<CudaVersion>,
    pub hip: Option<String>,
}
