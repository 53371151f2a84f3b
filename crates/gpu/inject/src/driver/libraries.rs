//! The driver's libraries, their directories, and the driver's version.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::Path;

use cudock_facts::version::DriverVersion;
use cudock_host::ld_cache::Cache;
use cudock_host::loader;

use super::tree::DriverTree;
use super::{DRIVER_CONTAINER, LibraryFile};
use crate::elf::{self, ElfClass};

/// Subdirectories of the loader's directories in which distributions keep several drivers.
const CURRENT: [&str; 2] = ["nvidia/current", "nvidia"];
/// Directories of 32-bit libraries, and of drivers that the loader finds only through links.
const MORE: [&str; 9] = [
    "/usr/lib32",
    "/usr/lib/i386-linux-gnu",
    "/usr/local/nvidia/lib32",
    "/run/opengl-driver-32/lib",
    "/usr/lib/i386-linux-gnu/nvidia/current",
    "/usr/lib/x86_64-linux-gnu/tegra",
    "/usr/lib/aarch64-linux-gnu/nvidia",
    "/home/kubernetes/bin/nvidia/lib64",
    "/opt/nvidia/lib",
];
/// Sub-directories that belong to a directory of libraries.
const BELOW: [&str; 5] = ["vdpau", "gbm", "nvidia/xorg", "xorg/modules/drivers", "xorg/modules/extensions"];

/// Prefixes of driver libraries that have a version of their own.
const OWN_VERSION: [&str; 6] = [
    "libnvidia-egl-gbm.so.",
    "libnvidia-egl-wayland.so.",
    "libnvidia-egl-wayland2.so.",
    "libnvidia-egl-xcb.so.",
    "libnvidia-egl-xlib.so.",
    "libnvidia-nvvm70.so.",
];
/// Driver libraries without a version.
const NO_VERSION: [&str; 2] = ["nvidia_drv.so", "libnvidia-vulkan-producer.so"];

/// Maximum number of links followed to a library; one or two are usual.
const MOST_LINKS: usize = 8;

/// The libraries of one driver.
pub(super) struct DriverLibraries {
    pub(super) suffix: String,
    /// Directories that hold libraries of that version, links followed.
    pub(super) directories: Vec<String>,
    pub(super) libraries: Vec<LibraryFile>,
}

/// A directory and its entries. Reading a distribution's directory takes a millisecond, so it is read once.
struct Directory {
    path: String,
    names: Vec<String>,
}

/// The driver's libraries; if there are several versions, those of the loaded module, else the
/// first ones found.
pub(super) fn find(tree: &DriverTree, kernel: Option<DriverVersion>) -> Option<DriverLibraries> {
    let read = |path: String| Directory { names: tree.names(&path), path };
    let candidates: Vec<Directory> = candidates(tree).into_iter().map(read).collect();
    let suffix = version(tree, &candidates, kernel)?;
    let mut directories = Vec::new();
    let mut libraries = Vec::new();
    let mut seen = BTreeSet::new();
    for directory in &candidates {
        let before = libraries.len();
        collect(tree, directory, None, &suffix, &mut seen, &mut libraries);
        for below in BELOW {
            let first = below.split('/').next().unwrap_or(below);
            if directory.names.iter().any(|name| name == first) {
                let names = tree.names(&format!("{}/{below}", directory.path));
                let inner = Directory { path: directory.path.clone(), names };
                collect(tree, &inner, Some(below), &suffix, &mut seen, &mut libraries);
            }
        }
        if libraries.len() > before {
            directories.push(directory.path.clone());
        }
    }
    Some(DriverLibraries { suffix, directories, libraries })
}

/// Every directory that may hold the driver, without links, in the loader's order. The targets of
/// links in a directory follow it immediately, which is how a Nix store is found.
fn candidates(tree: &DriverTree) -> Vec<String> {
    let searched = loader::directories(tree.files(), &BTreeMap::new(), tree.arch());
    let mut directories: Vec<String> = Vec::new();
    let mut add = |real: String| {
        if !is_foreign(&real) && !directories.contains(&real) && tree.files().is_dir(&real) {
            directories.push(real);
        }
    };
    let mut look = |directory: &str| {
        let Some(directory) = tree.real(directory) else { return };
        add(directory.clone());
        for name in
            ["libcuda.so.1", "libnvidia-ml.so.1"].into_iter().filter(|name| tree.has(&directory, name))
        {
            let real = tree.real(&format!("{directory}/{name}"));
            if let Some((other, _)) = real.as_deref().and_then(|real| real.rsplit_once('/')) {
                add(other.to_owned());
            }
        }
        if tree.has(&directory, "nvidia") {
            for below in CURRENT {
                tree.real(&format!("{directory}/{below}")).into_iter().for_each(&mut add);
            }
        }
    };
    for directory in &searched {
        look(&directory.path);
    }
    for directory in MORE {
        look(directory);
    }
    let cache = tree.host("/etc/ld.so.cache").and_then(|path| Cache::read(&path)).unwrap_or_default();
    for entry in cache.entries {
        if (entry.name.starts_with("libcuda.so.") || entry.name.starts_with("libnvidia-ml.so."))
            && let Some((directory, _)) = entry.path.rsplit_once('/')
        {
            look(directory);
        }
    }
    directories
}

/// Libraries for linking, libraries of other drivers, and those of a driver container, which is a root of its own.
fn is_foreign(directory: &str) -> bool {
    ["/stubs", "/compat", "/cuda-compat", DRIVER_CONTAINER].iter().any(|part| directory.contains(part))
}

fn version(tree: &DriverTree, directories: &[Directory], kernel: Option<DriverVersion>) -> Option<String> {
    let mut found: Vec<String> = Vec::new();
    for stem in ["libcuda.so.", "libnvidia-ml.so."] {
        for directory in directories {
            for name in &directory.names {
                let Some(suffix) = name.strip_prefix(stem) else { continue };
                let exact = suffix.parse::<DriverVersion>().is_ok_and(DriverVersion::is_exact);
                if exact && tree.is_full_file(&format!("{}/{name}", directory.path)) {
                    found.push(suffix.to_owned());
                }
            }
        }
        if !found.is_empty() {
            break;
        }
    }
    let loaded = |suffix: &&String| suffix.parse().ok() == kernel;
    found.iter().find(loaded).or_else(|| found.first()).cloned()
}

fn collect(
    tree: &DriverTree,
    directory: &Directory,
    below: Option<&'static str>,
    suffix: &str,
    seen: &mut BTreeSet<String>,
    libraries: &mut Vec<LibraryFile>,
) {
    let at = below.map_or_else(|| directory.path.clone(), |below| format!("{}/{below}", directory.path));
    let names = &directory.names;
    let ours = |name: &&String| {
        let versioned = name.strip_suffix(suffix).is_some_and(|stem| stem.ends_with(".so."));
        let own = OWN_VERSION.iter().any(|stem| {
            name.strip_prefix(stem).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        });
        versioned && (name.starts_with("lib") || below.is_some())
            || own
            || NO_VERSION.contains(&name.as_str())
    };
    // Links are listed with the file they lead to, and a directory that is a link is read at its target.
    if below.is_some() && tree.real(&at).as_ref() != Some(&at) {
        return;
    }
    let outside = tree.outside(&at);
    for name in names.iter().filter(ours) {
        let host = outside.join(name);
        let full = fs::symlink_metadata(&host).is_ok_and(|found| found.is_file() && found.len() > 0);
        if !full || !seen.insert(format!("{at}/{name}")) {
            continue;
        }
        // A directory may have thousands of files, and following each would take longer than starting a container.
        let stem = name.split_once(".so").map_or(name.as_str(), |(stem, _)| stem);
        let alike = |other: &&String| other.strip_prefix(stem).is_some_and(|rest| rest.starts_with(".so"));
        let leads_here = |other: &&String| *other != name && leads_to(tree, &at, &outside, other, name);
        let links: Vec<String> = names.iter().filter(alike).filter(leads_here).cloned().collect();
        let elf = File::open(&host).ok().and_then(|file| elf::read(&file));
        let class = elf.as_ref().map_or_else(|| class_of(&at), |elf| elf.class);
        let soname = elf.and_then(|elf| elf.soname).or_else(|| soname_of(name, &links));
        let (file, directory) = (name.clone(), directory.path.clone());
        libraries.push(LibraryFile { file, directory, below, host, soname, class, links });
    }
}

/// Whether a link of a directory leads to a file in it, by way of others in it or from outside.
fn leads_to(tree: &DriverTree, directory: &str, outside: &Path, link: &str, file: &str) -> bool {
    let mut here = link.to_owned();
    for _ in 0..MOST_LINKS {
        match fs::read_link(outside.join(&here)).map(|target| target.to_string_lossy().into_owned()) {
            Ok(target) if target.contains('/') => {
                return tree.real(&format!("{directory}/{link}")) == Some(format!("{directory}/{file}"));
            }
            Ok(target) => here = target,
            Err(_) => return here == file,
        }
    }
    false
}

/// The ELF class, guessed from a directory's name.
fn class_of(directory: &str) -> ElfClass {
    let narrow =
        ["/lib32", "/i386-linux-gnu", "/opengl-driver-32"].iter().any(|part| directory.contains(part));
    if narrow { ElfClass::Bits32 } else { ElfClass::Bits64 }
}

/// The SONAME, from the link that `ldconfig` created: a name with a single number after `.so.`.
fn soname_of(file: &str, links: &[String]) -> Option<String> {
    let stem = file.split_once(".so.")?.0;
    let is_soname = |link: &&String| {
        let number = link.strip_prefix(stem).and_then(|rest| rest.strip_prefix(".so."));
        number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
    };
    links.iter().find(is_soname).cloned()
}
