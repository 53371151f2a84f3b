//! Trees removed without recursion and without a handle for each level: they may be as deep as paths are long.

use std::io;
use std::path::Path;

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, chmodat, openat, unlinkat};
use rustix::io::Errno;

use super::beneath::join;

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Removes all that is in a folder, and not the folder. No link is followed.
pub(super) fn remove_below(folder: impl AsFd) -> io::Result<()> {
    let root = openat(folder, ".", FOLDER, Mode::empty())?;
    // Folders to empty, the next last; each is removed when it comes up a second time.
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
                waiting.push((join(&path, name), false));
                continue;
            }
            match unlinkat(&opened, name, AtFlags::empty()) {
                // Not every file system says what kind an entry is.
                Err(Errno::ISDIR) => waiting.push((join(&path, name), false)),
                removed => gone(removed)?,
            }
        }
    }
    Ok(())
}

/// Removes a folder and all that is in it; it need not be there.
pub(super) fn remove_folder(path: &Path) -> io::Result<()> {
    let folder = match openat(CWD, path, FOLDER, Mode::empty()) {
        Ok(folder) => folder,
        Err(Errno::NOENT) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    remove_below(&folder)?;
    gone(unlinkat(CWD, path, AtFlags::REMOVEDIR))
}

fn gone(result: Result<(), Errno>) -> io::Result<()> {
    match result {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// A folder below, made readable where it is ours and not.
fn open(root: &OwnedFd, path: &[u8]) -> io::Result<Option<OwnedFd>> {
    let path = if path.is_empty() { b"." } else { path };
    match openat(root, path, FOLDER, Mode::empty()) {
        Ok(folder) => Ok(Some(folder)),
        Err(Errno::NOENT) => Ok(None),
        Err(Errno::ACCESS) => {
            chmodat(root, path, Mode::RWXU, AtFlags::empty())?;
            Ok(Some(openat(root, path, FOLDER, Mode::empty())?))
        }
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_tree_as_deep_as_a_path_is_long_is_removed_and_what_links_lead_to_stays() {
        let scratch = tempfile::tempdir().unwrap();
        let (tree, outside) = (scratch.path().join("tree"), scratch.path().join("outside"));
        std::fs::create_dir(&tree).unwrap();
        std::fs::create_dir(&outside).unwrap();
        std::fs::write(outside.join("kept"), "").unwrap();
        let root = openat(CWD, &tree, FOLDER, Mode::empty()).unwrap();
        let mut path = Vec::new();
        for _ in 0..1900 {
            path = join(&path, b"d");
            rustix::fs::mkdirat(&root, path.as_slice(), Mode::RWXU).unwrap();
        }
        symlink(&outside, tree.join("link")).unwrap();
        symlink(&outside, tree.join("d/d/link")).unwrap();
        std::fs::write(tree.join("d/file"), "x").unwrap();
        remove_folder(&tree).unwrap();
        assert!(!tree.exists() && outside.join("kept").exists());
        remove_folder(&tree).unwrap();
    }
}
