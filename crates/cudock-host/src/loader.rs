//! Where the dynamic loader looks.

use std::collections::BTreeMap;

use crate::files::Files;
use crate::host::FoundBy;
use crate::python::paths_of;

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
pub struct Directory {
    /// /usr/lib/x86_64-linux-gnu
    pub path: String,
    /// How the loader comes to it.
    pub found_by: FoundBy,
}

/// The directories the loader searches, in its order, and then those it does not.
pub fn directories(
    files: &dyn Files,
    environment: &BTreeMap<String, String>,
    cpu_arch: &str,
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
    for path in ODD_PLACES {
        add(path.to_owned(), FoundBy::NotSearched);
    }
    directories
}

/// The directories of `ld.so.conf`, with the files it includes.
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

/// The files of a pattern whose last part may hold one star, which is all that is ever written there.
fn matching(files: &dyn Files, pattern: &str) -> Vec<String> {
    let pattern = if pattern.starts_with('/') { pattern.to_owned() } else { format!("/etc/{pattern}") };
    let Some((directory, name)) = pattern.rsplit_once('/') else { return Vec::new() };
    let Some((before, after)) = name.split_once('*') else { return vec![pattern] };
    let fits = |name: &String| {
        name.len() >= before.len() + after.len() && name.starts_with(before) && name.ends_with(after)
    };
    files.names(directory).into_iter().filter(fits).map(|name| format!("{directory}/{name}")).collect()
}
