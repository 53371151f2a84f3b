//! Finds CUDA's libraries, which the GPU build needs and its wheel does not contain.

use std::path::PathBuf;

use cudock_base::Arch;
use cudock_facts::Facts;
use cudock_host::ld_cache::Cache;
use cudock_host::{Files, loader};
use schemars::JsonSchema;
use serde::Serialize;

use super::RuntimeLibrary;
use super::context::SearchContext;
use crate::env::CONDA_PREFIX;

/// The driver's library, which no package contains.
const DRIVER_LIBRARY: &str = "libcuda.so.1";
/// Loaded by the TensorRT provider, if it is used.
const TENSORRT_LIBRARY: &str = "libnvinfer.so.10";

/// The locations of CUDA's libraries for the GPU build.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CudaLibraries {
    /// Directories for `LD_LIBRARY_PATH`, without those that the loader searches by default.
    pub directories: Vec<PathBuf>,
    pub missing: Vec<MissingLibrary>,
    pub driver: bool,
}

/// A library that was not found, and the package that contains it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MissingLibrary {
    /// libcudnn.so.9
    pub soname: String,
    /// The pip requirement, if the tables have it.
    pub requirement: Option<String>,
}

impl CudaLibraries {
    /// The command that installs what is missing, except the driver.
    pub fn hint(&self, found: &RuntimeLibrary) -> Option<String> {
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

/// Finds the libraries that a GPU build uses: in NVIDIA's wheels of the Python environments, in the toolkits below
/// `/usr/local`, in conda, and in the loader's default directories.
pub fn cuda_libraries(machine: &SearchContext, found: &RuntimeLibrary, facts: &Facts) -> CudaLibraries {
    let files: &dyn Files = &machine.root;
    let directories = candidates(machine, files);
    let loader = LoaderSearch::new(machine, files);
    let mut libraries =
        CudaLibraries { driver: loader.has(files, DRIVER_LIBRARY), ..CudaLibraries::default() };
    let mut take = |soname: &str, is_needed: bool| {
        let has = |directory: &&String| files.exists(&format!("{directory}/{soname}"));
        match directories.iter().find(has).map(PathBuf::from) {
            Some(directory) if libraries.directories.contains(&directory) => {}
            Some(directory) => libraries.directories.push(directory),
            None if is_needed && !loader.has(files, soname) => {
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
        take(TENSORRT_LIBRARY, false);
    }
    libraries
}

/// The libraries that a build uses besides the driver's, if the tables have the build.
fn used(machine: &SearchContext, found: &RuntimeLibrary, facts: &Facts) -> Vec<String> {
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
    used.retain(|soname| soname != DRIVER_LIBRARY);
    used.sort();
    used.dedup();
    used
}

/// Directories that may contain CUDA's libraries and that the loader does not search.
fn candidates(machine: &SearchContext, files: &dyn Files) -> Vec<String> {
    let mut directories = Vec::new();
    for environment in machine.python_environments() {
        for site_packages in &environment.site_packages {
            let nvidia = format!("{site_packages}/nvidia");
            directories.extend(files.names(&nvidia).into_iter().map(|part| format!("{nvidia}/{part}/lib")));
            directories.push(format!("{site_packages}/tensorrt_libs"));
        }
        if environment.by == CONDA_PREFIX {
            directories.push(format!("{}/lib", environment.prefix));
        }
    }
    // The default toolkit, then the newest.
    let mut toolkits: Vec<String> =
        files.names("/usr/local").into_iter().filter(|name| name.starts_with("cuda")).collect();
    toolkits.sort_by_key(|name| (name != "cuda", std::cmp::Reverse(version_of(name))));
    for toolkit in toolkits {
        directories.push(format!("/usr/local/{toolkit}/lib64"));
        let target = if machine.cpu == Arch::Aarch64 { "sbsa" } else { machine.cpu.name() };
        directories.push(format!("/usr/local/{toolkit}/targets/{target}-linux/lib"));
    }
    directories.retain(|directory| files.is_dir(directory));
    directories
}

fn version_of(toolkit: &str) -> Vec<u32> {
    toolkit.trim_start_matches("cuda-").split('.').map_while(|part| part.parse().ok()).collect()
}

/// The default search of the loader.
struct LoaderSearch {
    directories: Vec<String>,
    cached: Vec<String>,
}

impl LoaderSearch {
    fn new(machine: &SearchContext, files: &dyn Files) -> Self {
        let directories = loader::directories(files, &machine.variables(), machine.cpu).into_iter();
        let searched =
            directories.filter(|directory| directory.found_by != cudock_host::host::FoundBy::NotSearched);
        let cached = Cache::read(&machine.root.base().join("etc/ld.so.cache")).unwrap_or_default();
        Self {
            directories: searched.map(|directory| directory.path).collect(),
            cached: cached.entries.into_iter().map(|entry| entry.name).collect(),
        }
    }

    fn has(&self, files: &dyn Files, soname: &str) -> bool {
        self.cached.iter().any(|name| name == soname)
            || self.directories.iter().any(|directory| files.exists(&format!("{directory}/{soname}")))
    }
}

#[cfg(test)]
mod tests;
