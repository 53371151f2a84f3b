//! Directory trees that stand for machines to diagnose.

use crate::tree::Tree;

/// Marks a [`HostTree`].
#[derive(Debug)]
pub enum Host {}

pub type HostTree = Tree<Host>;

impl HostTree {
    /// An Ubuntu machine without a GPU.
    pub fn new() -> Self {
        Self::empty()
            .file("/etc/os-release", "PRETTY_NAME=\"Ubuntu 24.04.3 LTS\"\n")
            .file("/proc/sys/kernel/osrelease", "6.8.0-90-generic\n")
            .file("/etc/ld.so.conf", "include /etc/ld.so.conf.d/*.conf\n")
            .file("/proc/self/environ", "PATH=/usr/local/bin:/usr/bin:/bin\0HOME=/root\0")
    }

    /// Sets the environment of the calling process.
    pub fn environment(self, variables: &[(&str, &str)]) -> Self {
        let text: String = variables.iter().map(|(name, value)| format!("{name}={value}\0")).collect();
        self.file("/proc/self/environ", &text)
    }

    /// A GPU on the PCI bus, bound to a kernel driver.
    pub fn pci(self, address: &str, device: &str, driver: Option<&str>) -> Self {
        self.pci_of(address, "0x10de", device, "0x030200", driver)
    }

    /// A device on the PCI bus, bound to a kernel driver.
    pub fn pci_of(
        self,
        address: &str,
        vendor: &str,
        device: &str,
        class: &str,
        driver: Option<&str>,
    ) -> Self {
        let at = format!("/sys/bus/pci/devices/{address}");
        let tree = self
            .file(&format!("{at}/vendor"), format!("{vendor}\n"))
            .file(&format!("{at}/device"), format!("{device}\n"))
            .file(&format!("{at}/class"), format!("{class}\n"));
        match driver {
            Some(driver) => tree.link(&format!("{at}/driver"), &format!("../../../bus/pci/drivers/{driver}")),
            None => tree,
        }
    }

    /// A loaded kernel module, its GPU and the device nodes.
    pub fn module(self, version: &str, open: bool, model: &str) -> Self {
        let module_kind = if open { "Open Kernel Module for x86_64" } else { "x86_64 Kernel Module" };
        let line = format!(
            "NVRM version: NVIDIA UNIX {module_kind}  {version}  Release Build\nGCC version: gcc 13\n"
        );
        let card = format!("Model: \t\t {model}\nIRQ:   \t\t 30\nDevice Minor: \t 0\n");
        self.file("/proc/driver/nvidia/version", &line)
            .file("/proc/driver/nvidia/gpus/0000:01:00.0/information", &card)
            .file("/sys/module/nvidia/version", format!("{version}\n"))
            .file("/proc/modules", "nvidia_uvm 1 0 - Live 0x0\nnvidia 1 1 nvidia_uvm, Live 0x0\n")
            .file("/dev/nvidiactl", "")
            .file("/dev/nvidia-uvm", "")
            .file("/dev/nvidia0", "")
    }

    /// The driver's libraries, as on Debian and Ubuntu.
    pub fn libraries(self, version: &str) -> Self {
        let mut tree = self;
        for name in ["libcuda", "libnvidia-ml", "libnvidia-ptxjitcompiler"] {
            let directory = "/usr/lib/x86_64-linux-gnu";
            tree = tree
                .file(&format!("{directory}/{name}.so.{version}"), "\x7fELF not really")
                .link(&format!("{directory}/{name}.so.1"), &format!("{name}.so.{version}"));
        }
        tree
    }

    /// An active virtual environment.
    pub fn python(self) -> Self {
        self.program("/opt/venv/bin/python3")
            .file("/opt/venv/pyvenv.cfg", "home = /usr/bin\ninclude-system-site-packages = false\n")
            .environment(&[
                ("PATH", "/opt/venv/bin:/usr/bin"),
                ("VIRTUAL_ENV", "/opt/venv"),
                ("HOME", "/root"),
            ])
    }

    /// An installed Python distribution, in the virtual environment.
    pub fn distribution(self, name: &str, version: &str, requires: &[&str]) -> Self {
        let directory = format!("{}-{version}.dist-info", name.replace('-', "_"));
        let requires: String = requires.iter().map(|line| format!("Requires-Dist: {line}\n")).collect();
        let metadata =
            format!("Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{requires}\nDescription\n");
        self.file(&format!("/opt/venv/lib/python3.12/site-packages/{directory}/METADATA"), &metadata)
    }

    /// An installed PyTorch; without CUDA it is a build for the CPU.
    pub fn torch(self, version: &str, cuda: Option<&str>) -> Self {
        let cuda = cuda.map_or_else(|| "None".to_owned(), |cuda| format!("'{cuda}'"));
        let text = format!(
            "__version__ = '{version}'\ndebug = False\ncuda: Optional[str] = {cuda}\nhip: Optional[str] = None\n"
        );
        self.distribution("torch", version.split('+').next().unwrap(), &[])
            .file("/opt/venv/lib/python3.12/site-packages/torch/version.py", &text)
    }
}

/// A server with an H200 and a driver of branch 580, with Docker configured.
pub fn healthy() -> HostTree {
    HostTree::new()
        .pci("0000:01:00.0", "0x2335", Some("nvidia"))
        .module("580.159.04", true, "NVIDIA H200")
        .libraries("580.159.04")
        .program("/usr/bin/dockerd")
        .program("/usr/bin/nvidia-container-runtime")
        .program("/usr/bin/nvidia-container-runtime-hook")
        .program("/usr/bin/nvidia-ctk")
        .file("/etc/docker/daemon.json", r#"{"runtimes": {"nvidia": {"path": "nvidia-container-runtime"}}}"#)
        .file("/etc/cdi/nvidia.yaml", CDI)
        .python()
        .torch("2.11.0+cu130", Some("13.0"))
}

const CDI: &str = "cdiVersion: 0.5.0
kind: nvidia.com/gpu
devices:
- name: all
  containerEdits:
    deviceNodes:
    - path: /dev/nvidia0
containerEdits:
  mounts:
  - hostPath: /usr/lib/x86_64-linux-gnu/libcuda.so.580.159.04
    containerPath: /usr/lib/x86_64-linux-gnu/libcuda.so.580.159.04
";

/// A GPU on the bus without a driver.
pub fn no_driver() -> HostTree {
    HostTree::new().pci("0000:01:00.0", "0x1eb8", None)
}

/// Libraries upgraded while the old module is loaded.
pub fn mismatch() -> HostTree {
    HostTree::new()
        .pci("0000:01:00.0", "0x1eb8", Some("nvidia"))
        .module("535.161.08", false, "Tesla T4")
        .libraries("535.183.01")
}

/// WSL2 with the Windows driver.
pub fn wsl2() -> HostTree {
    HostTree::new()
        .file("/proc/sys/kernel/osrelease", "5.15.167.4-microsoft-standard-WSL2\n")
        .file("/dev/dxg", "")
        .file("/usr/lib/wsl/lib/libcuda.so.1.1", "\x7fELF")
        .link("/usr/lib/wsl/lib/libcuda.so.1", "libcuda.so.1.1")
        .file("/usr/lib/wsl/lib/libnvidia-ml.so.1", "\x7fELF")
        .file("/etc/ld.so.conf.d/ld.wsl.conf", "/usr/lib/wsl/lib\n")
}

/// A container on a GPU host, started without the GPU.
pub fn container_without_toolkit() -> HostTree {
    HostTree::new()
        .file("/.dockerenv", "")
        .pci("0000:01:00.0", "0x2335", Some("nvidia"))
        .file("/sys/module/nvidia/version", "580.159.04\n")
        .python()
        .torch("2.11.0+cu130", Some("13.0"))
}

/// A healthy machine whose PyTorch is a build for the CPU.
pub fn torch_cpu_build() -> HostTree {
    healthy().torch("2.11.0+cpu", None)
}

/// PyTorch from PyPI has no code for Volta since 2.11.
pub fn torch_too_new_for_the_card() -> HostTree {
    HostTree::new()
        .pci("0000:01:00.0", "0x1db6", Some("nvidia"))
        .module("580.95.05", false, "Tesla V100-SXM2-32GB")
        .libraries("580.95.05")
        .python()
        .torch("2.11.0+cu130", Some("13.0"))
}
