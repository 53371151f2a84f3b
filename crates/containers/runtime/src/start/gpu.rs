//! The GPUs of a container, computed at each start from the installed driver, so that a driver update makes nothing stale.

use std::collections::BTreeMap;
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use cudock_base::text::printable;
use cudock_facts::Facts;
use cudock_gpu_test::DeviceReport;
use cudock_host::Root;
use cudock_inject::{
    Devices, Driver, DriverRoots, Edits, GpuRequest, Placement, edits as edits_for, library_directory,
    requirements,
};
use cudock_target::Target;
use cudock_target::gate::GateHost;
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::mount::{MoveMountFlags, OpenTreeFlags, move_mount, open_tree};

use crate::container::config::{ContainerConfig, GpuConfig, Private};
use crate::error::{OnError, RuntimeError};
use crate::namespace::in_mount_ns::in_mount_ns;

pub(crate) fn edits(
    config: &ContainerConfig,
    private: &Private,
    root: &Path,
) -> Result<Option<Edits>, RuntimeError> {
    let Some(gpus) = &config.gpus else { return Ok(None) };
    let environment: BTreeMap<String, String> = config.environment(private).into_iter().collect();
    Ok(Some(find(gpus, &environment, root)?))
}

pub fn find(
    gpus: &GpuConfig,
    environment: &BTreeMap<String, String>,
    root: &Path,
) -> Result<Edits, RuntimeError> {
    find_at(gpus, environment, &Placement::Directory(library_directory(root)?))
}

pub fn find_at(
    gpus: &GpuConfig,
    environment: &BTreeMap<String, String>,
    placement: &Placement,
) -> Result<Edits, RuntimeError> {
    let flag = match &gpus.capabilities {
        Some(capabilities) => format!("{},\"capabilities={capabilities}\"", gpus.devices),
        None => gpus.devices.clone(),
    };
    let request = GpuRequest::resolve(Some(&flag), environment, false)?.unwrap_or_default();
    let driver = match Driver::find(&driver_roots(gpus)?) {
        // Without GPUs no driver is needed.
        Err(_) if request.devices == Devices::None => return Ok(Edits::default()),
        found => found?,
    };
    let unknown = if requirements::are_any(environment) {
        requirements::check(environment, &gate_host(gpus, &driver))?
    } else {
        None
    };
    let mut edits = edits_for(&driver, &request, placement)?;
    edits.warnings.extend(unknown);
    Ok(edits)
}

/// The host against which images' requirements are checked: the driver, and the GPUs by the kernel
/// module's names.
fn gate_host(gpus: &GpuConfig, driver: &Driver) -> GateHost {
    let facts = Facts::embedded();
    let proc = gpus.device_root.as_deref().or(gpus.driver_root.as_deref()).unwrap_or(Path::new("/"));
    let target = |gpu: &cudock_inject::DriverGpu| {
        let path = proc.join("proc/driver/nvidia/gpus").join(&gpu.bus).join("information");
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let model =
            text.lines().find_map(|line| line.strip_prefix("Model:")).map(str::trim).unwrap_or_default();
        let row = facts.gpus().by_product_name(model);
        let known = row.and_then(|row| Target::of_gpu(&facts, &row.id, driver.version).ok());
        let mut target = known.unwrap_or_else(|| Target::unknown_gpu(&facts, driver.version));
        target.gpu.get_or_insert_with(|| model.to_owned());
        target
    };
    let mut targets: Vec<Target> = driver.gpus.iter().map(target).collect();
    if targets.is_empty() {
        targets.push(Target::unknown_gpu(&facts, driver.version));
    }
    requirements::host_of(&targets)
}

pub(crate) fn driver_roots(gpus: &GpuConfig) -> Result<DriverRoots, RuntimeError> {
    let tree = |directory: &Path| {
        Root::tree(directory)
            .map_err(|error| RuntimeError::file("cannot read the driver's root", &error.path, error.source))
    };
    let files = gpus.driver_root.as_deref().map(tree).transpose()?;
    let devices = gpus.device_root.as_deref().map(tree).transpose()?;
    Ok(match (files, devices) {
        (None, None) => DriverRoots::one(Root::live()),
        (Some(files), None) => DriverRoots::one(files),
        (None, Some(devices)) => DriverRoots::two(Root::live(), devices),
        (Some(files), Some(devices)) => DriverRoots::two(files, devices),
    })
}

/// Mounts text files over files of the container's `/proc`, which a specification cannot express, since runtimes reject
/// mounts below `/proc`. This process, which has one thread, enters the container's mount namespace between creation and
/// start.
pub(crate) fn cover_texts(pid: i32, edits: &Edits) -> Result<(), RuntimeError> {
    let below_proc: Vec<_> = edits.texts.iter().filter(|text| text.path.starts_with("/proc")).collect();
    if below_proc.is_empty() {
        return Ok(());
    }
    let mut covers = Vec::new();
    for text in &below_proc {
        covers.push((text.path.as_path(), detached_file(&text.contents)?));
    }
    in_mount_ns(pid, || covers.iter().try_for_each(|(path, (cover, _))| mount_over(path, cover)))
}

/// A detached mount of a read-only file, which must not be removed before it is attached.
fn detached_file(contents: &str) -> Result<(OwnedFd, tempfile::NamedTempFile), RuntimeError> {
    let mut file = tempfile::NamedTempFile::new().when("cannot create a temporary file")?;
    file.write_all(contents.as_bytes()).when("cannot write a temporary file")?;
    rustix::fs::fchmod(&file, Mode::from_raw_mode(0o444)).when("cannot write a temporary file")?;
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    let mount = open_tree(CWD, file.path(), flags).on("cannot mount", file.path())?;
    Ok((mount, file))
}

fn mount_over(path: &Path, cover: &OwnedFd) -> Result<(), RuntimeError> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let root = openat(CWD, "/", flags, Mode::empty()).when("cannot open the container's root")?;
    let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_SYMLINKS;
    let target = match openat2(root.as_fd(), path, flags, Mode::empty(), resolve) {
        Ok(target) => target,
        // Without the kernel module there is nothing to cover.
        Err(rustix::io::Errno::NOENT) => return Ok(()),
        Err(error) => return Err(RuntimeError::file("cannot open", path, error)),
    };
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    move_mount(cover.as_fd(), "", target.as_fd(), "", flags).on("cannot cover", path)
}

/// Variables that the GPU check needs besides the container's.
pub(crate) fn verify_environment() -> Vec<(String, String)> {
    cudock_gpu_test::ENVIRONMENT
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

/// Computes on every GPU of the container this process is in, prints the report on the last line and returns the exit code.
pub(crate) fn verify() -> i32 {
    // A driver that hangs must not block the start.
    nix::unistd::alarm::set(120);
    match cudock_gpu_test::query(&mut |_| {}) {
        Ok(report) => {
            println!("{}", serde_json::to_string(&report).unwrap_or_default());
            i32::from(!report.all_compute())
        }
        Err(error) => {
            println!("{error}");
            1
        }
    }
}

/// Splits the output of [`verify`]: the report if there is one, and the text for users with the
/// driver's output before it.
pub(crate) fn read_report(output: &str) -> (Option<DeviceReport>, String) {
    let lines = output.trim_end();
    let (before, last) = lines.rfind('\n').map_or(("", lines), |end| lines.split_at(end + 1));
    match serde_json::from_str::<DeviceReport>(last) {
        Ok(report) => {
            let text = format!("{}{}", printable_lines(before), report.text());
            (Some(report), text)
        }
        Err(_) => (None, printable_lines(output)),
    }
}

/// Output of the image's libraries.
fn printable_lines(text: &str) -> String {
    text.split('\n').map(printable).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_read_from_the_last_line() {
        let json = r#"{"driver_cuda":"13.0","library":"/usr/lib/libcuda.so.1","devices":[]}"#;
        let (report, text) = read_report(&format!("a driver's warning\n{json}\n"));
        assert_eq!(report.unwrap().library, "/usr/lib/libcuda.so.1");
        assert_eq!(text, "a driver's warning\ndriver for CUDA 13.0, /usr/lib/libcuda.so.1\n");
        assert!(read_report(json).0.is_some());
        for other in ["", "no driver\n", &format!("{json}\nthe GPU check timed out")] {
            assert_eq!(read_report(other), (None, other.to_owned()));
        }
    }
}
