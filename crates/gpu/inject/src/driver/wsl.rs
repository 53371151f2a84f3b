//! Windows' driver, seen from WSL2: one device node, and libraries in a directory that Windows shares.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;

use super::tree::DriverTree;
use super::{Driver, DriverKind, HostFile, LibraryFile, Role, nodes};
use crate::InjectError;
use crate::elf::{self, ElfClass};

const LIBRARIES: &str = "/usr/lib/wsl/lib";
const STORE: &str = "/usr/lib/wsl/drivers";
const NODE: &str = "/dev/dxg";

/// Libraries of the store that programs open, and the names by which they open them.
const NAMED: [(&str, &str); 6] = [
    ("libcuda.so.1.1", "libcuda.so.1"),
    ("libnvidia-ml.so.1", "libnvidia-ml.so.1"),
    ("libnvidia-ptxjitcompiler.so.1", "libnvidia-ptxjitcompiler.so.1"),
    ("libnvdxgdmal.so.1", "libnvdxgdmal.so.1"),
    ("libcuda_loader.so", "libcuda_loader.so"),
    ("libnvidia-ml_loader.so", "libnvidia-ml_loader.so"),
];

pub(super) fn is(devices: &DriverTree) -> bool {
    devices.exists(NODE)
}

/// The store of the driver in use: it has a libcuda; if updates left several, it is the newest.
fn store(files: &DriverTree) -> Option<String> {
    let directories = files.names(STORE).into_iter().map(|name| format!("{STORE}/{name}"));
    let with_driver =
        directories.filter(|directory| files.is_full_file(&format!("{directory}/libcuda.so.1.1")));
    with_driver.max_by_key(|directory| {
        files
            .metadata(&format!("{directory}/libcuda.so.1.1"))
            .map(|metadata| (metadata.mtime(), metadata.mtime_nsec()))
    })
}

pub(super) fn find(files: &DriverTree, devices: &DriverTree) -> Result<Driver, InjectError> {
    let store = store(files).ok_or_else(|| InjectError::NoDriver { root: files.outside(STORE) })?;
    let mut libraries = Vec::new();
    let mut others = Vec::new();
    let mut library = |directory: &str, name: &str, soname: &str| {
        let path = format!("{directory}/{name}");
        let Some(host) = files.host(&path) else { return };
        let class = std::fs::File::open(&host)
            .ok()
            .and_then(|file| elf::read(&file))
            .map_or(ElfClass::Bits64, |elf| elf.class);
        libraries.push(LibraryFile {
            file: name.to_owned(),
            directory: directory.to_owned(),
            below: None,
            host,
            soname: Some(soname.to_owned()),
            class,
            links: if name == "libcuda.so.1.1" { vec!["libcuda.so".to_owned()] } else { Vec::new() },
        });
    };
    if files.is_full_file(&format!("{LIBRARIES}/libdxcore.so")) {
        library(LIBRARIES, "libdxcore.so", "libdxcore.so");
    }
    for name in &files.names(&store) {
        let known = NAMED.iter().find(|(file, _)| file == name);
        let is_library = name.contains(".so");
        let kept = is_library
            || [".bin", ".dll"].iter().any(|ending| name.ends_with(ending))
            || name == "nvidia-smi";
        let path = format!("{store}/{name}");
        if !kept || !files.is_full_file(&path) {
            continue;
        }
        if let Some((_, soname)) = known {
            library(&store, name, soname);
        } else if let Some(host) = files.host(&path) {
            others.push(HostFile { role: Role::Store, inside: path, host });
        }
    }
    let mut odd = Vec::new();
    if !libraries.iter().any(|library| library.file == "libdxcore.so") {
        odd.push(format!("{LIBRARIES}/libdxcore.so is missing: update WSL with `wsl --update`"));
    }
    let mut nodes = BTreeMap::new();
    let node = nodes::node(devices, NODE);
    let not_devices = if node.is_none() { vec![NODE.to_owned()] } else { Vec::new() };
    nodes.extend(node.map(|node| (NODE.to_owned(), node)));
    Ok(Driver {
        kind: DriverKind::Wsl,
        version: None,
        suffix: String::new(),
        root: files.base().to_owned(),
        libraries,
        files: others,
        gpus: Vec::new(),
        nodes,
        not_devices,
        mig_minors: BTreeMap::new(),
        params: None,
        notes: odd,
    })
}
