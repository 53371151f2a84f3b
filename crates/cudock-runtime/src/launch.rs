//! One start of a container: its root made ready, its specification written, its first process created and let go.

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use cudock_confine::Capability;
use cudock_confine::devices::{Access, DeviceKind, DeviceRule, Program, attach, standard_rules};
use cudock_confine::seccomp::{Filter, FilterContext, Profile};
use libcontainer::container::Container;
use libcontainer::container::builder::ContainerBuilder;
use libcontainer::syscall::syscall::SyscallType;

use crate::cgroup::Cgroup;
use crate::error::{OnFile, RuntimeError};
use crate::executor::{Become, understood};
use crate::home::{ContainerDir, write_json};
use crate::in_root::InRoot;
use crate::last_words;
use crate::network::{self, Network};
use crate::plan::{DevicePlan, Plan, Private, Seccomp, Security};
use crate::spec::{Device, Facts, all_devices, specification};
use crate::started::Started;
use crate::terminal::{ConsoleSocket, own_size};
use crate::user::{Identity, identify};
use crate::volumes::{self, Volume};
use crate::{gpu, limits, pump, terminal};

/// The one device that libcontainer allows in version 1 of control groups and no container needs unasked.
const TUNNEL: (u32, u32) = (10, 200);

/// What a process is connected to.
#[derive(Debug)]
pub(crate) enum Streams {
    /// Three descriptors.
    Pipes { stdin: OwnedFd, stdout: OwnedFd, stderr: OwnedFd },
    /// A terminal of its own.
    Terminal,
}

/// A container that was created, and has not begun.
pub(crate) struct Created {
    container: Container,
    pub(crate) pid: i32,
    /// Our end of its terminal.
    pub(crate) terminal: Option<OwnedFd>,
}

/// Creates the container's first process.
pub(crate) fn create(
    dir: &ContainerDir,
    plan: &Plan,
    private: &Private,
    network: &Network,
    streams: Streams,
    instead: Option<fn() -> i32>,
) -> Result<Created, RuntimeError> {
    let rootfs = dir.rootfs();
    let root = InRoot::open(&rootfs).on("cannot open the container's root", &rootfs)?;
    let identity = identify(&root, &plan.process.user, &plan.process.groups)?;
    refuse_linked_directories(&root)?;
    make_cwd(&root, &plan.process.cwd)?;
    let edits = gpu::edits(plan, private, &rootfs)?;
    let texts = network::files(dir, plan, network.name_server())?;
    let volumes: Vec<Volume<'_>> = texts
        .iter()
        .map(Volume::text)
        .chain(edits.iter().flat_map(|edits| &edits.mounts).map(Volume::of_driver))
        .chain(plan.mounts.iter().map(Volume::asked))
        .collect();
    volumes::make_places(&root, &volumes);
    // Nothing of the outside may be open when the container comes to be: a link in its /proc would lead there.
    drop(root);
    if let Some(edits) = &edits {
        cudock_inject::prepare_root(&rootfs, edits)?;
    }
    let environment = environment(plan, private, edits.as_ref(), &identity);
    remember(dir, private, &identity, edits.as_ref(), &environment)?;
    let cgroup_path = cgroup_path(&plan.id);
    let cgroup = Cgroup::at(&cgroup_path);
    if cgroup.exists() {
        // Left by a start that was killed; whatever is in it is no longer watched by anyone.
        cgroup.remove()?;
    }
    clear(&dir.oci())?;
    let facts = Facts {
        identity: &identity,
        edits: edits.as_ref(),
        root: &rootfs,
        network: network.namespace(),
        devices: &asked_devices(plan)?,
        cgroup: &cgroup_path,
        rlimits: &limits::rlimits(&plan.limits)?,
        hierarchies: crate::cgroup::first_version(),
        processors: processors(),
        swap: counts_swap(&plan.limits),
        user_namespace: crate::rootless::in_user_namespace(),
    };
    write_json(&dir.bundle().join("config.json"), &specification(plan, &facts))?;

    let executor = Become {
        environment,
        cwd: plan.process.cwd.clone(),
        filter: filter(&plan.security)?,
        size: plan.process.tty.then(own_size).flatten(),
        // Its program and its directory may be in what is mounted last.
        late: !plan.mounts.is_empty() || edits.is_some(),
        instead,
        init: plan.process.init,
    };
    let looker = executor.clone();
    let console =
        matches!(streams, Streams::Terminal).then(|| ConsoleSocket::bind(&dir.run())).transpose()?;
    let mut builder = ContainerBuilder::new(plan.id.clone(), SyscallType::default())
        .with_executor(executor)
        .with_root_path(dir.oci())
        .map_err(|error| RuntimeError::Create(text(&error)))?
        .with_console_socket(console.as_ref().map(ConsoleSocket::path));
    if let Streams::Pipes { stdin, stdout, stderr } = streams {
        let streams = [stdin, stdout, stderr];
        pump::give_to(&streams, &identity);
        let [stdin, stdout, stderr] = streams;
        builder = builder.with_stdin(stdin).with_stdout(stdout).with_stderr(stderr);
    }
    last_words::listen();
    let container = builder
        .as_init(dir.bundle())
        .with_systemd(false)
        .with_detach(console.is_some())
        .build()
        .map_err(|error| explained(&text(&error)))?;
    let pid = container.pid().ok_or_else(|| RuntimeError::Create("it has no process".to_owned()))?.as_raw();
    if facts.sets_own_limits() {
        cgroup.limit(&plan.limits)?;
    }
    if let Some(score) = plan.limits.oom_score_adj {
        // Not by the specification: libcontainer would set it for this process, too, and keep it.
        let file = PathBuf::from(format!("/proc/{pid}/oom_score_adj"));
        fs::write(&file, score.to_string()).on("cannot set the OOM score in", &file)?;
    }
    if !facts.devices.iter().any(|device| (device.major, device.minor) == TUNNEL) {
        cgroup.deny(TUNNEL)?;
    }
    confine_devices(&cgroup, &facts)?;
    if let Some(edits) = &edits {
        gpu::cover_texts(pid, edits)?;
    }
    if let Err(error) = volumes::put(pid, &volumes).and_then(|()| look(pid, plan, &looker)) {
        // Nobody waits for it any more.
        let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::SIGKILL);
        let _ = nix::sys::wait::waitpid(nix::unistd::Pid::from_raw(pid), None);
        return Err(error);
    }
    let terminal = console.map(ConsoleSocket::receive).transpose()?;
    if let Some(terminal) = &terminal {
        pump::give_to(&[terminal::other_end(terminal.as_fd())?], &identity);
    }
    Ok(Created { container, pid, terminal })
}

/// The variables that the first process starts with.
fn environment(
    plan: &Plan,
    private: &Private,
    edits: Option<&cudock_inject::Edits>,
    identity: &Identity,
) -> Vec<(String, String)> {
    let mut environment = plan.environment(private);
    if let Some(edits) = edits {
        environment.retain(|(name, _)| !edits.environment.iter().any(|(ours, _)| ours == name));
        environment.extend(edits.environment.iter().cloned());
    }
    // An empty one counts as none, as in docker.
    environment.retain(|(name, value)| name != "HOME" || !value.is_empty());
    for (name, value) in [("HOME", identity.home.clone()), ("HOSTNAME", plan.hostname())] {
        if !environment.iter().any(|(known, _)| known == name) {
            environment.push((name.to_owned(), value));
        }
    }
    environment
}

/// Looks for the program and the directory to start in, where that could not be done before everything was mounted.
fn look(pid: i32, plan: &Plan, looker: &Become) -> Result<(), RuntimeError> {
    if !looker.late || looker.instead.is_some() {
        return Ok(());
    }
    crate::visit::in_mounts_of(pid, || looker.look(&plan.process.args).map_err(|text| understood(&text)))
}

impl Created {
    /// Lets the program begin.
    pub(crate) fn start(&mut self) -> Result<(), RuntimeError> {
        self.container.start().map_err(|error| RuntimeError::Create(text(&error)))
    }
}

/// libcontainer makes links and nodes below `/dev` by paths of this machine, so a link there would lead out.
fn refuse_linked_directories(root: &InRoot) -> Result<(), RuntimeError> {
    match ["dev", "proc", "sys"].into_iter().find(|name| root.is_no_directory(name)) {
        Some(name) => Err(RuntimeError::Request(format!("the image's /{name} is not a directory"))),
        None => Ok(()),
    }
}

/// A directory to start in is made where it is missing, as docker does. Where it cannot be made, the start itself says why.
fn make_cwd(root: &InRoot, cwd: &str) -> Result<(), RuntimeError> {
    match root.make_directory(Path::new(cwd)) {
        Ok(()) => Ok(()),
        Err(error)
            if matches!(error.kind(), io::ErrorKind::NotADirectory | io::ErrorKind::ReadOnlyFilesystem) =>
        {
            Ok(())
        }
        Err(error) => Err(RuntimeError::file("cannot make the container's directory", cwd, error)),
    }
}

/// Where the control groups of a container are.
pub(crate) fn cgroup_path(id: &str) -> String {
    format!("{}/cudock-{id}", crate::rootless::cgroup_parent())
}

/// The filter of system calls that was asked for.
pub(crate) fn filter(security: &Security) -> Result<Option<Filter>, RuntimeError> {
    let capabilities: Result<Vec<Capability>, _> =
        security.capabilities.iter().map(|name| Capability::from_name(name)).collect();
    let capabilities = capabilities?;
    match &security.seccomp {
        Seccomp::Unconfined => Ok(None),
        Seccomp::Default => Ok(Some(Filter::for_capabilities(&capabilities)?)),
        Seccomp::Profile(text) => {
            let profile = Profile::from_json(text.as_bytes())?;
            Ok(Some(Filter::new(&profile, &FilterContext::here(&capabilities))?))
        }
    }
}

/// Whether a filter of system calls can be made of what was asked for, and installed.
pub fn check_seccomp(security: &Security) -> Result<(), RuntimeError> {
    if !security.no_new_privileges && security.seccomp != Seccomp::Unconfined {
        // The kernel takes a filter only from who can gain no rights, or has them all; neither is so just before the
        // program starts.
        let text = "without no-new-privileges there is no filter of system calls: \
                    say --security-opt seccomp=unconfined as well";
        return Err(RuntimeError::Request(text.to_owned()));
    }
    match filter(security) {
        Ok(_) => Ok(()),
        Err(error) => Err(RuntimeError::Request(text(&error))),
    }
}

/// Control groups of version 2 have no list of devices: a program in the kernel decides.
fn confine_devices(cgroup: &Cgroup, facts: &Facts<'_>) -> Result<(), RuntimeError> {
    let Some(directory) = cgroup.unified() else { return Ok(()) };
    if facts.user_namespace {
        // Nodes cannot be made there, and only those of the container are bound into it.
        return Ok(());
    }
    let mut rules = standard_rules();
    for device in all_devices(facts) {
        let kind = if device.block { DeviceKind::Block } else { DeviceKind::Char };
        rules.push(DeviceRule::allow(kind, device.major, device.minor, access(&device.access)));
    }
    Ok(attach(directory, &Program::new(&rules)?)?)
}

/// Whether a limit on swap can be set; says so where one was asked for and cannot.
fn counts_swap(limits: &crate::plan::Limits) -> bool {
    let counts = crate::cgroup::counts_swap();
    if limits.memory_swap.is_some() && !counts {
        eprintln!("warning: --memory-swap has no effect: this kernel does not count swap");
    }
    counts
}

/// What a device may be used for, by the letters docker has for it.
fn access(letters: &str) -> Access {
    let known = [('r', Access::READ), ('w', Access::WRITE), ('m', Access::MAKE)];
    let given = known.into_iter().filter(|(letter, _)| letters.contains(*letter)).map(|(_, access)| access);
    given.fold(Access::from_bits(0), std::ops::BitOr::bitor)
}

/// Keeps what the first process is started with for those who join it.
fn remember(
    dir: &ContainerDir,
    private: &Private,
    identity: &Identity,
    edits: Option<&cudock_inject::Edits>,
    environment: &[(String, String)],
) -> Result<(), RuntimeError> {
    let gpu_groups: Vec<u32> = edits.iter().flat_map(|edits| edits.additional_gids.iter().copied()).collect();
    let mut groups = identity.groups.clone();
    groups.extend(&gpu_groups);
    groups.sort_unstable();
    groups.dedup();
    let started = Started {
        environment: environment.to_vec(),
        given: private.environment.clone(),
        uid: identity.uid,
        gid: identity.gid,
        groups,
        gpu_groups,
        home: identity.home.clone(),
    };
    started.write(dir)
}

/// How deep below a directory of devices nodes are looked for.
const DEVICE_LEVELS: usize = 8;

fn asked_devices(plan: &Plan) -> Result<Vec<Device>, RuntimeError> {
    let mut found = Vec::new();
    for asked in &plan.security.devices {
        let renamed = asked.host != asked.container;
        if renamed && crate::rootless::in_user_namespace() {
            return Err(RuntimeError::Request(format!(
                "--device {}: without root, a device keeps its path in the container",
                asked.host.display()
            )));
        }
        add_devices(asked, &mut found, DEVICE_LEVELS)?;
    }
    Ok(found)
}

/// Adds a node, or those in a directory, as docker does for `/dev/dri`.
fn add_devices(asked: &DevicePlan, found: &mut Vec<Device>, levels: usize) -> Result<(), RuntimeError> {
    let path = &asked.host;
    let about = fs::metadata(path).map_err(|error| {
        RuntimeError::Request(format!("--device: cannot read {}: {error}", path.display()))
    })?;
    let kind = about.file_type();
    if kind.is_dir() && levels > 0 {
        let mut entries: Vec<_> = fs::read_dir(path).on("cannot read", path)?.flatten().collect();
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let (host, container) = (entry.path(), asked.container.join(entry.file_name()));
            let node = entry
                .file_type()
                .is_ok_and(|kind| kind.is_dir() || kind.is_char_device() || kind.is_block_device());
            if node {
                let below = DevicePlan { host, container, access: asked.access.clone() };
                add_devices(&below, found, levels - 1)?;
            }
        }
        return Ok(());
    }
    if !kind.is_char_device() && !kind.is_block_device() {
        return Err(RuntimeError::Request(format!("{} is not a device node", path.display())));
    }
    let (major, minor) = (rustix::fs::major(about.rdev()), rustix::fs::minor(about.rdev()));
    found.push(Device {
        path: asked.container.display().to_string(),
        block: kind.is_block_device(),
        major,
        minor,
        mode: about.mode(),
        gid: about.gid(),
        access: asked.access.clone(),
    });
    Ok(())
}

fn processors() -> u32 {
    std::thread::available_parallelism().ok().and_then(|count| u32::try_from(count.get()).ok()).unwrap_or(1)
}

/// Empties a directory.
fn clear(directory: &Path) -> Result<(), RuntimeError> {
    for entry in fs::read_dir(directory).on("cannot read", directory)?.flatten() {
        crate::home::remove_tree(&entry.path())?;
    }
    Ok(())
}

/// An error with all that is behind it.
pub(crate) fn text(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        source = error.source();
    }
    text
}

/// What people can do about the errors that depend on their machine.
pub(crate) fn explained(text: &str) -> RuntimeError {
    let error = understood(text);
    let RuntimeError::Create(text) = &error else { return error };
    let text = &last_words::first().unwrap_or_else(|| text.clone());
    if text.contains("cgroup") && crate::rootless::in_user_namespace() {
        return RuntimeError::Host {
            what: format!("this machine does not let this user make control groups: {text}"),
            hint: "run as root, or give the user a group of its own: on systemd with version 2 only, \
                   `systemd-run --user --scope -p Delegate=yes cudock …`; else CUDOCK_CGROUP=/a/group/it/owns"
                .to_owned(),
        };
    }
    RuntimeError::Create(text.clone())
}
