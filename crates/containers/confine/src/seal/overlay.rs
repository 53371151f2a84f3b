//! The executable through a detached read-only overlay mount.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{
    AtFlags, CWD, Mode, OFlags, Stat, StatVfsMountFlags, fstat, fstatfs, fstatvfs, open, openat, stat, statat,
};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsconfig_set_string, fsmount, fsopen,
};

use super::OWN;

const HANDLE: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);

/// A read-only overlay needs two layers, neither of which contains the other. Any directory will do as the second: only our
/// own file is looked up, and the first layer has it.
const SECOND_LAYERS: [&str; 4] = ["/etc", "/dev", "/usr", "/var"];

/// A handle to this process's executable through an overlay mount of its directory. Fails if the process may not mount, if
/// the kernel is older than 5.2, and if the executable was removed or replaced since the start.
pub fn by_overlay() -> io::Result<OwnedFd> {
    let path = std::fs::read_link(OWN)?;
    let own = stat(OWN)?;
    let (Some(directory_path), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::NotFound.into());
    };
    let directory = open(directory_path, HANDLE | OFlags::DIRECTORY, Mode::empty())?;
    if !same_file(&own, &statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW)?, true) {
        let message = format!("{} is not the file this process was started from", path.display());
        return Err(io::Error::new(io::ErrorKind::NotFound, message));
    }
    let apart =
        |layer: &str| !directory_path.starts_with(layer) && !Path::new(layer).starts_with(directory_path);
    let mut last = io::Error::from(io::ErrorKind::Unsupported);
    for second in SECOND_LAYERS.into_iter().filter(|layer| apart(layer)) {
        match through_overlay(&directory, second, name) {
            // The overlay has its own device number; everything else is the file's.
            Ok(found) if same_file(&own, &fstat(&found)?, false) => return Ok(found),
            Ok(_) => last = io::ErrorKind::NotFound.into(),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn through_overlay(directory: &OwnedFd, second: &str, name: &OsStr) -> io::Result<OwnedFd> {
    let second = open(second, HANDLE | OFlags::DIRECTORY, Mode::empty())?;
    let context = fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
    // By descriptor, not by name: a name may contain a colon, and the directory may be replaced.
    let layers = format!("/proc/self/fd/{}:/proc/self/fd/{}", directory.as_raw_fd(), second.as_raw_fd());
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

/// Whether this process runs from such a handle: a read-only overlay that is not mounted anywhere, so that the executable's
/// name does not lead to it.
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
