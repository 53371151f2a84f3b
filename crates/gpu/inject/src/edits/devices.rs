use std::path::PathBuf;

use super::select::Chosen;
use super::{DeviceNode, Edits};
use crate::InjectError;
use crate::driver::{Driver, DriverKind, short_bus};
use crate::request::{Capability, Devices, GpuRequest};

const LOAD: &str =
    "run `nvidia-smi` once as root, or `nvidia-modprobe -c 0`, which load the module and make its nodes";
const LOAD_UVM: &str = "run `nvidia-modprobe -u -c 0` as root, or `modprobe nvidia_uvm` and start again";
const LOAD_CAPS: &str = "run `nvidia-modprobe -f /proc/driver/nvidia/capabilities/mig/config` as root, or make the MIG device again";
const LOAD_WSL: &str = "update WSL with `wsl --update`, and Windows' NVIDIA driver";

pub(super) fn add(
    edits: &mut Edits,
    driver: &Driver,
    request: &GpuRequest,
    chosen: &[Chosen<'_>],
) -> Result<(), InjectError> {
    let mut nodes = Nodes { edits, driver };
    if driver.kind == DriverKind::Wsl {
        if request.devices != Devices::None {
            nodes.need("/dev/dxg", LOAD_WSL)?;
        }
        return Ok(());
    }
    let capabilities = &request.capabilities;
    nodes.need("/dev/nvidiactl", LOAD)?;
    if capabilities.has(Capability::Compute) {
        nodes.need("/dev/nvidia-uvm", LOAD_UVM)?;
        nodes.take("/dev/nvidia-uvm-tools");
    }
    if capabilities.has(Capability::Display) {
        nodes.take("/dev/nvidia-modeset");
    }
    for one in chosen {
        nodes.need(&format!("/dev/nvidia{}", one.gpu.minor), LOAD)?;
    }
    if capabilities.has(Capability::Graphics) || capabilities.has(Capability::Display) {
        for one in chosen {
            nodes.dri(one);
        }
    }
    for one in chosen {
        for mig in &one.mig {
            let instance = format!("gpu{}/gi{}", one.gpu.minor, mig.gpu_instance);
            nodes.capability(&format!("{instance}/access"))?;
            nodes.capability(&format!("{instance}/ci{}/access", mig.compute_instance))?;
        }
    }
    for (asked, name) in [(request.extras.mig_config, "config"), (request.extras.mig_monitor, "monitor")] {
        if asked {
            nodes.capability(name)?;
        }
    }
    for channel in &request.imex_channels {
        let path = format!("/dev/nvidia-caps-imex-channels/channel{channel}");
        nodes.need(&path, "make it with `nvidia-modprobe -i NUMBER:1` as root, or leave the channel out")?;
    }
    nodes.extras(request);
    Ok(())
}

struct Nodes<'a> {
    edits: &'a mut Edits,
    driver: &'a Driver,
}

impl Nodes<'_> {
    /// Adds a node if it exists.
    fn take(&mut self, path: &str) -> bool {
        let Some(node) = self.driver.nodes.get(path) else { return false };
        let container = PathBuf::from(path);
        if self.edits.devices.iter().any(|known| known.container == container) {
            return true;
        }
        if node.mode & 0o006 != 0o006 && node.mode & 0o060 != 0 && node.gid != 0 {
            self.edits.additional_gids.push(node.gid);
        }
        self.edits.devices.push(DeviceNode {
            host: node.host.clone(),
            container,
            major: node.major,
            minor: node.minor,
            mode: node.mode,
            gid: node.gid,
        });
        true
    }

    /// Adds a node without which the container would be useless.
    fn need(&mut self, path: &str, fix: &'static str) -> Result<(), InjectError> {
        if self.take(path) {
            return Ok(());
        }
        let there = self.driver.not_devices.iter().any(|known| known == path);
        let because = if there { ": not a device node" } else { "" }.to_owned();
        Err(InjectError::NoNode { path: path.to_owned(), because, fix })
    }

    fn capability(&mut self, name: &str) -> Result<(), InjectError> {
        let Some(number) = self.driver.mig_minors.get(name) else {
            return Err(InjectError::NoNode {
                path: format!("the MIG capability {name}"),
                because: " from /proc/driver/nvidia-caps/mig-minors".to_owned(),
                fix: LOAD_CAPS,
            });
        };
        self.need(&format!("/dev/nvidia-caps/nvidia-cap{number}"), LOAD_CAPS)
    }

    fn dri(&mut self, one: &Chosen<'_>) {
        for name in &one.gpu.dri {
            if !self.take(&format!("/dev/dri/{name}")) {
                self.edits
                    .warnings
                    .push(format!("/dev/dri/{name} is missing: no rendering without a screen"));
                continue;
            }
            let kind = if name.starts_with("card") { "card" } else { "render" };
            let by_path = format!("/dev/dri/by-path/pci-{}-{kind}", short_bus(&one.gpu.bus));
            self.edits.link(PathBuf::from(by_path), format!("../{name}"));
        }
    }

    fn extras(&mut self, request: &GpuRequest) {
        let extras = request.extras;
        let asked: [(bool, &str, &[&str]); 4] = [
            (extras.gds, "GPUDirect Storage", &["/dev/nvidia-fs"]),
            (extras.gdrcopy, "GDRCopy", &["/dev/gdrdrv"]),
            (extras.mofed, "InfiniBand", &["/dev/infiniband/uverbs", "/dev/infiniband/rdma_cm"]),
            (extras.nvswitch, "NVSwitch", &["/dev/nvidia-nvswitch"]),
        ];
        for (_, what, prefixes) in asked.iter().filter(|(asked, _, _)| *asked) {
            let begins = |path: &&String| prefixes.iter().any(|prefix| path.starts_with(prefix));
            let paths: Vec<String> = self.driver.nodes.keys().filter(begins).cloned().collect();
            if paths.is_empty() {
                let nodes = prefixes.join("*, ");
                self.edits.warnings.push(format!("{what} was requested, but {nodes}* does not exist"));
            }
            for path in paths {
                self.take(&path);
            }
        }
    }
}
