//! CUDA's libraries, which the GPU build needs and its wheel does not have.

use std::path::PathBuf;

use cudock_facts::Facts;
use cudock_host::{Files, ld_cache, loader};
use serde::Serialize;

use super::Found;
use super::places::Machine;
use crate::env::CONDA_PREFIX;

/// The driver's library comes with the driver; no package can bring it.
const OF_DRIVER: &str = "libcuda.so.1";
/// Loaded by the TensorRT provider, if it is used.
const OF_TENSORRT: &str = "libnvinfer.so.10";

/// Where a process that loads the GPU build finds CUDA's libraries.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct CudaLibraries {
    /// Folders for its `LD_LIBRARY_PATH`; those that the loader searches by itself are not among them.
    pub folders: Vec<PathBuf>,
    /// Libraries that are nowhere.
    pub missing: Vec<MissingLibrary>,
    /// Whether the driver's library is there.
    pub driver: bool,
}

/// A library that is nowhere, and what would bring it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MissingLibrary {
    /// libcudnn.so.9
    pub soname: String,
    /// As pip takes it, where the tables know it.
    pub requirement: Option<String>,
}

impl CudaLibraries {
    /// What to type to have all that is missing, besides the driver.
    pub fn hint(&self, found: &Found) -> Option<String> {
        if self.missing.is_empty() {
            return None;
        }
        let known: Option<Vec<&str>> =
            self.missing.iter().map(|library| library.requirement.as_deref()).collect();
        Some(match (known, &found.version) {
            (Some(mut requirements), _) => {
                requirements.sort_unstable();
                requirements.dedup();
                let quoted: Vec<String> = requirements.iter().map(|text| format!("'{text}'")).collect();
                format!("pip install {}", quoted.join(" "))
            }
            (None, Some(version)) => format!("pip install 'onnxruntime-gpu[cuda,cudnn]=={version}'"),
            (None, None) => "pip install 'onnxruntime-gpu[cuda,cudnn]'".to_owned(),
        })
    }
}

/// Looks for the libraries that a GPU build uses: in NVIDIA's wheels of the Python environments, in the toolkits below
/// `/usr/local`, in conda, and where the loader looks by itself.
pub fn cuda_libraries(machine: &Machine, found: &Found, facts: &Facts) -> CudaLibraries {
    let files: &dyn Files = &machine.root;
    let folders = candidates(machine, files);
    let by_itself = ByItself::new(machine, files);
    let mut libraries = CudaLibraries { driver: by_itself.has(files, OF_DRIVER), ..CudaLibraries::default() };
    let mut take = |soname: &str, is_needed: bool| {
        let has = |folder: &&String| files.exists(&format!("{folder}/{soname}"));
        match folders.iter().find(has).map(PathBuf::from) {
            Some(folder) if libraries.folders.contains(&folder) => {}
            Some(folder) => libraries.folders.push(folder),
            None if is_needed && !by_itself.has(files, soname) => {
                let requirement = facts.runtimes().requirement_for(soname).map(str::to_owned);
                libraries.missing.push(MissingLibrary { soname: soname.to_owned(), requirement });
            }
            None => {}
        }
    };
    for soname in used(machine, found, facts) {
        take(&soname, true);
    }
    if found.providers.iter().any(|provider| provider == "tensorrt") {
        take(OF_TENSORRT, false);
    }
    libraries
}

/// What a build uses besides the driver, by the tables; nothing is known of builds that are not in them.
fn used(machine: &Machine, found: &Found, facts: &Facts) -> Vec<String> {
    let Some(version) = found.version.as_deref().and_then(|text| text.parse().ok()) else {
        return Vec::new();
    };
    let pinned = facts.runtimes().wheel.iter().find(|wheel| {
        wheel.package == found.package.name() && wheel.version == version && wheel.cpu == machine.cpu
    });
    let mut used: Vec<String> = match (pinned, facts.frameworks().onnxruntime_gpu(&version)) {
        (Some(wheel), _) => wheel.needs.iter().chain(&wheel.loads).cloned().collect(),
        (None, Some(row)) if found.providers.iter().any(|provider| provider == "cuda") => {
            let cudnn = format!("libcudnn.so.{}", row.cudnn_major);
            row.needs.iter().cloned().chain([cudnn]).collect()
        }
        (None, _) => Vec::new(),
    };
    used.retain(|soname| soname != OF_DRIVER);
    used.sort();
    used.dedup();
    used
}

/// Folders that hold CUDA's libraries and that the loader does not know.
fn candidates(machine: &Machine, files: &dyn Files) -> Vec<String> {
    let mut folders = Vec::new();
    for place in machine.python_places() {
        for site_packages in &place.site_packages {
            let nvidia = format!("{site_packages}/nvidia");
            folders.extend(files.names(&nvidia).into_iter().map(|part| format!("{nvidia}/{part}/lib")));
            folders.push(format!("{site_packages}/tensorrt_libs"));
        }
        if place.by == CONDA_PREFIX {
            folders.push(format!("{}/lib", place.prefix));
        }
    }
    // The one that is in use, then the newest.
    let mut toolkits: Vec<String> =
        files.names("/usr/local").into_iter().filter(|name| name.starts_with("cuda")).collect();
    toolkits.sort_by_key(|name| (name != "cuda", std::cmp::Reverse(version_of(name))));
    for toolkit in toolkits {
        folders.push(format!("/usr/local/{toolkit}/lib64"));
        let target = if machine.cpu == "aarch64" { "sbsa" } else { &machine.cpu };
        folders.push(format!("/usr/local/{toolkit}/targets/{target}-linux/lib"));
    }
    folders.retain(|folder| files.is_dir(folder));
    folders
}

fn version_of(toolkit: &str) -> Vec<u32> {
    toolkit.trim_start_matches("cuda-").split('.').map_while(|part| part.parse().ok()).collect()
}

/// What the loader finds without being told.
struct ByItself {
    folders: Vec<String>,
    cached: Vec<String>,
}

impl ByItself {
    fn new(machine: &Machine, files: &dyn Files) -> Self {
        let directories = loader::directories(files, &machine.variables(), &machine.cpu).into_iter();
        let searched =
            directories.filter(|directory| directory.found_by != cudock_host::host::FoundBy::NotSearched);
        let cache = std::fs::read(machine.root.base().join("etc/ld.so.cache")).unwrap_or_default();
        let cached = ld_cache::parse(&cache).unwrap_or_default();
        Self {
            folders: searched.map(|directory| directory.path).collect(),
            cached: cached.into_iter().map(|entry| entry.name.to_owned()).collect(),
        }
    }

    fn has(&self, files: &dyn Files, soname: &str) -> bool {
        self.cached.iter().any(|name| name == soname)
            || self.folders.iter().any(|folder| files.exists(&format!("{folder}/{soname}")))
    }
}

#[cfg(test)]
#[path = "cuda_tests.rs"]
mod tests;
