//! Reads the state of a machine or a directory tree, without judging it.

mod containers;
mod cuda;
mod kernel;
mod libraries;
mod nodes;
mod system;

use std::collections::BTreeMap;
use std::path::Path;

use crate::host::{Host, NvmlResult};
use crate::{Files, Root};

/// Environment variables that are read: those that affect CUDA, NVIDIA's runtime, the loader and Python. None is secret.
pub const VARIABLES: [&str; 12] = [
    "CONDA_PREFIX",
    "CUDA_HOME",
    "CUDA_MODULE_LOADING",
    "CUDA_VERSION",
    "CUDA_VISIBLE_DEVICES",
    "HOME",
    "LD_LIBRARY_PATH",
    "NVIDIA_DRIVER_CAPABILITIES",
    "NVIDIA_VISIBLE_DEVICES",
    "PATH",
    "PYENV_ROOT",
    "VIRTUAL_ENV",
];

/// Queries NVML. The argument is the library to load if the loader does not find it.
pub type QueryNvml<'a> = &'a dyn Fn(Option<&Path>) -> NvmlResult;

/// Reads a root. On a live machine `query_nvml` is called once; a directory tree has no driver.
pub fn read(root: &Root, query_nvml: QueryNvml<'_>) -> Host {
    let environment = environment(root);
    let system = system::read(root);
    let directories = crate::loader::directories(root, &environment, system.cpu_arch);
    let libraries = libraries::driver_libraries(root, &directories);
    let nvml = if root.is_live() {
        let unsearched = libraries::unsearched_path(&libraries, "libnvidia-ml.so.1").map(Path::new);
        query_nvml(unsearched)
    } else {
        NvmlResult::NotQueried
    };
    Host {
        pci: kernel::pci(root),
        kernel: kernel::driver(root),
        nodes: nodes::read(root),
        loader_cache: libraries::cache(root),
        nvml,
        toolkits: cuda::toolkits(root),
        containers: containers::read(root, &environment),
        python: crate::python::read(root, &environment),
        cuda_libraries: cuda::libraries(root, &directories),
        libraries,
        system,
        environment,
    }
}

/// The environment of this process, or the saved `/proc/self/environ` of a tree.
fn environment(root: &Root) -> BTreeMap<String, String> {
    if root.is_live() {
        return VARIABLES
            .iter()
            .filter_map(|name| Some(((*name).to_owned(), std::env::var(name).ok()?)))
            .collect();
    }
    let saved = root.text("/proc/self/environ").unwrap_or_default();
    saved
        .split('\0')
        .filter_map(|pair| pair.split_once('='))
        .filter(|(name, _)| VARIABLES.contains(name))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}
