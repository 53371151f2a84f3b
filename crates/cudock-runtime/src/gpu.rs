//! The GPUs of a container, computed at each start from the driver as it is then: nothing that an update of the driver
//! could make stale is kept.

use std::collections::BTreeMap;
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use cudock_facts::Facts;
use cudock_host::Root;
use cudock_inject::{
    Devices, Driver, Edits, GpuRequest, Placement, Places, edits as edits_for, library_directory,
    requirements,
};
use cudock_target::Target;
use cudock_target::gate::GateHost;
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::mount::{MoveMountFlags, OpenTreeFlags, move_mount, open_tree};

use crate::error::{OnFile, OnSystem, RuntimeError};
use crate::plan::{GpuPlan, Plan, Private};

/// What has to be done to the container for its GPUs; none where it has none.
pub(crate) fn edits(plan: &Plan, private: &Private, root: &Path) -> Result<Option<Edits>, RuntimeError> {
    let Some(gpus) = &plan.gpus else { return Ok(None) };
    let environment: BTreeMap<String, String> = plan.environment(private).into_iter().collect();
    Ok(Some(find(gpus, &environment, root)?))
}

/// The edits for a root.
pub fn find(
    gpus: &GpuPlan,
    environment: &BTreeMap<String, String>,
    root: &Path,
) -> Result<Edits, RuntimeError> {
    find_at(gpus, environment, &Placement::Directory(library_directory(root)?))
}

/// The edits for files in given places.
pub fn find_at(
    gpus: &GpuPlan,
    environment: &BTreeMap<String, String>,
    placement: &Placement,
) -> Result<Edits, RuntimeError> {
    let flag = match &gpus.capabilities {
        Some(capabilities) => format!("{},\"capabilities={capabilities}\"", gpus.devices),
        None => gpus.devices.clone(),
    };
    let request = GpuRequest::resolve(Some(&flag), environment, false)?.unwrap_or_default();
    let driver = match Driver::find(&places(gpus)?) {
        // Who wants no GPU need not have a driver.
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

/// What requirements of images are held against: the driver, and the cards by the names the module gives them.
fn gate_host(gpus: &GpuPlan, driver: &Driver) -> GateHost {
    let facts = Facts::embedded();
    let proc = gpus.device_root.as_deref().or(gpus.driver_root.as_deref()).unwrap_or(Path::new("/"));
    let card = |gpu: &cudock_inject::Gpu| {
        let about = proc.join("proc/driver/nvidia/gpus").join(&gpu.bus).join("information");
        let text = std::fs::read_to_string(about).unwrap_or_default();
        let model =
            text.lines().find_map(|line| line.strip_prefix("Model:")).map(str::trim).unwrap_or_default();
        let row = facts.gpus().by_product_name(model);
        let known = row.and_then(|row| Target::of_gpu(&facts, &row.id, driver.version).ok());
        let mut target = known.unwrap_or_else(|| Target::unknown_card(&facts, driver.version));
        target.gpu.get_or_insert_with(|| model.to_owned());
        target
    };
    let mut targets: Vec<Target> = driver.gpus.iter().map(card).collect();
    if targets.is_empty() {
        targets.push(Target::unknown_card(&facts, driver.version));
    }
    requirements::host_of(&targets)
}

pub(crate) fn places(gpus: &GpuPlan) -> Result<Places, RuntimeError> {
    let tree = |directory: &Path| {
        Root::tree(directory)
            .map_err(|error| RuntimeError::file("cannot read the driver's root", &error.path, error.source))
    };
    let files = gpus.driver_root.as_deref().map(tree).transpose()?;
    let devices = gpus.device_root.as_deref().map(tree).transpose()?;
    Ok(match (files, devices) {
        (None, None) => Places::one(Root::live()),
        (Some(files), None) => Places::one(files),
        (None, Some(devices)) => Places::two(Root::live(), devices),
        (Some(files), Some(devices)) => Places::two(files, devices),
    })
}

/// Lays texts of ours over files of the container's `/proc`. A specification cannot say that, for most of what is below
/// `/proc` must not be covered. So it is done from outside, between creation and start: this process, which has one
/// thread, goes into the container's mount namespace for the moment it takes.
pub(crate) fn cover_texts(pid: i32, edits: &Edits) -> Result<(), RuntimeError> {
    let below_proc: Vec<_> = edits.texts.iter().filter(|text| text.path.starts_with("/proc")).collect();
    if below_proc.is_empty() {
        return Ok(());
    }
    let mut covers = Vec::new();
    for text in &below_proc {
        covers.push((text.path.as_path(), detached_file(&text.contents)?));
    }
    crate::visit::in_mounts_of(pid, || covers.iter().try_for_each(|(path, (cover, _))| lay_over(path, cover)))
}

/// A read-only file that is mounted nowhere yet. It must not be removed before it is.
fn detached_file(contents: &str) -> Result<(OwnedFd, tempfile::NamedTempFile), RuntimeError> {
    let mut file = tempfile::NamedTempFile::new().when("cannot make a temporary file")?;
    file.write_all(contents.as_bytes()).when("cannot write a temporary file")?;
    rustix::fs::fchmod(&file, Mode::from_raw_mode(0o444)).when("cannot write a temporary file")?;
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    let mount = open_tree(CWD, file.path(), flags).on("cannot mount", file.path())?;
    Ok((mount, file))
}

fn lay_over(path: &Path, cover: &OwnedFd) -> Result<(), RuntimeError> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let root = openat(CWD, "/", flags, Mode::empty()).when("cannot open the container's root")?;
    let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_SYMLINKS;
    let target = match openat2(root.as_fd(), path, flags, Mode::empty(), resolve) {
        Ok(target) => target,
        // Without the module's files there is nothing to cover.
        Err(rustix::io::Errno::NOENT) => return Ok(()),
        Err(error) => return Err(RuntimeError::file("cannot open", path, error)),
    };
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    move_mount(cover.as_fd(), "", target.as_fd(), "", flags).on("cannot cover", path)
}

/// Variables that the query needs beside the container's.
pub(crate) fn verify_environment() -> Vec<(String, String)> {
    cudock_device::ENVIRONMENT.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// Has every GPU of the container this process is in compute, and says what was seen. The exit code of the process.
pub(crate) fn verify() -> i32 {
    // A driver that hangs must not make the start hang.
    nix::unistd::alarm::set(120);
    match cudock_device::query(&mut |_| {}) {
        Ok(report) => {
            print!("{}", report.text());
            i32::from(!report.all_compute())
        }
        Err(error) => {
            println!("{error}");
            1
        }
    }
}
