//! Finds copies of libcuda in a subject.

use cudock_base::text::path::file_name;
use cudock_facts::version::DriverVersion;
use cudock_host::host::{FoundBy, LibraryKind};
use cudock_host::loader::Directory;

use crate::evidence::{DriverCopy, Reach};
use crate::gather::contents::Contents;

/// Where the container toolkit looks for cuda-compat.
const COMPAT_DIRECTORY: &str = "/usr/local/cuda/compat";
/// A stub does nothing; a real libcuda has dozens of megabytes.
const LARGEST_STUB: u64 = 1 << 20;

pub(crate) fn find(files: &dyn Contents, directories: &[Directory]) -> Vec<DriverCopy> {
    let mut copies = Vec::new();
    for directory in directories {
        let reach = Reach::Loader(directory.found_by);
        let path = format!("{}/libcuda.so.1", directory.path);
        copies.extend(copy(files, path, reach));
        if directory.found_by == FoundBy::Default {
            // What a committed container leaves: files of a driver without the link to them.
            for name in files.names(&directory.path).into_iter().filter(|name| is_versioned(name)) {
                let found = copy(files, format!("{}/{name}", directory.path), reach);
                let is_new = |found: &DriverCopy| !copies.iter().any(|known| same(files, known, found));
                let found = found.filter(is_new);
                copies.extend(found);
            }
        }
    }
    // If there are two, the toolkit uses neither.
    let in_directory: Vec<String> =
        files.names(COMPAT_DIRECTORY).into_iter().filter(|name| is_versioned(name)).collect();
    if let [only] = in_directory.as_slice() {
        copies.extend(copy(files, format!("{COMPAT_DIRECTORY}/{only}"), Reach::CompatDirectory));
    }
    copies.sort_by_key(|copy| copy.reach);
    copies
}

fn is_versioned(name: &str) -> bool {
    name.strip_prefix("libcuda.so.").is_some_and(|version| version.contains('.'))
}

fn same(files: &dyn Contents, one: &DriverCopy, other: &DriverCopy) -> bool {
    files.real(&one.path) == files.real(&other.path)
}

fn copy(files: &dyn Contents, path: String, reach: Reach) -> Option<DriverCopy> {
    let real = files.real(&path)?;
    let size = files.size(&real)?;
    let version = file_name(&real).split_once(".so.");
    let version = version.and_then(|(_, version)| version.parse::<DriverVersion>().ok());
    let in_compat = real.contains("/compat/") || real.contains("/cuda-compat");
    let kind = if size == 0 {
        LibraryKind::Empty
    } else if real.contains("/stubs/") || (size < LARGEST_STUB && version.is_none()) {
        LibraryKind::Stub
    } else if in_compat || reach == Reach::CompatDirectory {
        LibraryKind::Compat
    } else {
        LibraryKind::Driver
    };
    let facts = (kind == LibraryKind::Compat).then(|| files.elf(&real)).flatten();
    let note = facts.and_then(|facts| facts.note.clone());
    Some(DriverCopy { path, kind, version, note, reach })
}
