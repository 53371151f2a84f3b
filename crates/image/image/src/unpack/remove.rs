//! Removes directory trees without recursion and with few open handles, because trees can be very deep.

use std::io;
use std::path::Path;

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, chmodat, openat, unlinkat};
use rustix::io::Errno;

use super::confined_path::join_path;

const OPEN_DIR: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Removes the contents of a directory. Symlinks are not followed.
pub(super) fn remove_contents(directory: impl AsFd) -> io::Result<()> {
    let root = openat(directory, ".", OPEN_DIR, Mode::empty())?;
    // Directories to empty, the next one last; each is removed when it comes up a second time.
    let mut waiting: Vec<(Vec<u8>, bool)> = vec![(Vec::new(), false)];
    while let Some((path, emptied)) = waiting.pop() {
        if emptied {
            gone(unlinkat(&root, path.as_slice(), AtFlags::REMOVEDIR))?;
            continue;
        }
        let Some(opened) = open(&root, &path)? else { continue };
        if !path.is_empty() {
            waiting.push((path.clone(), true));
        }
        for entry in Dir::read_from(&opened)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if matches!(name, b"." | b"..") {
                continue;
            }
            if entry.file_type() == FileType::Directory {
                waiting.push((join_path(&path, name), false));
                continue;
            }
            match unlinkat(&opened, name, AtFlags::empty()) {
                // Not every file system reports the type of an entry.
                Err(Errno::ISDIR) => waiting.push((join_path(&path, name), false)),
                removed => gone(removed)?,
            }
        }
    }
    Ok(())
}

/// Removes a directory and its contents; succeeds if it does not exist.
pub(super) fn remove_tree(path: &Path) -> io::Result<()> {
    let directory = match openat(CWD, path, OPEN_DIR, Mode::empty()) {
        Ok(directory) => directory,
        Err(Errno::NOENT) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    remove_contents(&directory)?;
    gone(unlinkat(CWD, path, AtFlags::REMOVEDIR))
}

fn gone(result: Result<(), Errno>) -> io::Result<()> {
    match result {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Opens a directory below `root`, and makes it readable if necessary.
fn open(root: &OwnedFd, path: &[u8]) -> io::Result<Option<OwnedFd>> {
    let path = if path.is_empty() { b"." } else { path };
    match openat(root, path, OPEN_DIR, Mode::empty()) {
        Ok(directory) => Ok(Some(directory)),
        Err(Errno::NOENT) => Ok(None),
        Err(Errno::ACCESS) => {
            chmodat(root, path, Mode::RWXU, AtFlags::empty())?;
            Ok(Some(openat(root, path, OPEN_DIR, Mode::empty())?))
        }
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn very_deep_trees_are_removed_and_symlinks_are_not_followed() {
        let scratch = tempfile::tempdir().unwrap();
        let (tree, outside) = (scratch.path().join("tree"), scratch.path().join("outside"));
        std::fs::create_dir(&tree).unwrap();
        std::fs::create_dir(&outside).unwrap();
        std::fs::write(outside.join("kept"), "").unwrap();
        let root = openat(CWD, &tree, OPEN_DIR, Mode::empty()).unwrap();
        let mut path = Vec::new();
        for _ in 0..1900 {
            path = join_path(&path, b"d");
            rustix::fs::mkdirat(&root, path.as_slice(), Mode::RWXU).unwrap();
        }
        symlink(&outside, tree.join("link")).unwrap();
        symlink(&outside, tree.join("d/d/link")).unwrap();
        std::fs::write(tree.join("d/file"), "x").unwrap();
        remove_tree(&tree).unwrap();
        assert!(!tree.exists() && outside.join("kept").exists());
        remove_tree(&tree).unwrap();
    }
}
