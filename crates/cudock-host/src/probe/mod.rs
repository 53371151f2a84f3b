//! Reads what a machine or a tree says. Nothing here judges.

mod containers;
mod cuda;
mod kernel;
mod libraries;
mod nodes;
mod surroundings;

use std::collections::BTreeMap;
use std::path::Path;

use crate::host::{Host, NvmlAnswer};
use crate::root::Root;

/// Variables that are read: those that steer CUDA, NVIDIA's runtime, the loader and Python. None holds a secret.
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

/// How NVML is asked: given the library to load, if the loader would not find it by itself.
pub type AskNvml<'a> = &'a dyn Fn(Option<&Path>) -> NvmlAnswer;

/// Reads a root. On a live machine `ask_nvml` is called once; a tree has no driver to ask.
pub fn read(root: &Root, ask_nvml: AskNvml<'_>) -> Host {
    let environment = environment(root);
    let surroundings = surroundings::read(root);
    let directories = crate::loader::directories(root, &environment, &surroundings.cpu_arch);
    let libraries = libraries::driver_libraries(root, &directories);
    let nvml = if root.is_live() {
        let odd = libraries::outside_the_search(&libraries, "libnvidia-ml.so.1").map(Path::new);
        ask_nvml(odd)
    } else {
        NvmlAnswer::NotAsked
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
        surroundings,
        environment,
    }
}

/// The environment of this process; for a tree, of its `/proc/self`, where that was saved with it.
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
