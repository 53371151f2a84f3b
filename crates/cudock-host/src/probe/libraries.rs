use std::collections::BTreeMap;

use cudock_facts::version::DriverVersion;

use super::paths_of;
use crate::host::{DriverLibrary, FoundBy, LibraryKind, LoaderCache};
use crate::ld_cache;
use crate::root::Root;

/// The driver's libraries that a CUDA program and `nvidia-smi` need.
const NAMES: [&str; 3] = ["libcuda.so.1", "libnvidia-ml.so.1", "libnvidia-ptxjitcompiler.so.1"];

/// Where drivers are put that the loader does not search unless told: cloud hosts, driver containers, Nix, WSL2.
const ODD_PLACES: [&str; 9] = [
    "/usr/local/nvidia/lib64",
    "/usr/local/nvidia/lib",
    "/usr/lib/wsl/lib",
    "/run/nvidia/driver/usr/lib/x86_64-linux-gnu",
    "/run/nvidia/driver/usr/lib/aarch64-linux-gnu",
    "/run/nvidia/driver/usr/lib64",
    "/run/opengl-driver/lib",
    "/usr/lib/nvidia/current",
    "/opt/nvidia/lib64",
];

/// How deep configuration files may include each other.
const MAX_INCLUDES: usize = 8;

/// A directory with libraries, and how the loader comes to it.
#[derive(Debug, Clone)]
pub(super) struct Directory {
    pub(super) path: String,
    pub(super) found_by: FoundBy,
}

/// The directories the loader searches, in its order, and then those it does not.
pub(super) fn directories(
    root: &Root,
    environment: &BTreeMap<String, String>,
    cpu_arch: &str,
) -> Vec<Directory> {
    let mut directories: Vec<Directory> = Vec::new();
    let mut add = |path: String, found_by| {
        if !directories.iter().any(|known| known.path == path) && root.is_dir(&path) {
            directories.push(Directory { path, found_by });
        }
    };
    for path in paths_of(environment, "LD_LIBRARY_PATH") {
        add(path, FoundBy::LibraryPath);
    }
    for path in configured(root, "/etc/ld.so.conf", 0) {
        add(path, FoundBy::Configuration);
    }
    let triplet = format!("{cpu_arch}-linux-gnu");
    for path in [
        &format!("/lib/{triplet}"),
        &format!("/usr/lib/{triplet}"),
        "/lib64",
        "/usr/lib64",
        "/lib",
        "/usr/lib",
    ] {
        add(path.to_owned(), FoundBy::Default);
    }
    for path in ODD_PLACES {
        add(path.to_owned(), FoundBy::NotSearched);
    }
    directories
}

/// The directories of `ld.so.conf`, with the files it includes.
fn configured(root: &Root, file: &str, depth: usize) -> Vec<String> {
    let text = root.text(file).unwrap_or_default();
    let mut directories = Vec::new();
    for line in text.lines() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if let Some(pattern) = line.strip_prefix("include ") {
            if depth < MAX_INCLUDES {
                for file in matching(root, pattern.trim()) {
                    directories.extend(configured(root, &file, depth + 1));
                }
            }
        } else if line.starts_with('/') {
            directories.push(line.trim_end_matches('/').to_owned());
        }
    }
    directories
}

/// The files of a pattern whose last part may hold one star, which is all that is ever written there.
fn matching(root: &Root, pattern: &str) -> Vec<String> {
    let pattern = if pattern.starts_with('/') { pattern.to_owned() } else { format!("/etc/{pattern}") };
    let Some((directory, name)) = pattern.rsplit_once('/') else { return Vec::new() };
    let Some((before, after)) = name.split_once('*') else { return vec![pattern] };
    let fits = |name: &String| {
        name.len() >= before.len() + after.len() && name.starts_with(before) && name.ends_with(after)
    };
    root.names(directory).into_iter().filter(fits).map(|name| format!("{directory}/{name}")).collect()
}

/// All copies of the driver's libraries. One that is found twice through links is told once, where the loader
/// finds it first.
pub(super) fn driver_libraries(root: &Root, directories: &[Directory]) -> Vec<DriverLibrary> {
    let mut libraries: Vec<DriverLibrary> = Vec::new();
    for name in NAMES {
        for directory in directories {
            let path = format!("{}/{name}", directory.path);
            let Some(library) = library(root, name, path, directory.found_by) else { continue };
            let twice = libraries.iter().any(|known| {
                known.name == library.name
                    && known.real_path.is_some()
                    && known.real_path == library.real_path
            });
            if !twice {
                libraries.push(library);
            }
        }
    }
    libraries
}

fn library(root: &Root, name: &str, path: String, found_by: FoundBy) -> Option<DriverLibrary> {
    let real_path = root.real(&path).map(|path| path.to_string_lossy().into_owned());
    let link = root.link(&path);
    if real_path.is_none() && link.is_none() {
        return None;
    }
    let size = root.stat(&path).map_or(0, |stat| stat.size);
    let whole = real_path.clone().or(link).unwrap_or_default();
    let file = whole.rsplit('/').next().unwrap_or_default();
    let kind = if real_path.is_none() {
        LibraryKind::Dangling
    } else if size == 0 {
        LibraryKind::Empty
    } else if whole.contains("/stubs/") {
        LibraryKind::Stub
    } else if whole.contains("/compat/") || whole.contains("/cuda-compat") {
        LibraryKind::Compat
    } else {
        LibraryKind::Driver
    };
    let version = file.split_once(".so.").and_then(|(_, version)| version.parse::<DriverVersion>().ok());
    Some(DriverLibrary { name: name.to_owned(), path, real_path, size, version, kind, found_by })
}

/// Where a library is if the loader would not find it.
pub(super) fn outside_the_search<'a>(libraries: &'a [DriverLibrary], name: &str) -> Option<&'a str> {
    let first = libraries.iter().find(|library| library.name == name)?;
    (first.found_by == FoundBy::NotSearched).then_some(first.path.as_str())
}

pub(super) fn cache(root: &Root) -> Option<LoaderCache> {
    let bytes = root.bytes("/etc/ld.so.cache")?;
    let entries = ld_cache::parse(&bytes)?;
    let lists = |name: &str| entries.iter().any(|entry| entry.name == name);
    Some(LoaderCache { libcuda: lists("libcuda.so.1"), nvml: lists("libnvidia-ml.so.1") })
}
