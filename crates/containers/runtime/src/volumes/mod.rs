//! Mounts volumes, driver files and network files in a container. Detached mounts are created outside and attached by
//! descriptor once the root is complete. Links of the image are resolved as inside, so no mount can end up outside.

pub(crate) mod fill;
pub mod store;

use std::fs;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use nix::libc;
use rustix::fs::{CWD, FileType, Stat, fstat};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags, fsconfig_create,
    fsconfig_set_string, fsmount, fsopen, move_mount, open_tree,
};

use crate::container::config::{MountConfig, Propagation};
use crate::error::{OnError, RuntimeError};
use crate::files::in_root::InRoot;
use crate::namespace::in_mount_ns::in_mount_ns;
use crate::namespace::sys;

#[derive(Debug)]
pub(crate) struct Volume<'a> {
    source: VolumeSource<'a>,
    target: &'a Path,
}

#[derive(Debug)]
enum VolumeSource<'a> {
    /// A file or directory of this machine, the attributes of the mount, and its propagation.
    Bind(&'a Path, u64, Propagation),
    /// A tmpfs: size, mode and attributes.
    Tmpfs(Option<u64>, u32, MountAttrFlags),
}

impl<'a> Volume<'a> {
    pub(crate) fn from_config(mount: &'a MountConfig) -> Self {
        match mount {
            MountConfig::Bind { source, target, read_only, propagation, .. } => {
                Self::bind(source, target, *read_only, *propagation)
            }
            MountConfig::Volume { source, target, read_only, .. } => {
                Self::bind(source, target, *read_only, Propagation::Private)
            }
            MountConfig::Tmpfs { target, size, mode, no_exec } => {
                let mut attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
                attributes.set(MountAttrFlags::MOUNT_ATTR_NOEXEC, *no_exec);
                Self { source: VolumeSource::Tmpfs(*size, mode.unwrap_or(0o1777), attributes), target }
            }
        }
    }

    fn bind(source: &'a Path, target: &'a Path, read_only: bool, propagation: Propagation) -> Self {
        let attributes = if read_only { libc::MOUNT_ATTR_RDONLY } else { 0 };
        Self { source: VolumeSource::Bind(source, attributes, propagation), target }
    }

    pub(crate) fn of_driver(mount: &'a cudock_inject::Mount) -> Self {
        let attribute = |option: &String| match option.as_str() {
            "ro" => libc::MOUNT_ATTR_RDONLY,
            "nosuid" => libc::MOUNT_ATTR_NOSUID,
            "nodev" => libc::MOUNT_ATTR_NODEV,
            "noexec" => libc::MOUNT_ATTR_NOEXEC,
            _ => 0,
        };
        let attributes = mount.options.iter().map(attribute).fold(0, std::ops::BitOr::bitor);
        let source = VolumeSource::Bind(&mount.host, attributes, Propagation::Private);
        Self { source, target: &mount.container }
    }

    pub(crate) fn network_file((source, target): &'a (PathBuf, &'static str)) -> Self {
        let attributes = libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV | libc::MOUNT_ATTR_NOEXEC;
        let source = VolumeSource::Bind(source, attributes, Propagation::Private);
        Self { source, target: Path::new(target) }
    }

    fn is_directory(&self) -> bool {
        !matches!(self.source, VolumeSource::Bind(source, ..) if !source.is_dir())
    }
}

/// A mount that is not attached yet.
#[derive(Debug)]
struct Detached<'a> {
    mount: OwnedFd,
    target: &'a Path,
    is_directory: bool,
}

/// Creates missing directories of this machine that are to be mounted, as docker's `-v` does.
pub(crate) fn create_sources(mounts: &[MountConfig]) -> Result<(), RuntimeError> {
    for mount in mounts {
        if let MountConfig::Bind { source, create: true, .. } = mount
            && !source.exists()
        {
            fs::create_dir_all(source).on("cannot create the directory to mount", source)?;
        }
    }
    Ok(())
}

/// Creates mount points before the root may become read-only, and replaces dangling links. Mount points below other volumes
/// are created when those are mounted.
pub(crate) fn create_mount_points(root: &InRoot, volumes: &[Volume<'_>]) {
    for volume in volumes {
        root.remove_dangling_link(volume.target);
        // If it cannot be created, mounting reports the error.
        let _ = root.create_mount_point(volume.target, volume.is_directory());
    }
}

/// Mounts everything in a container that was created but not started.
pub(crate) fn mount_all(pid: i32, volumes: &[Volume<'_>]) -> Result<(), RuntimeError> {
    let detached: Vec<Detached<'_>> = volumes.iter().map(detach).collect::<Result<_, _>>()?;
    in_mount_ns(pid, || {
        let root = InRoot::open(Path::new("/")).on("cannot open the container's root", Path::new("/"))?;
        detached.iter().try_for_each(|mount| attach(&root, mount))
    })
}

fn detach<'a>(volume: &Volume<'a>) -> Result<Detached<'a>, RuntimeError> {
    let target = volume.target;
    match volume.source {
        VolumeSource::Bind(source, attributes, propagation) => {
            let flags = OpenTreeFlags::OPEN_TREE_CLONE
                | OpenTreeFlags::OPEN_TREE_CLOEXEC
                | OpenTreeFlags::AT_RECURSIVE;
            let tree = open_tree(CWD, source, flags).on("cannot mount", source)?;
            sys::set_mount_attributes(tree.as_fd(), attributes, propagation).on("cannot mount", source)?;
            let is_directory = is_directory(&fstat(&tree).on("cannot read", source)?);
            Ok(Detached { mount: tree, target, is_directory })
        }
        VolumeSource::Tmpfs(size, mode, attributes) => {
            let tree = tmpfs(size, mode, attributes).on("cannot create a tmpfs for", target)?;
            Ok(Detached { mount: tree, target, is_directory: true })
        }
    }
}

fn tmpfs(size: Option<u64>, mode: u32, attributes: MountAttrFlags) -> rustix::io::Result<OwnedFd> {
    let context = fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_set_string(context.as_fd(), "mode", format!("{mode:o}"))?;
    if let Some(size) = size {
        fsconfig_set_string(context.as_fd(), "size", size.to_string())?;
    }
    fsconfig_create(context.as_fd())?;
    fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attributes)
}

fn attach(root: &InRoot, mount: &Detached<'_>) -> Result<(), RuntimeError> {
    let target = mount.target;
    root.create_mount_point(target, mount.is_directory).on("cannot create the mount point", target)?;
    let mount_point = root.open_path(target).on("cannot open the mount point", target)?;
    let stat = fstat(&mount_point).on("cannot read", target)?;
    let same = |other: &str| {
        let other = root.open_path(Path::new(other)).ok().and_then(|other| fstat(other).ok());
        other.is_some_and(|other| (other.st_dev, other.st_ino) == (stat.st_dev, stat.st_ino))
    };
    if let Some(reserved) = ["/", "/dev", "/proc", "/sys"].into_iter().find(|path| same(path)) {
        let text = if target == Path::new(reserved) {
            format!("cannot mount at {reserved} in a container")
        } else {
            format!("cannot mount at {}, which leads to {reserved} in the container", target.display())
        };
        return Err(RuntimeError::Request(text));
    }
    if is_directory(&stat) != mount.is_directory {
        let (source, found) = if mount.is_directory { ("directory", "file") } else { ("file", "directory") };
        let text =
            format!("cannot mount a {source} at {}, which is a {found} in the image", target.display());
        return Err(RuntimeError::Request(text));
    }
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    move_mount(mount.mount.as_fd(), "", mount_point.as_fd(), "", flags).on("cannot mount at", target)
}

fn is_directory(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::Directory
}
