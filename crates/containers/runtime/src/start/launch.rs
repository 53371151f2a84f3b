//! Starts a container once: prepares its root, writes its specification, creates its first process and lets it run.

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cudock_base::text::terminal::own_size;
use cudock_confine::devices::{Access, DeviceKind, DeviceRule, Program, attach, standard_rules};
use libcontainer::container::Container;
use libcontainer::container::builder::ContainerBuilder;
use libcontainer::syscall::syscall::SyscallType;
use rustix::process::{PidfdFlags, getpid, pidfd_open};

use crate::cgroup::{self, Cgroup};
use crate::container::config::{ContainerConfig, DeviceConfig, Private};
use crate::container::home::ContainerDir;
use crate::container::started::Started;
use crate::container::state_file::write_json;
use crate::error::{OnError, RuntimeError, error_text};
use crate::files::in_root::InRoot;
use crate::namespace::in_mount_ns::in_mount_ns;
use crate::start::error_capture;
use crate::start::executor::{ProgramExecutor, parse_error};
use crate::start::network::{self, Network};
use crate::start::spec::{SpecDevice, SpecInputs, all_devices, specification};
use crate::start::user::{Identity, identify};
use crate::start::{gpu, limits, seccomp};
use crate::supervise::signal::kill_and_reap;
use crate::supervise::terminal::ConsoleSocket;
use crate::supervise::{streams, terminal};
use crate::volumes::{self, Volume};

/// `/dev/net/tun`, which libcontainer allows on cgroup v1 by default.
const TUNNEL: (u32, u32) = (10, 200);

/// A container that was created but not started.
pub(crate) struct Created {
    container: Container,
    pub(crate) pid: i32,
    /// Our end of its terminal.
    pub(crate) terminal: Option<OwnedFd>,
}

/// Creates the container's first process, with these standard streams or a terminal.
pub(crate) fn create(
    dir: &ContainerDir,
    config: &ContainerConfig,
    private: &Private,
    network: &Network,
    streams: Option<[OwnedFd; 3]>,
    instead: Option<fn() -> i32>,
) -> Result<Created, RuntimeError> {
    let rootfs = dir.rootfs();
    let root = InRoot::open(&rootfs).on("cannot open the container's root", &rootfs)?;
    let mut identity = identify(&root, &config.process.user, &config.process.groups)?;
    reject_linked_directories(&root)?;
    create_cwd(&root, &config.process.cwd)?;
    let edits = gpu::edits(config, private, &rootfs)?;
    let texts = network::files(dir, config, network)?;
    let volumes: Vec<Volume<'_>> = texts
        .iter()
        .map(Volume::network_file)
        .chain(edits.iter().flat_map(|edits| &edits.mounts).map(Volume::of_driver))
        .chain(config.mounts.iter().map(Volume::from_config))
        .collect();
    volumes::create_mount_points(&root, &volumes);
    // No directory of the host may be open when the container is created: a link in its /proc would lead there.
    drop(root);
    if let Some(edits) = &edits {
        cudock_inject::prepare_root(&rootfs, edits)?;
    }
    let environment = environment(config, private, edits.as_ref(), &identity);
    let gpu_groups = edits.as_ref().map(|edits| edits.additional_gids.clone()).unwrap_or_default();
    identity.add_groups(&gpu_groups);
    // For processes that join it.
    let started = Started {
        environment: environment.clone(),
        given: private.environment.clone(),
        identity: identity.clone(),
        gpu_groups,
    };
    started.write(dir)?;
    let cgroup = Cgroup::of_container(&config.id);
    if cgroup.exists() {
        // Left by a start that was killed; nothing watches its processes any more.
        cgroup.remove()?;
    }
    clear(&dir.oci())?;
    let inputs = SpecInputs {
        identity: &identity,
        edits: edits.as_ref(),
        root: &rootfs,
        network: network.namespace(),
        devices: &requested_devices(config)?,
        cgroup: &cgroup::container_path(&config.id),
        rlimits: &limits::rlimits(&config.limits)?,
        hierarchies: cgroup::v1_hierarchies(),
        processors: processors(),
        swap: counts_swap(&config.limits),
        user_namespace: crate::namespace::rootless::in_user_namespace(),
    };
    write_json(&dir.bundle().join("config.json"), &specification(config, &inputs))?;

    let executor = ProgramExecutor {
        environment,
        cwd: config.process.cwd.clone(),
        filter: seccomp::filter(&config.security)?,
        size: config.process.tty.then(own_size).flatten(),
        // The program and the working directory may be on something that is mounted later.
        late: !config.mounts.is_empty() || edits.is_some(),
        instead,
        init: config.process.init,
        watcher: Some(Arc::new(own_pidfd()?)),
    };
    let checker = executor.clone();
    let console = streams.is_none().then(|| ConsoleSocket::bind(&dir.run())).transpose()?;
    let mut builder = ContainerBuilder::new(config.id.clone(), SyscallType::default())
        .with_executor(executor)
        .with_root_path(dir.oci())
        .map_err(|error| RuntimeError::Create(error_text(&error)))?
        .with_console_socket(console.as_ref().map(ConsoleSocket::path));
    if let Some(streams) = streams {
        streams::give_to(&streams, &identity);
        let [stdin, stdout, stderr] = streams;
        builder = builder.with_stdin(stdin).with_stdout(stdout).with_stderr(stderr);
    }
    error_capture::start();
    let container = builder
        .as_init(dir.bundle())
        .with_systemd(false)
        .with_detach(console.is_some())
        .build()
        .map_err(|error| explain(&error_text(&error)))?;
    let pid = container
        .pid()
        .ok_or_else(|| RuntimeError::Create("the container has no process".to_owned()))?
        .as_raw();
    set_limits(pid, config, &inputs, &cgroup)?;
    if !inputs.devices.iter().any(|device| (device.major, device.minor) == TUNNEL) {
        cgroup.deny(TUNNEL)?;
    }
    confine_devices(&cgroup, &inputs)?;
    if let Some(edits) = &edits {
        gpu::cover_texts(pid, edits)?;
    }
    if let Err(error) = volumes::mount_all(pid, &volumes).and_then(|()| check_program(pid, config, &checker))
    {
        // The container is not started, so its process is reaped here.
        kill_and_reap(pid);
        return Err(error);
    }
    let terminal = console.map(ConsoleSocket::receive).transpose()?;
    if let Some(terminal) = &terminal {
        streams::give_to(&[terminal::other_end(terminal.as_fd())?], &identity);
    }
    Ok(Created { container, pid, terminal })
}

fn own_pidfd() -> Result<OwnedFd, RuntimeError> {
    pidfd_open(getpid(), PidfdFlags::empty()).when("cannot open the watcher's pidfd")
}

fn environment(
    config: &ContainerConfig,
    private: &Private,
    edits: Option<&cudock_inject::Edits>,
    identity: &Identity,
) -> Vec<(String, String)> {
    let mut environment = config.environment(private);
    if let Some(edits) = edits {
        environment.retain(|(name, _)| !edits.environment.iter().any(|(ours, _)| ours == name));
        environment.extend(edits.environment.iter().cloned());
    }
    // As in docker, an empty one counts as unset.
    environment.retain(|(name, value)| name != "HOME" || !value.is_empty());
    for (name, value) in [("HOME", identity.home.clone()), ("HOSTNAME", config.hostname())] {
        if !environment.iter().any(|(known, _)| known == name) {
            environment.push((name.to_owned(), value));
        }
    }
    environment
}

/// Sets the limits that libcontainer does not.
fn set_limits(
    pid: i32,
    config: &ContainerConfig,
    inputs: &SpecInputs<'_>,
    cgroup: &Cgroup,
) -> Result<(), RuntimeError> {
    if inputs.sets_own_limits() {
        cgroup.limit(&config.limits)?;
    }
    if let Some(score) = config.limits.oom_score_adj {
        // Not in the specification: libcontainer would set it for this process, too.
        let file = PathBuf::from(format!("/proc/{pid}/oom_score_adj"));
        fs::write(&file, score.to_string()).on("cannot set the OOM score in", &file)?;
    }
    Ok(())
}

/// Checks the program and the working directory, if that was not possible before everything was mounted.
fn check_program(pid: i32, config: &ContainerConfig, checker: &ProgramExecutor) -> Result<(), RuntimeError> {
    if !checker.late || checker.instead.is_some() {
        return Ok(());
    }
    in_mount_ns(pid, || checker.check(&config.process.args).map_err(|text| parse_error(&text)))
}

impl Created {
    pub(crate) fn start(&mut self) -> Result<(), RuntimeError> {
        self.container.start().map_err(|error| RuntimeError::Create(error_text(&error)))
    }
}

/// libcontainer creates links and nodes below `/dev` by paths of the host, so a link there would lead out.
fn reject_linked_directories(root: &InRoot) -> Result<(), RuntimeError> {
    match ["dev", "proc", "sys"].into_iter().find(|name| root.is_not_directory(name)) {
        Some(name) => Err(RuntimeError::Request(format!("the image's /{name} is not a directory"))),
        None => Ok(()),
    }
}

/// Creates the working directory if it is missing, as docker does. If it cannot be created, the start reports the error.
fn create_cwd(root: &InRoot, cwd: &str) -> Result<(), RuntimeError> {
    match root.create_directory(Path::new(cwd)) {
        Ok(()) => Ok(()),
        Err(error)
            if matches!(error.kind(), io::ErrorKind::NotADirectory | io::ErrorKind::ReadOnlyFilesystem) =>
        {
            Ok(())
        }
        Err(error) => Err(RuntimeError::file("cannot create the working directory", cwd, error)),
    }
}

/// Attaches the device program that cgroup v2 uses instead of a list.
fn confine_devices(cgroup: &Cgroup, inputs: &SpecInputs<'_>) -> Result<(), RuntimeError> {
    let Some(directory) = cgroup.unified() else { return Ok(()) };
    if inputs.user_namespace {
        // Nodes cannot be created there, and only the container's are bind-mounted.
        return Ok(());
    }
    let mut rules = standard_rules();
    for device in all_devices(inputs) {
        let kind = if device.block { DeviceKind::Block } else { DeviceKind::Char };
        rules.push(DeviceRule::new(kind, device.major, device.minor, access(&device.access)));
    }
    Ok(attach(directory, &Program::new(&rules)?)?)
}

/// Whether a limit on swap can be set. Warns if one was requested and cannot.
fn counts_swap(limits: &crate::container::config::Limits) -> bool {
    let counts = cgroup::counts_swap();
    if limits.memory_swap.is_some() && !counts {
        eprintln!("warning: --memory-swap has no effect: this kernel does not count swap");
    }
    counts
}

/// Parses docker's access letters.
fn access(letters: &str) -> Access {
    let known = [('r', Access::READ), ('w', Access::WRITE), ('m', Access::MAKE)];
    let accesses =
        known.into_iter().filter(|(letter, _)| letters.contains(*letter)).map(|(_, access)| access);
    accesses.fold(Access::from_bits(0), std::ops::BitOr::bitor)
}

const DEVICE_DEPTH: usize = 8;

fn requested_devices(config: &ContainerConfig) -> Result<Vec<SpecDevice>, RuntimeError> {
    let mut devices = Vec::new();
    for device in &config.security.devices {
        let renamed = device.host != device.container;
        if renamed && crate::namespace::rootless::in_user_namespace() {
            return Err(RuntimeError::Request(format!(
                "--device {}: without root, a device keeps its path in the container",
                device.host.display()
            )));
        }
        add_devices(device, &mut devices, DEVICE_DEPTH)?;
    }
    Ok(devices)
}

/// Adds a node, or those in a directory, as docker does for `/dev/dri`.
fn add_devices(
    device: &DeviceConfig,
    devices: &mut Vec<SpecDevice>,
    depth: usize,
) -> Result<(), RuntimeError> {
    let path = &device.host;
    let about = fs::metadata(path).map_err(|error| {
        RuntimeError::Request(format!("--device: cannot read {}: {error}", path.display()))
    })?;
    let kind = about.file_type();
    if kind.is_dir() && depth > 0 {
        let mut entries: Vec<_> = fs::read_dir(path).on("cannot read", path)?.flatten().collect();
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let (host, container) = (entry.path(), device.container.join(entry.file_name()));
            let node = entry
                .file_type()
                .is_ok_and(|kind| kind.is_dir() || kind.is_char_device() || kind.is_block_device());
            if node {
                let below = DeviceConfig { host, container, access: device.access.clone() };
                add_devices(&below, devices, depth - 1)?;
            }
        }
        return Ok(());
    }
    if !kind.is_char_device() && !kind.is_block_device() {
        return Err(RuntimeError::Request(format!("{} is not a device node", path.display())));
    }
    let (major, minor) = (rustix::fs::major(about.rdev()), rustix::fs::minor(about.rdev()));
    devices.push(SpecDevice {
        path: device.container.display().to_string(),
        block: kind.is_block_device(),
        major,
        minor,
        mode: about.mode(),
        gid: about.gid(),
        access: device.access.clone(),
    });
    Ok(())
}

fn processors() -> u32 {
    std::thread::available_parallelism().ok().and_then(|count| u32::try_from(count.get()).ok()).unwrap_or(1)
}

fn clear(directory: &Path) -> Result<(), RuntimeError> {
    for entry in fs::read_dir(directory).on("cannot read", directory)?.flatten() {
        crate::container::home::remove_tree(&entry.path())?;
    }
    Ok(())
}

/// Adds a hint to errors that depend on the machine.
fn explain(text: &str) -> RuntimeError {
    let error = parse_error(text);
    let RuntimeError::Create(text) = &error else { return error };
    let text = &error_capture::first().unwrap_or_else(|| text.clone());
    if text.contains("cgroup") && crate::namespace::rootless::in_user_namespace() {
        return RuntimeError::Host {
            what: format!("this user may not create cgroups: {text}"),
            hint: "run as root, or delegate a cgroup: on systemd with cgroup v2, \
                   `systemd-run --user --scope -p Delegate=yes cudock …`; else CUDOCK_CGROUP=/PATH of one the user owns"
                .to_owned(),
        };
    }
    RuntimeError::Create(text.clone())
}
