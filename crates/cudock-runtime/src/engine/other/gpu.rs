//! The GPUs of a container that another engine runs: the same edits that cudock makes itself, as far as a command line
//! can say them.
//!
//! Device nodes, files, groups and variables can be said. Links cannot, so every name a library is known by is the
//! library's file, mounted once more. The loader's cache cannot be written, so `LD_LIBRARY_PATH` leads to the directory of
//! the driver's libraries, behind what it had before, which is where the cache would come. That directory holds nothing
//! else: the variable comes before what a library says about its own surroundings, and a directory of the distribution in
//! it would put the system's libraries in the place of those that came with a program. Two things are left out: the
//! setting that keeps a driver from making nodes of other GPUs (the engine's rules for devices keep it from opening
//! them), and the profile that tells EGL and Vulkan which GPUs are theirs.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use cudock_inject::{Edits, Placement};

use crate::engine::Request;
use crate::error::RuntimeError;

/// Where the driver's libraries go. Images made for GPUs have this directory in their `LD_LIBRARY_PATH` already.
const DIRECTORY: &str = "/usr/local/nvidia/lib64";

const SEARCHED: &str = "LD_LIBRARY_PATH";

/// A link may lead to a link, but not for ever.
const LONGEST_CHAIN: usize = 8;

/// What has to be done for the GPUs of a request; none where it asks for none. `image` is the image's environment.
pub(super) fn edits(request: &Request, image: &[(String, String)]) -> Result<Option<Edits>, RuntimeError> {
    let Some(gpus) = &request.plan.gpus else { return Ok(None) };
    let environment: BTreeMap<String, String> =
        image.iter().chain(&request.private.environment).cloned().collect();
    let placement = Placement::Directory(PathBuf::from(DIRECTORY));
    crate::gpu::find_at(gpus, &environment, &placement).map(Some)
}

/// The variables a container is given: the user's, and over them those of its GPUs.
pub(super) fn variables(
    request: &Request,
    image: &[(String, String)],
    edits: Option<&Edits>,
) -> Vec<(String, String)> {
    let mut whole = request.plan.process.environment.clone();
    whole.extend(request.private.environment.iter().cloned());
    let Some(edits) = edits else { return whole };
    let before = whole.iter().rev().chain(image.iter().rev()).find(|(name, _)| name == SEARCHED);
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
    whole.extend(edits.environment.iter().cloned());
    if !directories.is_empty() {
        whole.push((SEARCHED.to_owned(), directories.join(":")));
    }
    whole
}

/// The files that links of the edits lead to: from here, to there. Links to what is not mounted are left out.
pub(super) fn linked(edits: &Edits) -> Vec<(&Path, &Path)> {
    edits.links.iter().filter_map(|link| Some((led_to(edits, &link.path)?, link.path.as_path()))).collect()
}

fn led_to<'a>(edits: &'a Edits, path: &Path) -> Option<&'a Path> {
    let mut path = path.to_owned();
    for _ in 0..LONGEST_CHAIN {
        if let Some(mount) = edits.mounts.iter().find(|mount| mount.container == path) {
            return Some(&mount.host);
        }
        let link = edits.links.iter().find(|link| link.path == path)?;
        path = normal(&link.path.parent()?.join(&link.target));
    }
    None
}

/// A path without `.` and `..`.
fn normal(path: &Path) -> PathBuf {
    let mut whole = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                whole.pop();
            }
            Component::CurDir => {}
            other => whole.push(other),
        }
    }
    whole
}

#[cfg(test)]
pub(super) mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may fail loudly")]

    use cudock_inject::{DeviceNode, Library, Link, Mount, Word};

    use super::*;
    use crate::engine::other::words_tests::request;

    /// A driver's library, its two names, a program's socket and a GPU.
    pub(in crate::engine::other) fn driver() -> Edits {
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
                word: Word::Bits64,
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
    fn every_name_of_a_library_is_its_file() {
        let edits = driver();
        let file = Path::new("/tree/libcuda.so.580.1");
        let directory = Path::new("/usr/local/nvidia/lib64");
        let names = ["gbm/x.so", "libcuda.so", "libcuda.so.1"].map(|name| directory.join(name));
        let expected: Vec<(&Path, &Path)> = names.iter().map(|name| (file, name.as_path())).collect();
        assert_eq!(linked(&edits), expected);
    }

    #[test]
    fn the_loader_looks_for_the_driver_behind_what_the_image_says() {
        let image = [pair(SEARCHED, "/usr/local/cuda/compat:/usr/local/nvidia/lib")];
        let found = variables(&request(), &image, Some(&driver()));
        let expected = "/usr/local/cuda/compat:/usr/local/nvidia/lib:/usr/local/nvidia/lib64";
        assert_eq!(value(&found, SEARCHED).as_deref(), Some(expected));
        assert_eq!(value(&found, "NVIDIA_VISIBLE_DEVICES").as_deref(), Some("void"));
    }

    #[test]
    fn the_users_search_path_comes_before_the_images_and_is_kept() {
        let mut asked = request();
        asked.private.environment.push(pair(SEARCHED, "/mine:/usr/local/nvidia/lib64"));
        let found = variables(&asked, &[pair(SEARCHED, "/images")], Some(&driver()));
        assert_eq!(value(&found, SEARCHED).as_deref(), Some("/mine:/usr/local/nvidia/lib64"));
    }

    #[test]
    fn without_gpus_nothing_is_added() {
        let asked = request();
        assert_eq!(variables(&asked, &[pair("A", "1")], None), asked.private.environment);
    }
}
