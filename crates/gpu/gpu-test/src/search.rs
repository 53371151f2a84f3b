//! Where the loader searches for `libcuda.so.1`.
//!
//! This process was started outside of the container, when its loader read `LD_LIBRARY_PATH`. Libraries that the
//! container's programs would find through that variable have to be searched for here.

use std::collections::BTreeMap;

use cudock_host::host::FoundBy;
use cudock_host::loader::{Directory, directories};
use cudock_host::{Files, Root};

use crate::error::DeviceError;

/// The library that every CUDA program loads.
pub(crate) const LIBRARY: &str = "libcuda.so.1";

/// The driver's compiler, which libcuda loads by this name to compile PTX.
pub(crate) const COMPILER: &str = "libnvidia-ptxjitcompiler.so.1";

/// Parts of the C library that libcuda needs besides `libc.so.6`. Parts of different versions are incompatible, and images
/// may have any version.
pub(crate) const COMPANIONS: [&str; 4] = ["libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1"];

/// The library search path of a container.
pub(crate) struct LibrarySearch<'a> {
    files: &'a dyn Files,
    directories: Vec<Directory>,
}

impl<'a> LibrarySearch<'a> {
    pub(crate) fn new(files: &'a dyn Files, environment: &BTreeMap<String, String>) -> Self {
        Self { files, directories: directories(files, environment, Root::live().cpu_arch()) }
    }

    /// The first directory of `LD_LIBRARY_PATH` with a libcuda that the loader would not skip. `header` reads the start of a
    /// file.
    pub(crate) fn library_path(&self, header: impl Fn(&str) -> Option<Vec<u8>>) -> Option<&str> {
        self.with_library(|found_by| found_by == FoundBy::LibraryPath).find(|directory| {
            header(&format!("{directory}/{LIBRARY}")).is_some_and(|bytes| !is_other_architecture(&bytes))
        })
    }

    /// Explains why the loader did not load the library.
    pub(crate) fn explain_failure(&self, reason: String) -> DeviceError {
        let searched = |found_by| found_by != FoundBy::NotSearched;
        if let Some(directory) = self.with_library(searched).next() {
            return DeviceError::CannotLoad { library: format!("{directory}/{LIBRARY}"), reason };
        }
        let directories = self.directories.iter().filter(|directory| searched(directory.found_by));
        DeviceError::NotFound {
            searched: directories.map(|directory| directory.path.clone()).collect(),
            elsewhere: self
                .with_library(|found_by| found_by == FoundBy::NotSearched)
                .map(str::to_owned)
                .collect(),
        }
    }

    fn with_library(&self, is_match: impl Fn(FoundBy) -> bool) -> impl Iterator<Item = &str> {
        self.directories
            .iter()
            .filter(move |directory| is_match(directory.found_by))
            .map(|directory| directory.path.as_str())
            .filter(|directory| self.files.exists(&format!("{directory}/{LIBRARY}")))
    }
}

/// Whether the loader skips a library because it is for another architecture. A file that is not a library is not skipped,
/// and fails.
fn is_other_architecture(header: &[u8]) -> bool {
    let (Some(b"\x7fELF"), Some(class), Some([low, high])) =
        (header.get(..4), header.get(4), header.get(18..20))
    else {
        return false;
    };
    let machine = match std::env::consts::ARCH {
        "x86_64" => 62,
        "aarch64" => 183,
        _ => return false,
    };
    *class != 2 || u16::from_le_bytes([*low, *high]) != machine
}

/// The file that the process has loaded as libcuda, from `/proc/self/maps`.
pub(crate) fn loaded_from(maps: &str) -> Option<&str> {
    let paths = maps.lines().filter_map(|line| line.find('/').and_then(|at| line.get(at..)));
    paths
        .filter(|path| path.rsplit('/').next().is_some_and(|name| name.starts_with("libcuda.so")))
        .find(|path| !path.ends_with(" (deleted)"))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use cudock_host::Root;
    use tempfile::TempDir;

    use super::*;

    /// A tree with these files, which contain an ELF header of the given class for this architecture.
    fn tree(files: &[(&str, u8)]) -> TempDir {
        let tree = tempfile::tempdir().unwrap();
        for (file, class) in files {
            let path = tree.path().join(file.trim_start_matches('/'));
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, header(*class)).unwrap();
        }
        tree
    }

    fn header(class: u8) -> Vec<u8> {
        let machine: u16 = if cfg!(target_arch = "aarch64") { 183 } else { 62 };
        let mut bytes = vec![0; 64];
        bytes[..4].copy_from_slice(b"\x7fELF");
        bytes[4] = class;
        bytes[18..20].copy_from_slice(&machine.to_le_bytes());
        bytes
    }

    fn library_path(value: &str) -> BTreeMap<String, String> {
        BTreeMap::from([("LD_LIBRARY_PATH".to_owned(), value.to_owned())])
    }

    fn first_in_library_path(tree: &TempDir, value: &str) -> Option<String> {
        let root = Root::tree(tree.path()).unwrap();
        let read = |path: &str| fs::read(tree.path().join(path.trim_start_matches('/'))).ok();
        LibrarySearch::new(&root, &library_path(value)).library_path(read).map(str::to_owned)
    }

    #[test]
    fn a_library_of_another_class_is_skipped_like_the_loader_does() {
        let tree = tree(&[("/n/lib/libcuda.so.1", 1), ("/n/lib64/libcuda.so.1", 2)]);
        assert_eq!(first_in_library_path(&tree, "/n/lib:/n/lib64").as_deref(), Some("/n/lib64"));
    }

    #[test]
    fn an_empty_library_is_not_skipped() {
        let tree = tree(&[("/n/lib/libcuda.so.1", 2), ("/n/lib64/libcuda.so.1", 2)]);
        fs::write(tree.path().join("n/lib/libcuda.so.1"), "").unwrap();
        assert_eq!(first_in_library_path(&tree, "/n/lib:/n/lib64").as_deref(), Some("/n/lib"));
    }

    #[test]
    fn a_library_outside_the_library_path_is_left_to_the_loader() {
        let tree = tree(&[("/usr/lib/libcuda.so.1", 2), ("/n/lib/libother.so", 2)]);
        assert_eq!(first_in_library_path(&tree, "/n/lib"), None);
        assert_eq!(first_in_library_path(&tree, ""), None);
    }

    #[test]
    fn a_missing_library_is_reported_with_the_search_path() {
        let tree =
            tree(&[("/usr/lib/libc.so.6", 2), ("/usr/local/nvidia/lib64/libcuda.so.1", 2), ("/n/x", 2)]);
        let root = Root::tree(tree.path()).unwrap();
        assert_eq!(
            LibrarySearch::new(&root, &library_path("/n:/nowhere")).explain_failure("no".to_owned()),
            DeviceError::NotFound {
                searched: vec!["/n".to_owned(), "/usr/lib".to_owned()],
                elsewhere: vec!["/usr/local/nvidia/lib64".to_owned()],
            }
        );
    }

    #[test]
    fn a_library_that_fails_to_load_is_reported_with_the_reason() {
        let tree = tree(&[("/usr/lib/libcuda.so.1", 2)]);
        let root = Root::tree(tree.path()).unwrap();
        assert_eq!(
            LibrarySearch::new(&root, &BTreeMap::new()).explain_failure("file too short".to_owned()),
            DeviceError::CannotLoad {
                library: "/usr/lib/libcuda.so.1".to_owned(),
                reason: "file too short".to_owned(),
            }
        );
    }

    #[test]
    fn the_loaded_library_is_found_in_the_maps() {
        let maps = "7f0000000000-7f0000001000 r--p 00000000 00:2f 12  /usr/lib/libcudart.so.13\n\
                    7f0000002000-7f0000003000 r-xp 00000000 00:2f 13  /opt/my libs/libcuda.so.580.65.06\n\
                    7f0000004000-7f0000005000 rw-p 00000000 00:00 0 \n";
        assert_eq!(loaded_from(maps), Some("/opt/my libs/libcuda.so.580.65.06"));
        assert_eq!(loaded_from("7f00-7f01 rw-p 0 00:00 0 [heap]\n"), None);
    }
}
