//! Removes directory trees, however deep they are.
//!
//! One directory is open at a time: see [`crate::files::directory`].

use std::ffi::CString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, unlinkat};
use rustix::io::Errno;

use crate::files::directory::{DirectoryId, directory_id, open_directory, parent_directory};

struct Parent {
    /// The name of the subdirectory that was entered.
    name: CString,
    id: DirectoryId,
}

/// Removes a file or a directory recursively. Succeeds if it does not exist.
pub(crate) fn remove_tree(path: &Path) -> io::Result<()> {
    match unlinkat(CWD, path, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => return Ok(()),
        Err(Errno::ISDIR | Errno::PERM) => {}
        Err(error) => return Err(error.into()),
    }
    match open_directory(CWD, path) {
        Ok(top) => empty(top)?,
        Err(Errno::NOENT) => return Ok(()),
        Err(error) => return Err(error.into()),
    }
    match unlinkat(CWD, path, AtFlags::REMOVEDIR) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn empty(top: OwnedFd) -> io::Result<()> {
    let mut here = top;
    let mut parents: Vec<Parent> = Vec::new();
    loop {
        if let Some(name) = remove_files(&here)? {
            let below = open_directory(&here, name.as_c_str())?;
            parents.push(Parent { id: directory_id(&here)?, name });
            here = below;
            continue;
        }
        let Some(parent) = parents.pop() else { return Ok(()) };
        let up = parent_directory(&here, parent.id)?;
        match unlinkat(&up, parent.name.as_c_str(), AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
        here = up;
    }
}

/// Removes entries of a directory until it finds a directory that is not empty, and returns its name.
fn remove_files(here: &OwnedFd) -> io::Result<Option<CString>> {
    let mut entries = Dir::read_from(here)?;
    while let Some(entry) = entries.read() {
        let entry = entry?;
        let name = entry.file_name();
        if name == c"." || name == c".." {
            continue;
        }
        let removed = match unlinkat(here, name, AtFlags::empty()) {
            Err(Errno::ISDIR | Errno::PERM) => unlinkat(here, name, AtFlags::REMOVEDIR),
            other => other,
        };
        match removed {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(Errno::NOTEMPTY | Errno::EXIST) => return Ok(Some(name.to_owned())),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;

    use cudock_testkit::process::{is_reentered, reenter_as};
    use cudock_testkit::test_name;
    use rustix::fs::{Mode, mkdirat};

    use super::*;

    /// Runs itself again in a process that may open few files: in this one, other tests open some as well.
    #[test]
    fn a_tree_deeper_than_descriptors_and_paths_go_is_removed() {
        let test = test_name!();
        if is_reentered(test) {
            return removes_a_deep_tree();
        }
        let mut limited = Command::new("sh");
        limited.args(["-c", "ulimit -n 20 && exec \"$@\"", "sh"]).arg(std::env::current_exe().unwrap());
        let inner = reenter_as(limited, test).output().unwrap();
        let (out, err) = (String::from_utf8_lossy(&inner.stdout), String::from_utf8_lossy(&inner.stderr));
        assert!(inner.status.success() && out.contains("1 passed"), "{out}{err}");
    }

    fn removes_a_deep_tree() {
        let directory = tempfile::tempdir().unwrap();
        let top = directory.path().join("top");
        fs::create_dir(&top).unwrap();
        let mut here = open_directory(CWD, &top).unwrap();
        for level in 0..3000 {
            mkdirat(&here, "a-name-of-some-length", Mode::RWXU).unwrap();
            if level % 7 == 0 {
                mkdirat(&here, "beside", Mode::RWXU).unwrap();
            }
            here = open_directory(&here, "a-name-of-some-length").unwrap();
        }
        drop(here);
        assert_eq!(rustix::process::getrlimit(rustix::process::Resource::Nofile).current, Some(20));
        remove_tree(&top).unwrap();
        assert!(!top.exists());
    }

    #[test]
    fn links_are_removed_and_not_followed() {
        let directory = tempfile::tempdir().unwrap();
        let (top, kept) = (directory.path().join("top"), directory.path().join("kept"));
        fs::create_dir_all(top.join("inner")).unwrap();
        fs::create_dir(&kept).unwrap();
        fs::write(kept.join("file"), "kept").unwrap();
        std::os::unix::fs::symlink(&kept, top.join("inner/link")).unwrap();
        fs::write(top.join("inner/file"), "x").unwrap();
        remove_tree(&top).unwrap();
        assert!(!top.exists());
        assert_eq!(fs::read(kept.join("file")).unwrap(), b"kept");
        remove_tree(&top).unwrap();
        std::os::unix::fs::symlink(&kept, &top).unwrap();
        remove_tree(&top).unwrap();
        assert!(kept.join("file").exists());
    }
}
