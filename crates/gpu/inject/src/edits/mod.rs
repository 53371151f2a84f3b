//! Edits that give a container its GPUs.

mod devices;
mod files;
mod libraries;
mod select;

use std::path::PathBuf;

use cudock_facts::version::DriverVersion;
use serde::Serialize;

use crate::InjectError;
use crate::driver::{Driver, DriverKind};
use crate::elf::ElfClass;
use crate::request::{Capability, GpuRequest};

/// The edits, in a deterministic order.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Edits {
    pub devices: Vec<DeviceNode>,
    pub mounts: Vec<Mount>,
    pub links: Vec<Link>,
    /// Files to write, or to mount over others where they are below `/proc`.
    pub texts: Vec<Text>,
    /// Variables to set, over the image's.
    pub environment: Vec<(String, String)>,
    /// Groups of the container's first process, because only these can open the nodes.
    pub additional_gids: Vec<u32>,
    /// Libraries for the loader's cache.
    pub libraries: Vec<Library>,
    /// The driver, if the container uses CUDA; the image's own libcuda may take precedence if it is newer.
    pub driver: Option<DriverVersion>,
    /// Warnings about missing parts without which the container can start.
    pub warnings: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeviceNode {
    pub host: PathBuf,
    pub container: PathBuf,
    pub major: u32,
    pub minor: u32,
    pub mode: u32,
    pub gid: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Mount {
    pub host: PathBuf,
    pub container: PathBuf,
    pub options: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Link {
    pub path: PathBuf,
    pub target: PathBuf,
}

/// A file to write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Text {
    pub path: PathBuf,
    pub contents: String,
}

/// A library for the loader's cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Library {
    /// libcuda.so.1
    pub soname: String,
    /// Its path in the container.
    pub path: PathBuf,
    /// The ELF class: programs of this class can load it.
    pub class: ElfClass,
}

/// The target directory of the driver's libraries and programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Placement {
    /// The same paths as on the host: for CDI, where the image is not known.
    SameAsHost,
    /// The image's own directory of libraries; see [`crate::library_directory`].
    Directory(PathBuf),
}

/// Options of ordinary mounts.
pub(crate) const READ_ONLY: [&str; 5] = ["ro", "nosuid", "nodev", "rbind", "rprivate"];
/// Options of sockets: connecting to one is writing.
pub(crate) const SOCKET: [&str; 5] = ["nosuid", "nodev", "rbind", "rprivate", "noexec"];

/// The variable that keeps other tools from injecting the GPU again.
const VISIBLE: &str = "NVIDIA_VISIBLE_DEVICES";
/// The variable in which NVIDIA's own tools look up the directory of the driver's libcuda.
const LIBCUDA_DIRECTORY: &str = "NVIDIA_CTK_LIBCUDA_DIR";

impl Edits {
    fn mount(&mut self, host: PathBuf, container: PathBuf, options: &[&str]) {
        if !self.mounts.iter().any(|known| known.container == container) {
            let options = options.iter().map(|option| (*option).to_owned()).collect();
            self.mounts.push(Mount { host, container, options });
        }
    }

    fn link(&mut self, path: PathBuf, target: impl Into<PathBuf>) {
        let target = target.into();
        let taken = self.links.iter().any(|known| known.path == path)
            || self.mounts.iter().any(|known| known.container == path);
        if !taken {
            self.links.push(Link { path, target });
        }
    }
}

/// The edits for a request. A missing part is an error if the container is useless without it, and
/// a warning otherwise.
pub fn edits(driver: &Driver, request: &GpuRequest, placement: &Placement) -> Result<Edits, InjectError> {
    let mut edits = Edits { warnings: driver.notes.clone(), ..Edits::default() };
    let chosen = select::select(driver, &request.devices)?;
    devices::add(&mut edits, driver, request, &chosen)?;
    let libcuda = libraries::add(&mut edits, driver, request, placement)?;
    files::add(&mut edits, driver, request, placement);
    if request.capabilities.has(Capability::Graphics) && !chosen.is_empty() {
        edits.texts.push(application_profile(chosen.iter().map(|chosen| chosen.gpu.minor)));
    }
    if request.capabilities.has(Capability::Compute) {
        edits.driver = driver.version;
    }
    edits.texts.extend(driver.params.as_deref().and_then(closed_params));
    edits.environment.push((VISIBLE.to_owned(), "void".to_owned()));
    if let Some(directory) = libcuda {
        edits.environment.push((LIBCUDA_DIRECTORY.to_owned(), directory.display().to_string()));
    }
    if driver.kind == DriverKind::Linux {
        edits.links.sort();
    }
    edits.additional_gids.sort_unstable();
    edits.additional_gids.dedup();
    Ok(edits)
}

/// The module's settings with one disabled, so that a driver that runs in the container does not
/// create nodes of GPUs that were not given to it.
pub(crate) fn closed_params(params: &str) -> Option<Text> {
    let open = "ModifyDeviceFiles: 1";
    params.lines().any(|line| line.trim() == open).then(|| Text {
        path: PathBuf::from("/proc/driver/nvidia/params"),
        contents: params.replace(open, "ModifyDeviceFiles: 0"),
    })
}

/// The application profile with the container's GPUs; without it, EGL and Vulkan list every GPU of
/// the module.
pub(crate) fn application_profile(minors: impl Iterator<Item = u32>) -> Text {
    let mask = minors.map(|minor| 1_u64.checked_shl(minor).unwrap_or(0)).fold(0, std::ops::BitOr::bitor);
    let contents = format!(
        "{{\"profiles\": [{{\"name\": \"_container_\", \"settings\": [\"EGLVisibleDGPUDevices\", {mask:#x}]}}], \
         \"rules\": [{{\"pattern\": [], \"profile\": \"_container_\"}}]}}\n"
    );
    let path = PathBuf::from("/etc/nvidia/nvidia-application-profiles-rc.d/10-container.conf");
    Text { path, contents }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn params_are_closed_only_where_they_were_open() {
        let text = closed_params("Foo: 3\nModifyDeviceFiles: 1\nModifyDeviceFilesX: 10\n").unwrap();
        assert_eq!(text.contents, "Foo: 3\nModifyDeviceFiles: 0\nModifyDeviceFilesX: 10\n");
        assert_eq!(closed_params("ModifyDeviceFiles: 0\n"), None);
    }
}
