//! Everything of a driver that is neither a library nor a device: programs, sockets, firmware, settings.

use std::fs::File;
use std::os::unix::fs::FileExt;

use super::libraries::DriverLibraries;
use super::tree::DriverTree;
use super::{HostFile, Role};
use crate::request::Capability;

const PROGRAMS: [(&str, Role); 9] = [
    ("nvidia-smi", Role::Program(Capability::Utility)),
    ("nvidia-debugdump", Role::Program(Capability::Utility)),
    ("nvidia-persistenced", Role::Program(Capability::Utility)),
    ("nv-fabricmanager", Role::Program(Capability::Utility)),
    ("nvidia-cuda-mps-control", Role::Program(Capability::Compute)),
    ("nvidia-cuda-mps-server", Role::Program(Capability::Compute)),
    ("nvidia-imex", Role::OtherProgram),
    ("nvidia-imex-ctl", Role::OtherProgram),
    ("nvidia-bug-report.sh", Role::OtherProgram),
];

const PROGRAM_DIRECTORIES: [&str; 7] =
    ["/usr/bin", "/usr/sbin", "/bin", "/sbin", "/usr/local/bin", "/usr/local/nvidia/bin", "/opt/bin"];

const SOCKETS: [&str; 2] = ["/run/nvidia-persistenced/socket", "/run/nvidia-fabricmanager/socket"];

/// Settings, by their path below `/etc` and the directories of shared data; of a directory, the
/// files whose names have the given prefix.
const SETTINGS: [(&str, &str, Capability); 10] = [
    ("glvnd/egl_vendor.d", "10_nvidia", Capability::Graphics),
    ("egl/egl_external_platform.d", "", Capability::Graphics),
    ("vulkan/icd.d", "nvidia_", Capability::Graphics),
    ("vulkan/implicit_layer.d", "nvidia_", Capability::Graphics),
    ("vulkan/icd.d", "nvidia_icd", Capability::Graphics),
    ("vulkansc/icd.d", "nvidia_", Capability::Graphics),
    ("nvidia", "nvoptix.bin", Capability::Graphics),
    ("nvidia", "nvidia-application-profiles", Capability::Graphics),
    ("X11/xorg.conf.d", "10-nvidia", Capability::Display),
    ("OpenCL/vendors", "nvidia.icd", Capability::Compute),
];

const SHARED: [&str; 5] =
    ["/etc", "/usr/local/share", "/usr/share", "/run/opengl-driver/share", "/usr/local/nvidia/share"];

pub(super) fn find(
    files: &DriverTree,
    devices: &DriverTree,
    libraries: &DriverLibraries,
    mps: &str,
) -> Vec<HostFile> {
    let mut found = programs(files, libraries);
    found.extend(sockets(devices));
    found.extend(file(devices, Role::Socket(Capability::Compute), mps, mps));
    found.extend(firmware(files, devices, &libraries.suffix));
    found.extend(settings(files, libraries));
    found.extend(file(files, Role::Gds, "/etc/cufile.json", "/etc/cufile.json"));
    found.extend(file(devices, Role::Gds, "/run/udev", "/run/udev"));
    found
}

fn file(tree: &DriverTree, role: Role, path: &str, inside: &str) -> Option<HostFile> {
    Some(HostFile { role, inside: inside.to_owned(), host: tree.host(path)? })
}

/// Programs in the usual directories, or in `bin` next to the directories of libraries.
fn programs(files: &DriverTree, libraries: &DriverLibraries) -> Vec<HostFile> {
    let beside = libraries.directories.iter().filter_map(|directory| {
        let parent = directory.rsplit_once('/')?.0;
        Some(format!("{parent}/bin"))
    });
    let usual = PROGRAM_DIRECTORIES.iter().map(|directory| (*directory).to_owned());
    let directories = files.real_directories(usual.chain(beside));
    let program = |(name, role): &(&str, Role)| {
        let paths: Vec<String> = directories
            .iter()
            .filter(|directory| files.has(directory, name))
            .map(|directory| format!("{directory}/{name}"))
            .filter(|path| files.files().is_program(path))
            .collect();
        // A script of that name is usually a wrapper, and the program that it calls may not be in
        // the container.
        let path = paths.iter().find(|path| is_binary(files, path)).or_else(|| paths.first())?;
        file(files, *role, path, path)
    };
    PROGRAMS.iter().filter_map(program).collect()
}

fn is_binary(files: &DriverTree, path: &str) -> bool {
    let mut magic = [0; 4];
    let file = files.host(path).and_then(|path| File::open(path).ok());
    file.is_some_and(|file| file.read_exact_at(&mut magic, 0).is_ok()) && &magic == b"\x7fELF"
}

fn sockets(devices: &DriverTree) -> Vec<HostFile> {
    let socket = |path: &&str| {
        let old = path.replacen("/run/", "/var/run/", 1);
        let there = if devices.exists(path) { (*path).to_owned() } else { old };
        file(devices, Role::Socket(Capability::Utility), &there, path)
    };
    SOCKETS.iter().filter_map(socket).collect()
}

/// Firmware of this version, from the first directory that has any, in the kernel's order.
fn firmware(files: &DriverTree, devices: &DriverTree, suffix: &str) -> Vec<HostFile> {
    let line =
        |path: &str| devices.text(path).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
    let release = line("/proc/sys/kernel/osrelease").unwrap_or_default();
    let given = line("/sys/module/firmware_class/parameters/path").filter(|path| path.starts_with('/'));
    let usual = [
        format!("/lib/firmware/updates/{release}"),
        "/lib/firmware/updates".to_owned(),
        format!("/lib/firmware/{release}"),
        "/lib/firmware".to_owned(),
    ];
    for directory in given.into_iter().chain(usual) {
        let directory = format!("{directory}/nvidia/{suffix}");
        let names = files.names(&directory);
        let is_firmware =
            |name: &&String| name.strip_suffix(".bin").is_some_and(|stem| stem.starts_with("gsp"));
        let found: Vec<HostFile> = names
            .iter()
            .filter(is_firmware)
            .filter_map(|name| {
                let path = format!("{directory}/{name}");
                file(files, Role::Firmware, &path, &path)
            })
            .collect();
        if !found.is_empty() {
            return found;
        }
    }
    Vec::new()
}

/// Settings and their paths in the container: files from `/etc` stay there, all others are mounted
/// in `/usr/share`, because images do not use the other directories.
fn settings(files: &DriverTree, libraries: &DriverLibraries) -> Vec<HostFile> {
    let beside = libraries.directories.iter().filter_map(|directory| {
        Some(format!("{}/share", directory.rsplit_once('/').filter(|(parent, _)| parent.len() > 4)?.0))
    });
    let bases = files.real_directories(SHARED.iter().map(|base| (*base).to_owned()).chain(beside));
    let mut found: Vec<HostFile> = Vec::new();
    for (directory, prefix, capability) in SETTINGS {
        let first = directory.split('/').next().unwrap_or(directory);
        for base in bases.iter().filter(|base| files.has(base, first)) {
            for name in files.names(&format!("{base}/{directory}")) {
                let wanted = name.starts_with(prefix) && (!prefix.is_empty() || name.contains("nvidia"));
                let target = if base == "/etc" { "/etc" } else { "/usr/share" };
                let inside = format!("{target}/{directory}/{name}");
                let path = format!("{base}/{directory}/{name}");
                if wanted && files.is_full_file(&path) && !found.iter().any(|known| known.inside == inside) {
                    found.extend(file(files, Role::Setting(capability), &path, &inside));
                }
            }
        }
    }
    found
}
