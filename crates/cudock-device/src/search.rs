//! Where the loader looks for `libcuda.so.1`.
//!
//! The process that asks was started outside the container, and its loader has read `LD_LIBRARY_PATH` there and then.
//! What the container's own programs would find through that variable has to be looked for here.

use std::collections::BTreeMap;

use cudock_host::Files;
use cudock_host::host::FoundBy;
use cudock_host::loader::{Directory, directories};

use crate::error::DeviceError;

/// What every CUDA program loads.
pub(crate) const LIBRARY: &str = "libcuda.so.1";

/// The driver's compiler, which libcuda loads by this name when it is given PTX.
pub(crate) const COMPILER: &str = "libnvidia-ptxjitcompiler.so.1";

/// What libcuda needs of the C library beside `libc.so.6`. Copies of another release than the one a process runs with
/// do not fit each other, and images are of all releases.
pub(crate) const COMPANIONS: [&str; 4] = ["libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1"];

/// The folders of a container, and what they are asked for.
pub(crate) struct Search<'a> {
    files: &'a dyn Files,
    folders: Vec<Directory>,
}

impl<'a> Search<'a> {
    pub(crate) fn new(files: &'a dyn Files, environment: &BTreeMap<String, String>) -> Self {
        Self { files, folders: directories(files, environment, std::env::consts::ARCH) }
    }

    /// The first folder of `LD_LIBRARY_PATH` with a libcuda that the loader would not pass over. `header` reads the
    /// beginning of a file.
    pub(crate) fn library_path(&self, header: impl Fn(&str) -> Option<Vec<u8>>) -> Option<&str> {
        self.holding(|found_by| found_by == FoundBy::LibraryPath)
            .find(|folder| header(&format!("{folder}/{LIBRARY}")).is_some_and(|bytes| !is_foreign(&bytes)))
    }

    /// Why the loader did not load the library that it was asked for by name.
    pub(crate) fn why_not(&self, reason: String) -> DeviceError {
        let searched = |found_by| found_by != FoundBy::NotSearched;
        if let Some(folder) = self.holding(searched).next() {
            return DeviceError::CannotLoad { library: format!("{folder}/{LIBRARY}"), reason };
        }
        let folders = self.folders.iter().filter(|folder| searched(folder.found_by));
        DeviceError::NotFound {
            searched: folders.map(|folder| folder.path.clone()).collect(),
            elsewhere: self.holding(|found_by| found_by == FoundBy::NotSearched).map(str::to_owned).collect(),
        }
    }

    fn holding(&self, wanted: impl Fn(FoundBy) -> bool) -> impl Iterator<Item = &str> {
        self.folders
            .iter()
            .filter(move |folder| wanted(folder.found_by))
            .map(|folder| folder.path.as_str())
            .filter(|folder| self.files.exists(&format!("{folder}/{LIBRARY}")))
    }
}

/// Whether the loader passes a library over because it is for another processor or of another width. What is no
/// library at all it takes, and fails.
fn is_foreign(header: &[u8]) -> bool {
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

/// The file that a process has loaded as libcuda, by its `/proc/self/maps`.
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

    /// A tree with these files, which hold an ELF header of the class, for this machine.
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
        Search::new(&root, &library_path(value)).library_path(read).map(str::to_owned)
    }

    #[test]
    fn a_library_of_another_width_is_passed_over_as_the_loader_does() {
        let tree = tree(&[("/n/lib/libcuda.so.1", 1), ("/n/lib64/libcuda.so.1", 2)]);
        assert_eq!(first_in_library_path(&tree, "/n/lib:/n/lib64").as_deref(), Some("/n/lib64"));
    }

    #[test]
    fn an_empty_library_is_not_passed_over() {
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
    fn a_missing_library_is_told_with_the_folders_searched() {
        let tree =
            tree(&[("/usr/lib/libc.so.6", 2), ("/usr/local/nvidia/lib64/libcuda.so.1", 2), ("/n/x", 2)]);
        let root = Root::tree(tree.path()).unwrap();
        assert_eq!(
            Search::new(&root, &library_path("/n:/nowhere")).why_not("no".to_owned()),
            DeviceError::NotFound {
                searched: vec!["/n".to_owned(), "/usr/lib".to_owned()],
                elsewhere: vec!["/usr/local/nvidia/lib64".to_owned()],
            }
        );
    }

    #[test]
    fn a_library_that_is_there_and_refused_is_told_with_the_reason() {
        let tree = tree(&[("/usr/lib/libcuda.so.1", 2)]);
        let root = Root::tree(tree.path()).unwrap();
        assert_eq!(
            Search::new(&root, &BTreeMap::new()).why_not("file too short".to_owned()),
            DeviceError::CannotLoad {
                library: "/usr/lib/libcuda.so.1".to_owned(),
                reason: "file too short".to_owned(),
            }
        );
    }

    #[test]
    fn the_library_loaded_is_read_from_the_maps() {
        let maps = "7f0000000000-7f0000001000 r--p 00000000 00:2f 12  /usr/lib/libcudart.so.13\n\
                    7f0000002000-7f0000003000 r-xp 00000000 00:2f 13  /opt/my libs/libcuda.so.580.65.06\n\
                    7f0000004000-7f0000005000 rw-p 00000000 00:00 0 \n";
        assert_eq!(loaded_from(maps), Some("/opt/my libs/libcuda.so.580.65.06"));
        assert_eq!(loaded_from("7f00-7f01 rw-p 0 00:00 0 [heap]\n"), None);
    }
}
