//! Mounts a container's root: the shared read-only layers of the image, with a writable layer on top.
//!
//! It is mounted in the watcher's private mount namespace, so nothing stays mounted when that process exits.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, fsconfig_create, fsconfig_set_flag,
    fsconfig_set_string, fsmount, fsopen, move_mount,
};

use crate::error::{OnError, RuntimeError};

/// Moves this process into a mount namespace of its own, which still receives later mounts of the host.
pub fn leave_mount_namespace() -> Result<(), RuntimeError> {
    unshare(CloneFlags::CLONE_NEWNS).map_err(|error| match error {
        nix::Error::EPERM => RuntimeError::Host {
            what: "permission denied to create a mount namespace".to_owned(),
            hint: "run as root, or allow user namespaces (sysctl kernel.unprivileged_userns_clone=1, \
                   kernel.apparmor_restrict_unprivileged_userns=0)"
                .to_owned(),
        },
        error => RuntimeError::system("cannot create a mount namespace", error),
    })?;
    let slave = MsFlags::MS_REC | MsFlags::MS_SLAVE;
    mount(None::<&str>, "/", None::<&str>, slave, None::<&str>).when("cannot detach the mount namespace")
}

#[derive(Debug)]
pub(crate) struct Overlay<'a> {
    /// The topmost first.
    pub(crate) layers: &'a [PathBuf],
    pub(crate) upper: &'a Path,
    pub(crate) work: &'a Path,
    pub(crate) target: &'a Path,
    /// Whether it is mounted in a user namespace, where overlayfs must use `user.` attributes.
    pub(crate) user_namespace: bool,
}

impl Overlay<'_> {
    pub(crate) fn mount(&self) -> Result<(), RuntimeError> {
        for layer in self.layers {
            layer.metadata().on("cannot read the layer", layer)?;
        }
        match self.mount_with_fsconfig() {
            Ok(()) => Ok(()),
            // Kernels before 6.5 take all layers as one option only.
            Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => {
                self.mount_with_options().map_err(|error| self.explain(error.into()))
            }
            Err(error) => Err(self.explain(error.into())),
        }
    }

    fn mount_with_fsconfig(&self) -> rustix::io::Result<()> {
        let context = fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
        let context = context.as_fd();
        for layer in self.layers {
            fsconfig_set_string(context, "lowerdir+", layer.as_os_str())?;
        }
        fsconfig_set_string(context, "upperdir", self.upper)?;
        fsconfig_set_string(context, "workdir", self.work)?;
        fsconfig_set_string(context, "xino", "off")?;
        if self.user_namespace {
            fsconfig_set_flag(context, "userxattr")?;
        }
        fsconfig_create(context)?;
        let made = fsmount(context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())?;
        let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
        move_mount(made.as_fd(), "", rustix::fs::CWD, self.target, flags)
    }

    /// Mounts with one option string of at most a page. Paths are relative to the directory of the
    /// layers to keep it short.
    fn mount_with_options(&self) -> nix::Result<()> {
        let base = self.layers.first().and_then(|layer| layer.parent()).unwrap_or(Path::new("/"));
        let before = File::open(".").ok();
        std::env::set_current_dir(base).map_err(|_| nix::Error::ENOENT)?;
        let layers: Vec<OsString> =
            self.layers.iter().map(|layer| escape(layer.strip_prefix(base).unwrap_or(layer))).collect();
        let mut options = OsString::from("lowerdir=");
        options.push(layers.join(OsStr::new(":")));
        options.push(",upperdir=");
        options.push(escape(self.upper));
        options.push(",workdir=");
        options.push(escape(self.work));
        if self.user_namespace {
            options.push(",userxattr");
        }
        let outcome =
            mount(Some("overlay"), self.target, Some("overlay"), MsFlags::empty(), Some(options.as_os_str()));
        if let Some(before) = before {
            nix::unistd::fchdir(std::os::fd::AsRawFd::as_raw_fd(&before))?;
        }
        outcome
    }

    fn explain(&self, error: std::io::Error) -> RuntimeError {
        if error.raw_os_error() == Some(nix::libc::EINVAL) {
            return RuntimeError::Host {
                what: format!("overlayfs does not support {} as its upper layer", self.upper.display()),
                hint: "it is on an overlay or a network file system: set CUDOCK_DATA to a directory on another one"
                    .to_owned(),
            };
        }
        RuntimeError::file("cannot mount the overlay on", self.target, error)
    }
}

/// Escapes the separators of layers and options.
fn escape(path: &Path) -> OsString {
    let mut text = Vec::new();
    for &byte in path.as_os_str().as_bytes() {
        if matches!(byte, b':' | b',' | b'\\') {
            text.push(b'\\');
        }
        text.push(byte);
    }
    OsString::from_vec(text)
}
