use cudock_facts::version::DriverVersion;

use crate::host::{DriverLibrary, FoundBy, LibraryKind, LoaderCache};
use crate::ld_cache::Cache;
use crate::loader::Directory;
use crate::{Files, Root};

/// Driver libraries that CUDA programs and `nvidia-smi` need.
const NAMES: [&str; 3] = ["libcuda.so.1", "libnvidia-ml.so.1", "libnvidia-ptxjitcompiler.so.1"];

/// All copies of the driver's libraries. A copy that is reachable through several links is listed once, where the loader
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
    let real_path = root.real(&path);
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

/// The path of a library that the loader does not find.
pub(super) fn unsearched_path<'a>(libraries: &'a [DriverLibrary], name: &str) -> Option<&'a str> {
    let first = libraries.iter().find(|library| library.name == name)?;
    (first.found_by == FoundBy::NotSearched).then_some(first.path.as_str())
}

pub(super) fn cache(root: &Root) -> Option<LoaderCache> {
    let bytes = root.bytes("/etc/ld.so.cache")?;
    let entries = Cache::parse(&bytes)?.entries;
    let lists = |name: &str| entries.iter().any(|entry| entry.name == name);
    Some(LoaderCache { libcuda: lists("libcuda.so.1"), nvml: lists("libnvidia-ml.so.1") })
}
