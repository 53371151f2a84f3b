//! Copies files between a container and this machine.
//!
//! A container's paths are resolved as a process inside would resolve them (`InRoot`), so no link in it leads out; below
//! the first directory nothing is followed at all (`tree`).

use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, fstat, mkdirat, statat};

use crate::container::config::ContainerConfig;
use crate::container::home::ContainerDir;
use crate::container::status::{ContainerState, Watch, process_began};
use crate::error::{OnError, RuntimeError};
use crate::files::directory::open_directory;
use crate::files::in_root::InRoot;
pub use crate::files::tree::Copied;
use crate::files::tree::{CopyOptions, TreeCopy};
use crate::start::overlay::{Overlay, leave_mount_namespace};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Copy from this machine into the container.
    In,
    /// Copy from the container to this machine.
    Out,
}

#[derive(Debug, Clone)]
pub struct CopyRequest {
    pub direction: Direction,
    /// The path in the container, as typed.
    pub inside: String,
    /// The path on this machine, as typed.
    pub outside: String,
    /// Whether to keep owners and groups.
    pub archive: bool,
    /// Whether to copy the target of a link as the source.
    pub follow_link: bool,
}

pub fn copy(
    dir: &ContainerDir,
    config: &ContainerConfig,
    request: &CopyRequest,
) -> Result<Copied, RuntimeError> {
    let outside = std::path::absolute(&request.outside).on("cannot find", Path::new(&request.outside))?;
    // Opened before a stopped container's root is mounted, which changes the mount namespace.
    let here = Side::at(Path::new("/"), outside, &request.outside)?;
    let (root, held) = root_of(dir, config, &request.inside)?;
    let inside = Side { root, path: Path::new("/").join(&request.inside), typed: request.inside.clone() };
    let (from, to) = match request.direction {
        Direction::In => (&here, &inside),
        Direction::Out => (&inside, &here),
    };
    let options = CopyOptions { owners: request.archive, special_bits: false };
    let mut never = || false;
    let mut copy = TreeCopy::new(options, &mut never);
    let outcome = between(from, to, &mut copy, request.follow_link);
    drop(held);
    outcome.map(|()| copy.copied)
}

/// The container's root: as its processes see it if it runs, else mounted temporarily, and locked so that it does not start
/// meanwhile.
fn root_of(
    dir: &ContainerDir,
    config: &ContainerConfig,
    path: &str,
) -> Result<(InRoot, Option<Watch>), RuntimeError> {
    let status = dir.current(config)?;
    if let Some(pid) = status.pid.filter(|_| status.state == ContainerState::Running) {
        let root = PathBuf::from(format!("/proc/{pid}/root"));
        let opened = InRoot::open(&root).on("cannot open the container's root", &root)?;
        if process_began(pid) == status.pid_began {
            return Ok((opened, None));
        }
    }
    let in_volume = |target: &Path| Path::new("/").join(path).starts_with(target);
    if let Some(mount) = config.mounts.iter().find(|mount| in_volume(mount.target())) {
        return Err(RuntimeError::Request(format!(
            "{path} is in a volume at {}, which is mounted only while the container runs",
            mount.target().display()
        )));
    }
    let Some(watch) = dir.watch()? else {
        return Err(RuntimeError::state(&config.name, &"changing its state", "running or stopped"));
    };
    leave_mount_namespace()?;
    let target = dir.run();
    Overlay {
        layers: &config.layers,
        upper: &dir.upper(),
        work: &dir.work(),
        target: &target,
        user_namespace: crate::namespace::rootless::in_user_namespace(),
    }
    .mount()?;
    let opened = InRoot::open(&target).on("cannot open the container's root", &target)?;
    Ok((opened, Some(watch)))
}

struct Side {
    root: InRoot,
    path: PathBuf,
    typed: String,
}

impl Side {
    fn at(root: &Path, path: PathBuf, typed: &str) -> Result<Self, RuntimeError> {
        let root = InRoot::open(root).on("cannot open", root)?;
        Ok(Self { root, path, typed: typed.to_owned() })
    }

    fn is_written_as_directory(&self) -> bool {
        self.typed.ends_with('/') || self.is_contents()
    }

    /// Whether it means the contents of a directory: `DIR/.`.
    fn is_contents(&self) -> bool {
        self.typed == "." || self.typed.ends_with("/.")
    }

    fn open(&self) -> Result<OwnedFd, RuntimeError> {
        self.root.open_path(&self.path).on("cannot open", &self.path)
    }

    fn entry(&self) -> Result<(OwnedFd, &OsStr), RuntimeError> {
        let none = || RuntimeError::Request(format!("`{}` has no file name", self.typed));
        let parent = self.path.parent().ok_or_else(none)?;
        let name = self.path.file_name().ok_or_else(none)?;
        Ok((self.root.open_path(parent).on("cannot open", parent)?, name))
    }
}

fn is_directory(handle: &OwnedFd) -> Result<bool, RuntimeError> {
    let stat = fstat(handle).when("cannot read the file")?;
    Ok(FileType::from_raw_mode(stat.st_mode) == FileType::Directory)
}

fn between(from: &Side, to: &Side, copy: &mut TreeCopy<'_>, follow: bool) -> Result<(), RuntimeError> {
    let source = from.open();
    let linked = from.entry().ok().and_then(|(parent, name)| {
        let stat = statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        Some(FileType::from_raw_mode(stat.st_mode) == FileType::Symlink)
    });
    let as_link = linked == Some(true) && !follow && !from.is_written_as_directory();
    if as_link || !is_directory(source.as_ref().map_err(|_| missing(from))?)? {
        return copy_single(from, to, as_link, copy);
    }
    let source = source?;
    let target = match to.open() {
        Ok(target) if !is_directory(&target)? => {
            return Err(RuntimeError::Request(format!(
                "{} is not a directory, and {} is one",
                to.typed, from.typed
            )));
        }
        Ok(target) if from.is_contents() => target,
        Ok(target) => {
            let name = from.path.file_name().unwrap_or(OsStr::new("root"));
            create_in(&target, name, &to.path)?
        }
        Err(_) => {
            let (parent, name) = to.entry()?;
            create_in(&parent, name, &to.path)?
        }
    };
    copy.contents(source.as_fd(), target.as_fd()).on("cannot copy to", &to.path)?;
    if !from.is_contents() {
        let stat = fstat(&source).on("cannot read", &from.path)?;
        copy.attributes(&stat, target.as_fd()).on("cannot copy to", &to.path)?;
    }
    copy.copied.entries += 1;
    Ok(())
}

fn missing(side: &Side) -> RuntimeError {
    RuntimeError::Request(format!("{} not found", side.typed))
}

/// A directory by its name in another, created if it is missing.
fn create_in(parent: &OwnedFd, name: &OsStr, path: &Path) -> Result<OwnedFd, RuntimeError> {
    match mkdirat(parent, name, Mode::from_raw_mode(0o755)) {
        Ok(()) | Err(rustix::io::Errno::EXIST) => {}
        Err(error) => return Err(RuntimeError::file("cannot create", path, error)),
    }
    open_directory(parent.as_fd(), name).on("cannot open", path)
}

/// Copies a file or a link, into a directory or to a name.
fn copy_single(from: &Side, to: &Side, as_link: bool, copy: &mut TreeCopy<'_>) -> Result<(), RuntimeError> {
    let (source_dir, own_name) = from.entry()?;
    let (target_dir, target_name) = match to.open() {
        Ok(target) if is_directory(&target)? => (target, own_name),
        found => {
            if found.is_err() && to.is_written_as_directory() {
                return Err(RuntimeError::Request(format!("directory {} not found", to.typed)));
            }
            to.entry()?
        }
    };
    let target = (target_dir.as_fd(), target_name);
    let outcome = if as_link {
        copy.entry((source_dir.as_fd(), own_name), target)
    } else {
        copy.opened(&from.open()?, target)
    };
    outcome.on("cannot copy to", &to.path)
}
