//! Protects the shared libraries of this program from containers.
//!
//! A process that enters a container has libraries of the host mapped until it executes the container's program. With
//! `CAP_SYS_PTRACE` and `CAP_SYS_ADMIN` a container can open those files through `/proc/PID/map_files`, past all mounts, and
//! write to the host's C library or open any file of the same file system by handle. So the process is started in a
//! read-only mount namespace in which the libraries are on read-only overlays, which have no file handles.

use std::collections::BTreeSet;
use std::fs;
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};

use nix::sched::{CloneFlags, unshare};
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, fsconfig_create, fsconfig_set_string, fsmount,
    fsopen, move_mount,
};

use crate::container::config::Propagation;
use crate::error::{OnError, RuntimeError};
use crate::namespace::sys;

/// A read-only overlay needs two layers, neither of which contains the other. Only the first is used.
const SECOND_LAYERS: [&str; 4] = ["/etc", "/dev", "/usr", "/var"];

/// Moves this process into a read-only mount namespace. Open files are not affected.
pub(crate) fn enter() -> Result<(), RuntimeError> {
    unshare(CloneFlags::CLONE_NEWNS).when("cannot create a mount namespace")?;
    let root = open(Path::new("/")).when("cannot open the root")?;
    sys::set_mount_attributes(
        root.as_fd(),
        u64::from(MountAttrFlags::MOUNT_ATTR_RDONLY.bits()),
        Propagation::Private,
    )
    .when("cannot make mounts read-only")?;
    for dir in library_dirs(&fs::read_to_string("/proc/self/maps").unwrap_or_default()) {
        // Some file systems cannot be a layer; they are still read-only.
        let _ = cover(&dir);
    }
    Ok(())
}

fn library_dirs(maps: &str) -> BTreeSet<PathBuf> {
    let paths = maps.lines().filter_map(|line| line.find('/').and_then(|start| line.get(start..)));
    let libraries = paths.map(Path::new).filter(|path| {
        path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.contains(".so"))
    });
    libraries.filter_map(Path::parent).map(Path::to_owned).collect()
}

/// Mounts a directory over itself as a read-only overlay.
fn cover(dir: &Path) -> rustix::io::Result<()> {
    let apart = |layer: &&str| !dir.starts_with(layer) && !Path::new(layer).starts_with(dir);
    let second = SECOND_LAYERS.iter().find(|layer| apart(layer)).ok_or(rustix::io::Errno::NOENT)?;
    let (first, second) = (open(dir)?, open(Path::new(second))?);
    let context = fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
    let layers = format!("/proc/self/fd/{}:/proc/self/fd/{}", first.as_raw_fd(), second.as_raw_fd());
    fsconfig_set_string(context.as_fd(), "lowerdir", layers.as_str())?;
    fsconfig_create(context.as_fd())?;
    let attributes = MountAttrFlags::MOUNT_ATTR_RDONLY
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOSUID;
    let mount = fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attributes)?;
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    move_mount(mount.as_fd(), "", first.as_fd(), "", flags)
}

fn open(dir: &Path) -> rustix::io::Result<std::os::fd::OwnedFd> {
    openat(CWD, dir, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_of_libraries_are_found_once() {
        let maps = "\
55d0c0000000-55d0c0001000 r--p 00000000 00:2a 11 /usr/bin/cudock
7f0000000000-7f0000001000 r--p 00000000 08:01 12 /usr/lib/x86_64-linux-gnu/libc.so.6
7f0000001000-7f0000002000 rw-p 00000000 00:00 0
7f0000002000-7f0000003000 r-xp 00000000 08:01 13 /usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2
7f0000003000-7f0000004000 r-xp 00000000 08:01 14 /opt/my libs/libm.so
7ffe00000000-7ffe00001000 rw-p 00000000 00:00 0 [stack]
";
        let expected = ["/opt/my libs", "/usr/lib/x86_64-linux-gnu"].map(PathBuf::from);
        assert_eq!(library_dirs(maps), BTreeSet::from(expected));
    }
}
