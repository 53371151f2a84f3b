//! What the user mounts: made outside, attached nowhere, and put in its place by handle once the container's root is
//! whole. Links of the image are followed as a process inside would follow them; nothing can come to lie outside.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{CWD, FileType, Stat, fstat};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags, fsconfig_create,
    fsconfig_set_string, fsmount, fsopen, move_mount, open_tree,
};

use crate::error::{OnFile, RuntimeError};
use crate::in_root::InRoot;
use crate::plan::MountPlan;
use crate::sys;

/// A mount that is attached nowhere yet.
#[derive(Debug)]
struct Detached<'a> {
    mount: OwnedFd,
    target: &'a Path,
    is_folder: bool,
}

/// Makes the places where something will be mounted, before the root may become one that can only be read. Those below
/// other volumes are made when they are mounted.
pub(crate) fn make_places(root: &InRoot, mounts: &[MountPlan]) {
    for mount in mounts {
        let is_folder = !matches!(mount, MountPlan::Bind { source, .. } if !source.is_dir());
        // Where it cannot be made, mounting says why.
        let _ = root.make_place(mount.target(), is_folder);
    }
}

/// Puts everything in its place in a container that was created and has not begun.
pub(crate) fn put(pid: i32, mounts: &[MountPlan]) -> Result<(), RuntimeError> {
    if mounts.is_empty() {
        return Ok(());
    }
    let detached: Vec<Detached<'_>> = mounts.iter().map(detach).collect::<Result<_, _>>()?;
    crate::visit::in_mounts_of(pid, || {
        let root = InRoot::open(Path::new("/")).on("cannot open the container's root", Path::new("/"))?;
        detached.iter().try_for_each(|mount| attach(&root, mount))
    })
}

fn detach(mount: &MountPlan) -> Result<Detached<'_>, RuntimeError> {
    match mount {
        MountPlan::Bind { source, target, read_only } => {
            let flags = OpenTreeFlags::OPEN_TREE_CLONE
                | OpenTreeFlags::OPEN_TREE_CLOEXEC
                | OpenTreeFlags::AT_RECURSIVE;
            let tree = open_tree(CWD, source, flags).on("cannot mount", source)?;
            sys::set_mount_attributes(tree.as_fd(), *read_only).on("cannot mount", source)?;
            let is_folder = is_folder(&fstat(&tree).on("cannot read", source)?);
            Ok(Detached { mount: tree, target, is_folder })
        }
        MountPlan::Tmpfs { target, size, mode } => {
            let made = memory(*size, mode.unwrap_or(0o1777)).on("cannot make memory for", target)?;
            Ok(Detached { mount: made, target, is_folder: true })
        }
    }
}

fn memory(size: Option<u64>, mode: u32) -> rustix::io::Result<OwnedFd> {
    let context = fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_set_string(context.as_fd(), "mode", format!("{mode:o}"))?;
    if let Some(size) = size {
        fsconfig_set_string(context.as_fd(), "size", size.to_string())?;
    }
    fsconfig_create(context.as_fd())?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attributes)
}

fn attach(root: &InRoot, mount: &Detached<'_>) -> Result<(), RuntimeError> {
    let target = mount.target;
    root.make_place(target, mount.is_folder).on("cannot make the place to mount at", target)?;
    let place = root.open_place(target).on("cannot open the place to mount at", target)?;
    let about = fstat(&place).on("cannot read", target)?;
    let same = |other: &str| {
        let other = root.open_place(Path::new(other)).ok().and_then(|other| fstat(other).ok());
        other.is_some_and(|other| (other.st_dev, other.st_ino) == (about.st_dev, about.st_ino))
    };
    if let Some(taken) = ["/", "/dev", "/proc", "/sys"].into_iter().find(|taken| same(taken)) {
        let text = if target == Path::new(taken) {
            format!("nothing can be mounted at {taken} in a container")
        } else {
            format!("nothing can be mounted at {}, which leads to {taken} in the container", target.display())
        };
        return Err(RuntimeError::Request(text));
    }
    if is_folder(&about) != mount.is_folder {
        let (what, where_to) = if mount.is_folder { ("folder", "file") } else { ("file", "folder") };
        let text =
            format!("a {what} cannot be mounted at {}, which is a {where_to} in the image", target.display());
        return Err(RuntimeError::Request(text));
    }
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    move_mount(mount.mount.as_fd(), "", place.as_fd(), "", flags).on("cannot mount at", target)
}

fn is_folder(about: &Stat) -> bool {
    FileType::from_raw_mode(about.st_mode) == FileType::Directory
}
