//! Finds installed copies of ONNX Runtime.

use std::path::PathBuf;

use cudock_host::{Files, loader};

use super::context::{SearchContext, text_of};
use super::{FoundBy, Package, RuntimeLibrary};
use crate::env::{CONDA_PREFIX, CUDOCK_ONNXRUNTIME, ORT_DYLIB_PATH};
use crate::error::PypiError;

/// The library's file name, without a version.
const LIBRARY: &str = "libonnxruntime.so";
/// The first version with the API that the engine uses.
const MIN_VERSION: (u32, u32) = (1, 17);

/// The library to use for a package: from a variable, else from the cache, else from a Python environment or the system.
/// A variable that names no library is an error; one that names another build is respected: see
/// [`RuntimeLibrary::serves`].
pub fn find(package: Package, machine: &SearchContext) -> Result<Option<RuntimeLibrary>, PypiError> {
    if let Some(named) = named(machine)? {
        return Ok(Some(named));
    }
    Ok(elsewhere(machine).into_iter().find(|found| found.serves(package)))
}

/// Every library, in the order in which [`find`] considers them.
pub fn find_all(machine: &SearchContext) -> Result<Vec<RuntimeLibrary>, PypiError> {
    let mut all: Vec<RuntimeLibrary> = named(machine)?.into_iter().collect();
    for found in elsewhere(machine) {
        if !all.iter().any(|known| known.library == found.library) {
            all.push(found);
        }
    }
    Ok(all)
}

fn named(machine: &SearchContext) -> Result<Option<RuntimeLibrary>, PypiError> {
    for variable in [CUDOCK_ONNXRUNTIME, ORT_DYLIB_PATH] {
        let Some(path) = machine.environment.path(variable) else { continue };
        let invalid = |reason| Err(PypiError::Named { variable, path: path.clone(), reason });
        let absolute = std::path::absolute(&path).unwrap_or_else(|_| path.clone());
        let Some(text) = text_of(&absolute) else { return invalid("which is not an absolute UTF-8 path") };
        let files: &dyn Files = &machine.root;
        let by = FoundBy::Variable { name: variable };
        return match files.is_dir(&text) {
            true => match in_directory(files, &text, &by) {
                Some(found) => Ok(Some(found)),
                None => invalid("which contains no libonnxruntime.so"),
            },
            false if files.exists(&text) => Ok(Some(at(files, &text, &by))),
            false => invalid("which does not exist"),
        };
    }
    Ok(None)
}

fn elsewhere(machine: &SearchContext) -> Vec<RuntimeLibrary> {
    let files: &dyn Files = &machine.root;
    let mut all = Vec::new();
    if let Some(cache) = machine.cache.as_deref().and_then(text_of) {
        let mut ours: Vec<RuntimeLibrary> = files
            .names(&cache)
            .into_iter()
            // Names with a leading dot are unfinished installations.
            .filter(|name| !name.starts_with('.'))
            .filter_map(|name| in_directory(files, &format!("{cache}/{name}"), &FoundBy::Cache))
            .collect();
        ours.sort_by_key(|found| std::cmp::Reverse((found.version.as_deref().map(numbers), found.package)));
        all.extend(ours);
    }
    for python in machine.python_environments() {
        let by = FoundBy::Environment { prefix: python.prefix.clone(), by: python.by };
        let directories =
            python.site_packages.iter().map(|directory| format!("{directory}/onnxruntime/capi"));
        // conda installs the library outside of the Python package.
        let of_conda = (python.by == CONDA_PREFIX).then(|| format!("{}/lib", python.prefix));
        all.extend(directories.chain(of_conda).filter_map(|directory| in_directory(files, &directory, &by)));
    }
    for directory in loader::directories(files, &machine.variables(), machine.cpu) {
        all.extend(in_directory(files, &directory.path, &FoundBy::System));
    }
    let mut seen: Vec<Option<String>> = Vec::new();
    all.retain(|found| {
        let real = found.library.to_str().and_then(|path| files.real(path));
        let new = !seen.contains(&real);
        seen.push(real);
        new
    });
    all
}

/// The library in a directory; the one with the longest version, since the others are links to it.
fn in_directory(files: &dyn Files, directory: &str, by: &FoundBy) -> Option<RuntimeLibrary> {
    let is_library = |name: &String| {
        name.strip_prefix(LIBRARY).is_some_and(|rest| {
            rest.is_empty()
                || rest.starts_with('.') && rest.split('.').skip(1).all(|part| part.parse::<u32>().is_ok())
        })
    };
    let name = files
        .names(directory)
        .into_iter()
        .filter(is_library)
        .max_by_key(|name| (name.len(), name.clone()))?;
    let path = format!("{directory}/{name}");
    files.exists(&path).then(|| at(files, &path, by))
}

/// The library at a path, with the providers in its directory.
pub(super) fn at(files: &dyn Files, path: &str, by: &FoundBy) -> RuntimeLibrary {
    // Providers are in the directory of the file itself, not of links to it.
    let real = files.real(path).unwrap_or_else(|| path.to_owned());
    let (directory, name) = real.rsplit_once('/').unwrap_or(("", &real));
    let providers: Vec<String> = files
        .names(directory)
        .iter()
        .filter_map(|name| name.strip_prefix("libonnxruntime_providers_")?.strip_suffix(".so"))
        .filter(|provider| *provider != "shared")
        .map(str::to_owned)
        .collect();
    let version = name
        .strip_prefix("libonnxruntime.so.")
        .filter(|version| version.contains('.'))
        .map(str::to_owned)
        .or_else(|| of_metadata(files, directory));
    let package = if providers.iter().any(|provider| provider == "cuda") {
        Package::OnnxruntimeGpu
    } else {
        Package::Onnxruntime
    };
    let usable = version.as_deref().is_none_or(|version| {
        let numbers = numbers(version);
        let (major, minor) = (numbers.first().copied(), numbers.get(1).copied());
        (major.unwrap_or(0), minor.unwrap_or(0)) >= MIN_VERSION
    });
    RuntimeLibrary { package, version, library: PathBuf::from(path), providers, found_by: by.clone(), usable }
}

/// The version of the Python package that a directory `onnxruntime/capi` belongs to.
fn of_metadata(files: &dyn Files, directory: &str) -> Option<String> {
    let site_packages = directory.strip_suffix("/onnxruntime/capi")?;
    files.names(site_packages).iter().find_map(|name| {
        let stem = name.strip_suffix(".dist-info")?;
        let (package, version) = stem.split_once('-')?;
        matches!(package, "onnxruntime" | "onnxruntime_gpu").then(|| version.to_owned())
    })
}

fn numbers(version: &str) -> Vec<u32> {
    version.split('.').map_while(|part| part.parse().ok()).collect()
}

#[cfg(test)]
mod tests;
