//! What is mounted beside the usual: made outside, attached nowhere, and put in its place by handle once the container's root is
//! whole. Links of the image are followed as a process inside would follow them; nothing can come to lie outside.

use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use nix::libc;
use rustix::fs::{CWD, FileType, Stat, fstat};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags, fsconfig_create,
    fsconfig_set_string, fsmount, fsopen, move_mount, open_tree,
};

use crate::error::{OnFile, RuntimeError};
use crate::in_root::InRoot;
use crate::plan::MountPlan;
use crate::sys;

/// Something to mount.
#[derive(Debug)]
pub(crate) struct Volume<'a> {
    content: Content<'a>,
    target: &'a Path,
}

#[derive(Debug)]
enum Content<'a> {
    /// A file or directory of this machine, with attributes of its mount.
    Bind(&'a Path, u64),
    Memory(Option<u64>, u32),
}

impl<'a> Volume<'a> {
    /// What the user mounts.
    pub(crate) fn asked(mount: &'a MountPlan) -> Self {
        match mount {
            MountPlan::Bind { source, target, read_only }
            | MountPlan::Volume { source, target, read_only, .. } => {
                let attributes = if *read_only { libc::MOUNT_ATTR_RDONLY } else { 0 };
                Self { content: Content::Bind(source, attributes), target }
            }
            MountPlan::Tmpfs { target, size, mode } => {
                Self { content: Content::Memory(*size, mode.unwrap_or(0o1777)), target }
            }
        }
    }

    /// A file of the driver.
    pub(crate) fn of_driver(mount: &'a cudock_inject::Mount) -> Self {
        let attribute = |option: &String| match option.as_str() {
            "ro" => libc::MOUNT_ATTR_RDONLY,
            "nosuid" => libc::MOUNT_ATTR_NOSUID,
            "nodev" => libc::MOUNT_ATTR_NODEV,
            "noexec" => libc::MOUNT_ATTR_NOEXEC,
            _ => 0,
        };
        let attributes = mount.options.iter().map(attribute).fold(0, std::ops::BitOr::bitor);
        Self { content: Content::Bind(&mount.host, attributes), target: &mount.container }
    }

    /// A text about the container's network.
    pub(crate) fn text((source, target): &'a (PathBuf, &'static str)) -> Self {
        let attributes = libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV | libc::MOUNT_ATTR_NOEXEC;
        Self { content: Content::Bind(source, attributes), target: Path::new(target) }
    }

    fn is_directory(&self) -> bool {
        !matches!(self.content, Content::Bind(source, _) if !source.is_dir())
    }
}

/// A mount that is attached nowhere yet.
#[derive(Debug)]
struct Detached<'a> {
    mount: OwnedFd,
    target: &'a Path,
    is_directory: bool,
}

/// Makes the places where something will be mounted, before the root may become one that can only be read. A link that
/// leads nowhere gives way. Places below other volumes are made when they are mounted.
pub(crate) fn make_places(root: &InRoot, volumes: &[Volume<'_>]) {
    for volume in volumes {
        root.remove_dangling(volume.target);
        // Where it cannot be made, mounting says why.
        let _ = root.make_place(volume.target, volume.is_directory());
    }
}

/// Puts everything in its place in a container that was created and has not begun.
pub(crate) fn put(pid: i32, volumes: &[Volume<'_>]) -> Result<(), RuntimeError> {
    let detached: Vec<Detached<'_>> = volumes.iter().map(detach).collect::<Result<_, _>>()?;
    crate::visit::in_mounts_of(pid, || {
        let root = InRoot::open(Path::new("/")).on("cannot open the container's root", Path::new("/"))?;
        detached.iter().try_for_each(|mount| attach(&root, mount))
    })
}

fn detach<'a>(volume: &Volume<'a>) -> Result<Detached<'a>, RuntimeError> {
    let target = volume.target;
    match volume.content {
        Content::Bind(source, attributes) => {
            let flags = OpenTreeFlags::OPEN_TREE_CLONE
                | OpenTreeFlags::OPEN_TREE_CLOEXEC
                | OpenTreeFlags::AT_RECURSIVE;
            let tree = open_tree(CWD, source, flags).on("cannot mount", source)?;
            sys::set_mount_attributes(tree.as_fd(), attributes).on("cannot mount", source)?;
            let is_directory = is_directory(&fstat(&tree).on("cannot read", source)?);
            Ok(Detached { mount: tree, target, is_directory })
        }
        Content::Memory(size, mode) => {
            let tree = memory(size, mode).on("cannot make memory for", target)?;
            Ok(Detached { mount: tree, target, is_directory: true })
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
    root.make_place(target, mount.is_directory).on("cannot make the place to mount at", target)?;
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
    if is_directory(&about) != mount.is_directory {
        let (what, where_to) = if mount.is_directory { ("directory", "file") } else { ("file", "directory") };
        let text =
            format!("a {what} cannot be mounted at {}, which is a {where_to} in the image", target.display());
        return Err(RuntimeError::Request(text));
    }
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    move_mount(mount.mount.as_fd(), "", place.as_fd(), "", flags).on("cannot mount at", target)
}

fn is_directory(about: &Stat) -> bool {
    FileType::from_raw_mode(about.st_mode) == FileType::Directory
}
