//! The search path of the dynamic loader.

use std::collections::BTreeMap;

use cudock_base::Arch;

use crate::files::Files;
use crate::host::FoundBy;
use crate::python::paths_of;

/// Directories with drivers that the loader does not search by default: cloud hosts, driver containers, Nix, WSL2.
const UNSEARCHED_DIRECTORIES: [&str; 9] = [
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

/// The limit of nested includes.
const MAX_INCLUDES: usize = 8;

/// A library directory, and how the loader finds it.
#[derive(Debug, Clone)]
pub struct Directory {
    pub path: String,
    pub found_by: FoundBy,
}

/// The directories that the loader searches, in order, followed by known ones that it does not search.
pub fn directories(
    files: &dyn Files,
    environment: &BTreeMap<String, String>,
    cpu_arch: Arch,
) -> Vec<Directory> {
    let mut directories: Vec<Directory> = Vec::new();
    let mut add = |path: String, found_by| {
        if !directories.iter().any(|known| known.path == path) && files.is_dir(&path) {
            directories.push(Directory { path, found_by });
        }
    };
    for path in paths_of(environment, "LD_LIBRARY_PATH") {
        add(path, FoundBy::LibraryPath);
    }
    for path in configured(files, "/etc/ld.so.conf", 0) {
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
    for path in UNSEARCHED_DIRECTORIES {
        add(path.to_owned(), FoundBy::NotSearched);
    }
    directories
}

/// The directories of `ld.so.conf`, with included files.
fn configured(files: &dyn Files, file: &str, depth: usize) -> Vec<String> {
    let text = files.text(file).unwrap_or_default();
    let mut directories = Vec::new();
    for line in text.lines() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if let Some(pattern) = line.strip_prefix("include ") {
            if depth < MAX_INCLUDES {
                for file in matching(files, pattern.trim()) {
                    directories.extend(configured(files, &file, depth + 1));
                }
            }
        } else if line.starts_with('/') {
            directories.push(line.trim_end_matches('/').to_owned());
        }
    }
    directories
}

/// The files that match a pattern. Only one star in the last component is supported, which is all that is used.
fn matching(files: &dyn Files, pattern: &str) -> Vec<String> {
    let pattern = if pattern.starts_with('/') { pattern.to_owned() } else { format!("/etc/{pattern}") };
    let Some((directory, name)) = pattern.rsplit_once('/') else { return Vec::new() };
    let Some((before, after)) = name.split_once('*') else { return vec![pattern] };
    let fits = |name: &String| {
        name.len() >= before.len() + after.len() && name.starts_with(before) && name.ends_with(after)
    };
    files.names(directory).into_iter().filter(fits).map(|name| format!("{directory}/{name}")).collect()
}
