//! The executable through a read-only overlay that is attached nowhere.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{AtFlags, CWD};
use rustix::fs::{
    Mode, OFlags, Stat, StatVfsMountFlags, fstat, fstatfs, fstatvfs, open, openat, stat, statat,
};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsconfig_set_string, fsmount, fsopen,
};

use super::OWN;

const HANDLE: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);

/// An overlay that nothing is written to wants two layers that do not contain one another. Any folder will do as the
/// second: only our own file is ever looked up, and the first layer has it.
const SECOND_LAYERS: [&str; 4] = ["/etc", "/dev", "/usr", "/var"];

/// A handle to this process's executable through an overlay mount of its folder. Fails where the process may not mount,
/// where the kernel is older than 5.2 and where the executable was removed or replaced since it was started.
pub fn by_overlay() -> io::Result<OwnedFd> {
    let path = std::fs::read_link(OWN)?;
    let own = stat(OWN)?;
    let (Some(folder_path), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::NotFound.into());
    };
    let folder = open(folder_path, HANDLE | OFlags::DIRECTORY, Mode::empty())?;
    if !same_file(&own, &statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW)?, true) {
        let what = format!("{} is not the file this process was started from", path.display());
        return Err(io::Error::new(io::ErrorKind::NotFound, what));
    }
    let apart = |layer: &str| !folder_path.starts_with(layer) && !Path::new(layer).starts_with(folder_path);
    let mut last = io::Error::from(io::ErrorKind::Unsupported);
    for second in SECOND_LAYERS.into_iter().filter(|layer| apart(layer)) {
        match through_overlay(&folder, second, name) {
            // The device's number is the overlay's own; all else is the file's.
            Ok(found) if same_file(&own, &fstat(&found)?, false) => return Ok(found),
            Ok(_) => last = io::ErrorKind::NotFound.into(),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn through_overlay(folder: &OwnedFd, second: &str, name: &OsStr) -> io::Result<OwnedFd> {
    let second = open(second, HANDLE | OFlags::DIRECTORY, Mode::empty())?;
    let context = fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
    // By descriptor and not by name: a folder may have a colon in its name, or another folder in its place.
    let layers = format!("/proc/self/fd/{}:/proc/self/fd/{}", folder.as_raw_fd(), second.as_raw_fd());
    fsconfig_set_string(context.as_fd(), "lowerdir", layers.as_str())?;
    fsconfig_create(context.as_fd())?;
    let attributes = MountAttrFlags::MOUNT_ATTR_RDONLY
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOSUID;
    let mount = fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attributes)?;
    Ok(openat(&mount, name, HANDLE, Mode::empty())?)
}

fn same_file(a: &Stat, b: &Stat, with_device: bool) -> bool {
    (!with_device || a.st_dev == b.st_dev)
        && a.st_ino == b.st_ino
        && a.st_size == b.st_size
        && a.st_mtime == b.st_mtime
        && a.st_mtime_nsec == b.st_mtime_nsec
}

/// Whether this process runs from such a handle: a read-only overlay, and not one that is mounted anywhere for us to
/// see: the executable's name does not lead to it.
pub(super) fn is_own() -> io::Result<bool> {
    let own = open(OWN, HANDLE, Mode::empty())?;
    let read_only = fstatvfs(&own)?.f_flag.contains(StatVfsMountFlags::RDONLY);
    if fstatfs(&own)?.f_type != OVERLAY_MAGIC || !read_only {
        return Ok(false);
    }
    let name = std::fs::read_link(OWN)?;
    let own = fstat(&own)?;
    match statat(CWD, name.as_os_str().as_bytes(), AtFlags::empty()) {
        Ok(named) => Ok(!same_file(&own, &named, true)),
        Err(_) => Ok(true),
    }
}

/// `OVERLAYFS_SUPER_MAGIC`.
const OVERLAY_MAGIC: rustix::fs::FsWord = 0x794c_7630;
