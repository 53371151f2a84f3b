//! The hooks of a specification: the steps of [`crate::apply`], called by another engine while it creates a container.
//!
//! The engine writes the container's state to standard input. Hooks work in the container's mount namespace before its root
//! becomes `/`; `createRuntime` hooks join it themselves ([`Stage::Runtime`]).

use std::fs::{self, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use cudock_facts::version::DriverVersion;
use rustix::fs::OFlags;
use rustix::mount::{MountFlags, UnmountFlags, mount_bind, mount_remount, unmount};
use serde::Deserialize;

use super::join::join;
use crate::InjectError;
use crate::apply::{Inside, make_links, teach_loader, write_texts};
use crate::edits::{Library, Link, application_profile, closed_params};
use crate::elf::ElfClass;

const MAX_STATE: u64 = 1 << 20;
const MAX_CONFIG: u64 = 16 << 20;
const PARAMS: &str = "/proc/driver/nvidia/params";

/// The action of a hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HookCall {
    CreateSymlinks(Vec<Link>),
    /// Add libraries to the loader's cache, and the image's own compat libraries if they are newer than this driver.
    UpdateLdcache(Vec<Library>, Option<DriverVersion>),
    /// Keep the driver in the container from creating device nodes.
    DisableDeviceNodeModification,
    /// List the container's GPUs in an application profile for EGL and Vulkan.
    UpdateApplicationProfile,
}

/// The point at which an engine calls a hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// `createRuntime`, in the engine's namespaces; used by current specifications.
    Runtime,
    /// `createContainer`, in the container's namespaces; used by specifications of earlier versions.
    Container,
}

/// Parses a link: `TARGET::PATH`.
pub fn parse_link(text: &str) -> Result<Link, InjectError> {
    let parts = text.split_once("::").filter(|(target, path)| !target.is_empty() && path.starts_with('/'));
    let (target, path) =
        parts.ok_or_else(|| InjectError::Hook(format!("`{text}` is not a link as TARGET::/PATH")))?;
    Ok(Link { path: PathBuf::from(path), target: PathBuf::from(target) })
}

/// Parses a library: 32 or 64, its name and its path, with `::` between.
pub fn parse_library(text: &str) -> Result<Library, InjectError> {
    let parts: Vec<&str> = text.splitn(3, "::").collect();
    let [bits, soname, path] = parts.as_slice() else {
        return Err(InjectError::Hook(format!("`{text}` is not a library as BITS::NAME::/PATH")));
    };
    let class = match *bits {
        "32" => ElfClass::Bits32,
        "64" => ElfClass::Bits64,
        other => return Err(InjectError::Hook(format!("a library is of 32 or 64 bits, not `{other}`"))),
    };
    Ok(Library { soname: (*soname).to_owned(), path: PathBuf::from(path), class })
}

#[derive(Deserialize)]
struct State {
    bundle: PathBuf,
    #[serde(default)]
    pid: i32,
}

#[derive(Deserialize)]
struct Config {
    root: ConfigRoot,
    #[serde(default)]
    linux: ConfigLinux,
}

#[derive(Deserialize)]
struct ConfigRoot {
    path: PathBuf,
}

#[derive(Deserialize, Default)]
struct ConfigLinux {
    #[serde(default)]
    devices: Vec<ConfigDevice>,
}

#[derive(Deserialize)]
struct ConfigDevice {
    path: String,
}

/// Runs a hook for the container whose state is read from `state`.
///
/// This process stays in the container's mount namespace at [`Stage::Runtime`], and must have one thread.
pub fn run(call: &HookCall, called_at: Stage, state: impl Read) -> Result<(), InjectError> {
    let state: State = document(state, MAX_STATE, "the container's state on standard input")?;
    let path = state.bundle.join("config.json");
    let file = fs::File::open(&path).map_err(InjectError::file("read", &path))?;
    let config: Config = document(file, MAX_CONFIG, &path.display().to_string())?;
    if called_at == Stage::Runtime {
        join(state.pid)?;
    }
    let inside = Inside::open(&state.bundle.join(&config.root.path))?;
    match call {
        HookCall::CreateSymlinks(links) => make_links(&inside, links.iter()),
        HookCall::UpdateLdcache(libraries, driver) => teach_loader(&inside, libraries, *driver),
        HookCall::DisableDeviceNodeModification => {
            let params = fs::read_to_string(PARAMS).unwrap_or_default();
            match closed_params(&params) {
                Some(text) => cover(&inside, &state.bundle, Path::new(PARAMS), &text.contents),
                None => Ok(()),
            }
        }
        HookCall::UpdateApplicationProfile => {
            let text = application_profile(config.linux.devices.iter().filter_map(minor));
            write_texts(&inside, std::iter::once(&text))
        }
    }
}

fn minor(device: &ConfigDevice) -> Option<u32> {
    device.path.strip_prefix("/dev/nvidia")?.parse().ok()
}

fn document<T: for<'de> Deserialize<'de>>(from: impl Read, most: u64, what: &str) -> Result<T, InjectError> {
    let mut text = String::new();
    let wrong = |why: &dyn std::fmt::Display| InjectError::Hook(format!("{what} cannot be read: {why}"));
    let read = from.take(most + 1).read_to_string(&mut text).map_err(|error| wrong(&error))? as u64;
    if read > most {
        return Err(wrong(&"it is too long"));
    }
    serde_json::from_str(&text).map_err(|error| wrong(&error))
}

/// Mounts a text over a file of the container's `/proc`. The text is stored in the bundle, which is
/// removed with the container.
fn cover(inside: &Inside, bundle: &Path, covered: &Path, contents: &str) -> Result<(), InjectError> {
    let Ok(target) = inside.resolve(covered, OFlags::PATH) else { return Ok(()) };
    let wrong = |source| inside.wrong("cover", covered, source);
    let kind = rustix::fs::fstatfs(&target).map_err(|error| wrong(error.into()))?;
    if kind.f_type != rustix::fs::PROC_SUPER_MAGIC {
        return Err(wrong(std::io::Error::other("it is not on procfs")));
    }
    let path = bundle.join("cudock-nvidia-params");
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o444).custom_flags(NOFOLLOW);
    let mut source = options.open(&path).map_err(InjectError::file("write", &path))?;
    source.write_all(contents.as_bytes()).map_err(InjectError::file("write", &path))?;
    let fd_path = |fd: i32| format!("/proc/self/fd/{fd}");
    mount_bind(fd_path(source.as_raw_fd()), fd_path(target.as_raw_fd()))
        .map_err(|error| wrong(error.into()))?;
    // The path leads to the new mount now, and the descriptor still to what it covers.
    let top = inside.resolve(covered, OFlags::PATH).map_err(wrong)?;
    let closed =
        MountFlags::BIND | MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount_remount(fd_path(top.as_raw_fd()), closed, "").map_err(|error| {
        unmount(fd_path(top.as_raw_fd()), UnmountFlags::DETACH).ok();
        wrong(error.into())
    })
}

const NOFOLLOW: i32 = OFlags::NOFOLLOW.bits().cast_signed();

#[cfg(test)]
mod tests {
    use std::process::Command;

    use cudock_testkit::process::{is_reentered, reenter_as};
    use cudock_testkit::test_name;

    use super::*;

    /// Runs itself again where mounts are its own.
    #[test]
    fn a_file_of_proc_is_covered_by_a_closed_copy_and_nothing_else_is() {
        let test = test_name!();
        if is_reentered(test) {
            return covers();
        }
        let mut unshare = Command::new("unshare");
        unshare.args(["-m", "--propagation", "private"]).arg(std::env::current_exe().unwrap());
        match reenter_as(unshare, test).output() {
            Ok(output) if !String::from_utf8_lossy(&output.stderr).contains("unshare failed") => {
                let (out, err) =
                    (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
                assert!(output.status.success() && out.contains("1 passed"), "{out}{err}");
            }
            _ => cudock_testkit::missing("namespaces", "no mounts of one's own here"),
        }
    }

    fn covers() {
        let bundle = tempfile::tempdir().unwrap();
        let root = bundle.path().join("rootfs");
        fs::create_dir_all(root.join("proc")).unwrap();
        fs::write(root.join("plain"), "mine").unwrap();
        let inside = Inside::open(&root).unwrap();
        cover(&inside, bundle.path(), Path::new("/proc/version"), "x").unwrap();
        assert!(!root.join("proc/version").exists(), "what is not there is not covered");
        let error = cover(&inside, bundle.path(), Path::new("/plain"), "x").unwrap_err();
        assert!(error.to_string().starts_with("cannot cover /plain in "), "{error}");

        rustix::mount::mount("proc", root.join("proc"), "proc", MountFlags::empty(), None::<&std::ffi::CStr>)
            .unwrap();
        cover(&inside, bundle.path(), Path::new("/proc/version"), "ModifyDeviceFiles: 0\n").unwrap();
        assert_eq!(fs::read_to_string(root.join("proc/version")).unwrap(), "ModifyDeviceFiles: 0\n");
        let error = fs::write(root.join("proc/version"), "x").unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::ReadOnlyFilesystem);
        unmount(root.join("proc/version"), UnmountFlags::empty()).unwrap();
        unmount(root.join("proc"), UnmountFlags::empty()).unwrap();
    }
}
