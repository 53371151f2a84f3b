//! The GPUs of a container that docker or podman runs: the edits that cudock makes itself, as far as a command line can
//! express them.
//!
//! Device nodes, files, groups and variables can be expressed. Links cannot, so the library's file is mounted once under
//! each of its names. The loader's cache cannot be written, so the directory of the driver's libraries is appended to
//! `LD_LIBRARY_PATH`, where the cache would come in the search order. That directory holds nothing else: the variable takes
//! precedence over a library's own `RUNPATH`, so a system directory in it would replace libraries that a program ships.
//! Two things are left out: the setting that keeps a driver from creating nodes of other GPUs (the
//! engine's device rules keep it from opening them), and the profile that lists the available GPUs
//! for EGL and Vulkan.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use cudock_inject::{Edits, Placement};

use crate::engine::RunRequest;
use crate::error::RuntimeError;

/// Where the driver's libraries are mounted. GPU images have this directory in their `LD_LIBRARY_PATH` already.
const LIBRARY_DIRECTORY: &str = "/usr/local/nvidia/lib64";

const SEARCH_PATH: &str = "LD_LIBRARY_PATH";

const MAX_LINKS: usize = 8;

/// The edits for the GPUs of a request, if it has any. `image` is the image's environment.
pub(super) fn edits(request: &RunRequest, image: &[(String, String)]) -> Result<Option<Edits>, RuntimeError> {
    let Some(gpus) = &request.config.gpus else { return Ok(None) };
    let environment: BTreeMap<String, String> =
        image.iter().chain(&request.private.environment).cloned().collect();
    let placement = Placement::Directory(PathBuf::from(LIBRARY_DIRECTORY));
    crate::start::gpu::find_at(gpus, &environment, &placement).map(Some)
}

/// The variables of a container: the user's, overridden by those of its GPUs.
pub(super) fn variables(
    request: &RunRequest,
    image: &[(String, String)],
    edits: Option<&Edits>,
) -> Vec<(String, String)> {
    let mut all = request.config.process.environment.clone();
    all.extend(request.private.environment.iter().cloned());
    let Some(edits) = edits else { return all };
    let before = all.iter().rev().chain(image.iter().rev()).find(|(name, _)| name == SEARCH_PATH);
    let mut directories: Vec<String> = before
        .map(|(_, directories)| {
            directories.split(':').filter(|directory| !directory.is_empty()).map(str::to_owned).collect()
        })
        .unwrap_or_default();
    for directory in edits.libraries.iter().filter_map(|library| library.path.parent()) {
        let directory = directory.display().to_string();
        if !directories.contains(&directory) {
            directories.push(directory);
        }
    }
    all.extend(edits.environment.iter().cloned());
    if !directories.is_empty() {
        all.push((SEARCH_PATH.to_owned(), directories.join(":")));
    }
    all
}

/// The mounts that replace the links of the edits: host path, container path. Links to files that are not mounted are
/// skipped.
pub(super) fn linked(edits: &Edits) -> Vec<(&Path, &Path)> {
    edits
        .links
        .iter()
        .filter_map(|link| Some((link_source(edits, &link.path)?, link.path.as_path())))
        .collect()
}

fn link_source<'a>(edits: &'a Edits, path: &Path) -> Option<&'a Path> {
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        if let Some(mount) = edits.mounts.iter().find(|mount| mount.container == path) {
            return Some(&mount.host);
        }
        let link = edits.links.iter().find(|link| link.path == path)?;
        path = normalize(&link.path.parent()?.join(&link.target));
    }
    None
}

/// A path without `.` and `..`.
fn normalize(path: &Path) -> PathBuf {
    let mut normalized = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                normalized.pop();
            }
            Component::CurDir => {}
            other => normalized.push(other),
        }
    }
    normalized
}

#[cfg(test)]
pub(super) mod tests {
    use cudock_inject::{DeviceNode, ElfClass, Library, Link, Mount};

    use super::*;
    use crate::engine::external::argv_tests::request;

    /// A driver library with two names, a socket and a GPU.
    pub(in crate::engine::external) fn driver() -> Edits {
        let mount = |host: &str, container: &str, option: &str| Mount {
            host: host.into(),
            container: container.into(),
            options: vec![option.to_owned(), "rbind".to_owned()],
        };
        let link = |path: &str, target: &str| Link { path: path.into(), target: target.into() };
        Edits {
            devices: vec![DeviceNode {
                host: "/tree/dev/nvidia1".into(),
                container: "/dev/nvidia1".into(),
                major: 195,
                minor: 1,
                mode: 0o660,
                gid: 44,
            }],
            mounts: vec![
                mount("/tree/libcuda.so.580.1", "/usr/local/nvidia/lib64/libcuda.so.580.1", "ro"),
                mount("/run/nvidia/socket", "/run/nvidia/socket", "nosuid"),
            ],
            links: vec![
                link("/dev/dri/by-path/pci-card", "../card0"),
                link("/usr/local/nvidia/lib64/gbm/x.so", "../libcuda.so.1"),
                link("/usr/local/nvidia/lib64/libcuda.so", "libcuda.so.1"),
                link("/usr/local/nvidia/lib64/libcuda.so.1", "libcuda.so.580.1"),
                link("/a", "b"),
                link("/b", "a"),
            ],
            environment: vec![("NVIDIA_VISIBLE_DEVICES".to_owned(), "void".to_owned())],
            additional_gids: vec![44],
            libraries: vec![Library {
                soname: "libcuda.so.1".to_owned(),
                path: "/usr/local/nvidia/lib64/libcuda.so.1".into(),
                class: ElfClass::Bits64,
            }],
            ..Edits::default()
        }
    }

    fn value(variables: &[(String, String)], name: &str) -> Option<String> {
        variables.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value.clone())
    }

    fn pair(name: &str, value: &str) -> (String, String) {
        (name.to_owned(), value.to_owned())
    }

    #[test]
    fn every_name_of_a_library_is_a_mount_of_its_file() {
        let edits = driver();
        let file = Path::new("/tree/libcuda.so.580.1");
        let directory = Path::new("/usr/local/nvidia/lib64");
        let names = ["gbm/x.so", "libcuda.so", "libcuda.so.1"].map(|name| directory.join(name));
        let expected: Vec<(&Path, &Path)> = names.iter().map(|name| (file, name.as_path())).collect();
        assert_eq!(linked(&edits), expected);
    }

    #[test]
    fn the_drivers_directory_is_appended_to_the_images_search_path() {
        let image = [pair(SEARCH_PATH, "/usr/local/cuda/compat:/usr/local/nvidia/lib")];
        let variables = variables(&request(), &image, Some(&driver()));
        let expected = "/usr/local/cuda/compat:/usr/local/nvidia/lib:/usr/local/nvidia/lib64";
        assert_eq!(value(&variables, SEARCH_PATH).as_deref(), Some(expected));
        assert_eq!(value(&variables, "NVIDIA_VISIBLE_DEVICES").as_deref(), Some("void"));
    }

    #[test]
    fn the_users_search_path_comes_before_the_images_and_is_kept() {
        let mut request = request();
        request.private.environment.push(pair(SEARCH_PATH, "/mine:/usr/local/nvidia/lib64"));
        let variables = variables(&request, &[pair(SEARCH_PATH, "/images")], Some(&driver()));
        assert_eq!(value(&variables, SEARCH_PATH).as_deref(), Some("/mine:/usr/local/nvidia/lib64"));
    }

    #[test]
    fn without_gpus_nothing_is_added() {
        let request = request();
        assert_eq!(variables(&request, &[pair("A", "1")], None), request.private.environment);
    }
}
