//! The parts of a driver on a machine, as plain data.

mod files;
mod gpus;
mod libraries;
mod nodes;
mod tree;
mod wsl;

use std::collections::BTreeMap;
use std::path::PathBuf;

use cudock_facts::version::DriverVersion;
use cudock_host::host::{NvmlGpu, NvmlReport};
use cudock_host::{Root, has_driver_files};

use crate::InjectError;
use crate::elf::ElfClass;
use tree::DriverTree;

/// The root of a driver container on the host.
const DRIVER_CONTAINER: &str = "/run/nvidia/driver";

/// Default directory of the pipes of CUDA's multi-process service.
pub(crate) const MPS: &str = "/tmp/nvidia-mps";

/// The roots to search: the driver's files may be in another root than its devices.
#[derive(Debug, Clone)]
pub struct DriverRoots {
    /// The driver's libraries, programs, firmware and settings.
    pub files: Root,
    /// Device nodes, `/proc`, `/sys` and sockets.
    pub devices: Root,
    /// The directory of pipes that CUDA's multi-process service listens on, as `CUDA_MPS_PIPE_DIRECTORY` may say.
    pub mps: String,
}

impl DriverRoots {
    pub fn one(root: Root) -> Self {
        Self::two(root.clone(), root)
    }

    /// The driver's files in `files`, and its devices in `devices`. By default the devices are in the same root, unless it is
    /// the root of a driver container, which has none: then they are this machine's.
    pub fn locate(files: Root, devices: Option<Root>) -> Self {
        match devices {
            Some(devices) => Self::two(files, devices),
            None if files.is_live() || has_driver_files(files.base()) => Self::one(files),
            None => Self::two(files, Root::live()),
        }
    }

    pub fn two(files: Root, devices: Root) -> Self {
        Self { files, devices, mps: MPS.to_owned() }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DriverKind {
    Linux,
    /// The driver of Windows, used from WSL2.
    Wsl,
}

/// A driver with all its parts that were found.
#[derive(Debug, Clone)]
pub struct Driver {
    pub kind: DriverKind,
    /// Its version; none under WSL2, where file names do not contain it.
    pub version: Option<DriverVersion>,
    /// The version as file names have it; empty under WSL2.
    pub suffix: String,
    pub root: PathBuf,
    /// Its libraries, in the order of the directories they were found in.
    pub libraries: Vec<LibraryFile>,
    pub files: Vec<HostFile>,
    pub gpus: Vec<DriverGpu>,
    /// Device nodes by their path in `/dev`: those of GPUs, and all others that can be requested.
    pub nodes: BTreeMap<String, HostNode>,
    /// Paths in `/dev` that exist but are not devices.
    pub not_devices: Vec<String>,
    /// Numbers of MIG capabilities, by names such as `gpu0/gi3/ci0/access` and `config`.
    pub mig_minors: BTreeMap<String, u32>,
    /// The content of `/proc/driver/nvidia/params`.
    pub params: Option<String>,
    /// Notes about irregularities.
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LibraryFile {
    /// libcuda.so.580.159.04
    pub file: String,
    /// The directory of the root that holds it, with sub-directories such as `vdpau` left out.
    pub directory: String,
    /// `vdpau`, `gbm` or another directory below that.
    pub below: Option<&'static str>,
    pub host: PathBuf,
    /// The name programs know it by.
    pub soname: Option<String>,
    /// The ELF class: programs of this class can load it.
    pub class: ElfClass,
    /// Names of links to it in its own directory.
    pub links: Vec<String>,
}

impl LibraryFile {
    /// libcuda of libcuda.so.580.159.04.
    pub fn stem(&self) -> &str {
        self.file.split_once(".so").map_or(self.file.as_str(), |(stem, _)| stem)
    }
}

/// Another file of the driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostFile {
    pub role: Role,
    /// Its path in a container.
    pub inside: String,
    pub host: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Program(crate::request::Capability),
    /// A program that is only added by `all`.
    OtherProgram,
    /// A socket or a directory of pipes, of this capability.
    Socket(crate::request::Capability),
    Firmware,
    /// A setting or a data file of this capability.
    Setting(crate::request::Capability),
    /// Something of `GPUDirect` Storage.
    Gds,
    /// A file of a WSL2 driver store.
    Store,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DriverGpu {
    /// Its number in NVML's order.
    pub index: u32,
    /// The number in `/dev/nvidia0`, which may be another.
    pub minor: u32,
    /// GPU-5a…
    pub uuid: Option<String>,
    /// 0000:01:00.0
    pub bus: String,
    /// Its MIG devices, if it is partitioned.
    pub mig: Vec<MigDevice>,
    /// `card0` and `renderD128` of `/dev/dri`.
    pub dri: Vec<String>,
}

/// A MIG device of a GPU.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MigDevice {
    /// Its number on its GPU, in NVML's order.
    pub index: u32,
    pub gpu_instance: u32,
    pub compute_instance: u32,
    /// MIG-5a…; only NVML knows it.
    pub uuid: Option<String>,
}

/// A device node as `stat` has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostNode {
    pub host: PathBuf,
    pub major: u32,
    pub minor: u32,
    pub mode: u32,
    pub gid: u32,
}

impl Driver {
    /// Looks for the driver and reads everything about it.
    ///
    /// GPUs are numbered by their position on the bus, as NVML numbers them; where NVML was asked, see
    /// [`Driver::numbered_by`].
    pub fn find(roots: &DriverRoots) -> Result<Self, InjectError> {
        let devices = DriverTree::new(&roots.devices);
        if wsl::is(&devices) {
            return wsl::find(&DriverTree::new(&roots.files), &devices);
        }
        let kernel = kernel_version(&devices);
        let mut files = DriverTree::new(&roots.files);
        let mut found = libraries::find(&files, kernel);
        if found.is_none()
            && let Some(inner) = files.below(DRIVER_CONTAINER)
        {
            found = libraries::find(&inner, kernel);
            files = inner;
        }
        let Some(found) = found else {
            return Err(InjectError::NoDriver { root: roots.files.base().to_owned() });
        };
        let mut odd = Vec::new();
        let version = found.suffix.parse::<DriverVersion>().ok();
        if let (Some(kernel), Some(libraries)) = (kernel, version)
            && kernel != libraries
        {
            odd.push(format!(
                "the loaded module is of driver {kernel} and the libraries are of {libraries}: programs will fail \
                 until the machine is restarted or the module is loaded again"
            ));
        }
        let (nodes, not_devices) = nodes::read(&devices);
        Ok(Self {
            kind: DriverKind::Linux,
            version,
            files: files::find(&files, &devices, &found, &roots.mps),
            suffix: found.suffix,
            root: files.base().to_owned(),
            libraries: found.libraries,
            gpus: gpus::read(&devices),
            nodes,
            not_devices,
            mig_minors: gpus::mig_minors(&devices),
            params: devices.text("/proc/driver/nvidia/params"),
            notes: odd,
        })
    }

    /// Takes over NVML's numbers and names: `gpus` as NVML lists them, joined by UUID or bus address. GPUs that NVML
    /// does not list keep their order behind those it does. MIG devices are taken over where NVML named any.
    #[must_use]
    pub fn numbered_by(mut self, gpus: &[DriverGpu]) -> Self {
        let same = |ours: &DriverGpu, theirs: &DriverGpu| {
            let by_uuid = ours.uuid.is_some() && ours.uuid == theirs.uuid;
            by_uuid || (!theirs.bus.is_empty() && short_bus(&ours.bus) == short_bus(&theirs.bus))
        };
        let position = |ours: &DriverGpu| gpus.iter().position(|theirs| same(ours, theirs));
        self.gpus.sort_by_key(|ours| position(ours).unwrap_or(usize::MAX));
        for (index, ours) in self.gpus.iter_mut().enumerate() {
            ours.index = u32::try_from(index).unwrap_or(u32::MAX);
            if let Some(theirs) = gpus.iter().find(|theirs| same(ours, theirs)) {
                ours.uuid = ours.uuid.take().or_else(|| theirs.uuid.clone());
                if !theirs.mig.is_empty() {
                    ours.mig.clone_from(&theirs.mig);
                }
            }
        }
        self
    }
}

/// GPUs as NVML lists them, for [`Driver::numbered_by`].
pub fn of_nvml(report: &NvmlReport) -> Vec<DriverGpu> {
    let gpu = |(index, gpu): (usize, &NvmlGpu)| DriverGpu {
        index: u32::try_from(index).unwrap_or(u32::MAX),
        uuid: gpu.uuid.clone(),
        ..DriverGpu::default()
    };
    report.gpus.iter().enumerate().map(gpu).collect()
}

/// A PCI address without what NVML and the kernel write differently: the length of the domain and case.
pub(crate) fn short_bus(bus: &str) -> String {
    let bus = bus.to_ascii_lowercase();
    match bus.split_once(':') {
        Some((domain, rest)) if rest.contains(':') => {
            format!("{:0>4}:{rest}", domain.trim_start_matches('0'))
        }
        _ => bus,
    }
}

fn kernel_version(devices: &DriverTree) -> Option<DriverVersion> {
    let text = devices.text("/proc/driver/nvidia/version").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("NVRM version:"));
    let exact = |word: &str| word.parse().ok().filter(|version: &DriverVersion| version.is_exact());
    line.and_then(|line| line.split_whitespace().find_map(exact))
        .or_else(|| devices.text("/sys/module/nvidia/version")?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_nvml_and_of_the_kernel_are_the_same() {
        assert_eq!(short_bus("00000000:3B:00.0"), "0000:3b:00.0");
        assert_eq!(short_bus("0000:3b:00.0"), "0000:3b:00.0");
        assert_eq!(short_bus("00010000:3B:00.0"), "10000:3b:00.0");
    }
}
