//! Directory trees that stand for machines with a driver, and for images.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustix::fs::{FileType, Mode};

use crate::tree::Tree;

/// The version of the driver in all trees.
pub const VERSION: &str = "580.159.04";
/// Debian's library directory.
pub const DEBIAN: &str = "/usr/lib/x86_64-linux-gnu";

/// The beginning of a 64-bit library.
pub const WIDE: &[u8] = b"\x7fELF\x02\x01 a library";
/// The beginning of a 32-bit library.
pub const NARROW: &[u8] = b"\x7fELF\x01\x01 a library";

/// Libraries that programs know by another name than their file's.
const SONAMES: [(&str, &str); 16] = [
    ("libcuda", "1"),
    ("libnvidia-ml", "1"),
    ("libnvidia-cfg", "1"),
    ("libnvidia-ptxjitcompiler", "1"),
    ("libnvidia-opencl", "1"),
    ("libnvidia-allocator", "1"),
    ("libnvidia-nvvm", "4"),
    ("libcudadebugger", "1"),
    ("libnvidia-encode", "1"),
    ("libnvidia-opticalflow", "1"),
    ("libnvcuvid", "1"),
    ("libnvidia-fbc", "1"),
    ("libnvidia-ngx", "1"),
    ("libGLX_nvidia", "0"),
    ("libEGL_nvidia", "0"),
    ("libvdpau_nvidia", "1"),
];

/// Marks a [`DriverTree`].
#[derive(Debug)]
pub enum Driver {}

pub type DriverTree = Tree<Driver>;

impl DriverTree {
    /// A tree with a kernel and nothing else.
    pub fn new() -> Self {
        Self::empty().file("/proc/sys/kernel/osrelease", "6.8.0-90-generic\n")
    }

    /// A library with the links that `ldconfig` and packages make.
    pub fn library(self, directory: &str, stem: &str, version: &str) -> Self {
        self.library_of(directory, stem, version, WIDE)
    }

    /// A library with these bytes and its links.
    pub fn library_of(self, directory: &str, stem: &str, version: &str, bytes: &[u8]) -> Self {
        let file = format!("{stem}.so.{version}");
        let tree = self.file(&format!("{directory}/{file}"), bytes);
        match SONAMES.iter().find(|(known, _)| *known == stem) {
            Some((_, number)) => tree.link(&format!("{directory}/{stem}.so.{number}"), &file),
            None => tree,
        }
    }

    pub fn libraries(self, directory: &str, stems: &[&str]) -> Self {
        stems.iter().fold(self, |tree, stem| tree.library(directory, stem, VERSION))
    }

    pub fn device(self, path: &str, major: u32, minor: u32, mode: u32) -> Self {
        let at = self.made(path);
        make_device(&at, major, minor, mode).unwrap();
        fs::set_permissions(at, fs::Permissions::from_mode(mode)).unwrap();
        self
    }

    /// The loaded module: its version, its settings and its control nodes.
    pub fn module(self, version: &str) -> Self {
        let line =
            format!("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {version}  Release Build\n");
        self.file("/proc/driver/nvidia/version", line)
            .file(
                "/proc/driver/nvidia/params",
                "ResmanDebugLevel: 4294967295\nModifyDeviceFiles: 1\nDeviceFileMode: 438\n",
            )
            .device("/dev/nvidiactl", 195, 255, 0o666)
            .device("/dev/nvidia-modeset", 195, 254, 0o666)
            // Given out when the module is loaded: it must be read, and never be known.
            .device("/dev/nvidia-uvm", 507, 0, 0o666)
            .device("/dev/nvidia-uvm-tools", 507, 1, 0o666)
    }

    /// A GPU as the loaded module lists it, and its node.
    pub fn gpu(self, bus: &str, minor: u32, uuid: &str) -> Self {
        let text = format!(
            "Model: \t\t NVIDIA H200\nIRQ:   \t\t 30\nGPU UUID: \t {uuid}\nBus Location: \t {bus}\nDevice Minor: \t {minor}\n"
        );
        let node = format!("/dev/nvidia{minor}");
        self.file(&format!("/proc/driver/nvidia/gpus/{bus}/information"), text)
            .device(&node, 195, minor, 0o666)
    }

    /// A GPU's nodes of the direct rendering infrastructure.
    pub fn dri(self, bus: &str, card: u32) -> Self {
        let render = 128 + card;
        let at = format!("/sys/bus/pci/devices/{bus}/drm");
        self.directory(&format!("{at}/card{card}"))
            .directory(&format!("{at}/renderD{render}"))
            .device(&format!("/dev/dri/card{card}"), 226, card, 0o660)
            .device(&format!("/dev/dri/renderD{render}"), 226, render, 0o660)
    }

    /// The numbers of all MIG devices that could be, and those that are.
    pub fn mig(self, minor: u32, devices: &[(u32, u32)]) -> Self {
        let base = |gpu: u32, instance: u32| gpu * 135 + instance * 9 + 3;
        let instances = (0..2).flat_map(|gpu| (0..15).map(move |instance| (gpu, instance)));
        let lines = instances.flat_map(|(gpu, instance)| {
            let first = base(gpu, instance);
            let compute = (0..8).map(move |compute| {
                format!("gpu{gpu}/gi{instance}/ci{compute}/access {}\n", first + 1 + compute)
            });
            std::iter::once(format!("gpu{gpu}/gi{instance}/access {first}\n")).chain(compute)
        });
        let text: String =
            ["config 1\n", "monitor 2\n"].map(str::to_owned).into_iter().chain(lines).collect();
        let mut tree = self.file("/proc/driver/nvidia-caps/mig-minors", text);
        for (instance, compute) in devices {
            let at = format!("/proc/driver/nvidia/capabilities/gpu{minor}/mig/gi{instance}");
            let base = base(minor, *instance);
            for (path, number) in
                [(format!("{at}/access"), base), (format!("{at}/ci{compute}/access"), base + 1 + compute)]
            {
                if !tree.at(&path).exists() {
                    tree = tree
                        .file(&path, format!("DeviceFileMinor: {number}\nDeviceFileMode: 292\n"))
                        .device(&format!("/dev/nvidia-caps/nvidia-cap{number}"), 234, number, 0o444);
                }
            }
        }
        tree
    }
}

fn make_device(path: &Path, major: u32, minor: u32, mode: u32) -> rustix::io::Result<()> {
    let (mode, device) = (Mode::from_raw_mode(mode), rustix::fs::makedev(major, minor));
    rustix::fs::mknodat(rustix::fs::CWD, path, FileType::CharacterDevice, mode, device)
}

/// Whether device nodes can be created here; prints the reason if not.
pub fn can_make_devices() -> bool {
    let directory = tempfile::tempdir().unwrap();
    let made = make_device(&directory.path().join("node"), 195, 0, 0o600);
    if let Err(error) = made {
        crate::missing("device-nodes", format_args!("device nodes cannot be made here: {error}"));
    }
    made.is_ok()
}

pub const COMPUTE: [&str; 8] = [
    "libcuda",
    "libcudadebugger",
    "libnvidia-opencl",
    "libnvidia-gpucomp",
    "libnvidia-ptxjitcompiler",
    "libnvidia-allocator",
    "libnvidia-nvvm",
    "libnvidia-pkcs11-openssl3",
];
pub const UTILITY: [&str; 2] = ["libnvidia-ml", "libnvidia-cfg"];
pub const VIDEO: [&str; 3] = ["libnvidia-encode", "libnvidia-opticalflow", "libnvcuvid"];
pub const GRAPHICS: [&str; 8] = [
    "libnvidia-eglcore",
    "libnvidia-glcore",
    "libnvidia-tls",
    "libnvidia-glsi",
    "libnvidia-fbc",
    "libnvoptix",
    "libGLX_nvidia",
    "libEGL_nvidia",
];

/// The module and two GPUs whose minors are not their indices.
pub fn two_gpus() -> DriverTree {
    DriverTree::new().module(VERSION).gpu("0000:01:00.0", 1, "GPU-aaaaaaaa-0000-0000-0000-000000000000").gpu(
        "0000:41:00.0",
        0,
        "GPU-bbbbbbbb-0000-0000-0000-000000000000",
    )
}

/// Everything a driver brings, in one directory.
pub fn with_everything(tree: DriverTree, directory: &str) -> DriverTree {
    tree.libraries(directory, &COMPUTE)
        .libraries(directory, &UTILITY)
        .libraries(directory, &VIDEO)
        .libraries(directory, &GRAPHICS)
        .libraries(directory, &["libnvidia-ngx", "libnvidia-present"])
        .library(&format!("{directory}/vdpau"), "libvdpau_nvidia", VERSION)
        .program("/usr/bin/nvidia-smi")
        .program("/usr/bin/nvidia-cuda-mps-control")
        .program("/usr/bin/nvidia-imex")
        .file("/run/nvidia-persistenced/socket", "")
        .file(&format!("/lib/firmware/nvidia/{VERSION}/gsp_ga10x.bin"), "firmware")
        .file("/usr/share/glvnd/egl_vendor.d/10_nvidia.json", "{}")
        .file("/etc/vulkan/icd.d/nvidia_icd.json", "{}")
        .file("/etc/OpenCL/vendors/nvidia.icd", "libnvidia-opencl.so.1\n")
}

/// A Debian machine with two GPUs.
pub fn debian() -> DriverTree {
    with_everything(two_gpus(), DEBIAN)
}
