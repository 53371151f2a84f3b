//! Runs another process in a running container.

use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::container::config::{ContainerConfig, Private, Security};
use crate::container::home::ContainerDir;
use crate::container::started::Started;
use crate::container::status::ContainerState;
use crate::error::{OnError, RuntimeError};
use crate::files::in_root::InRoot;
use crate::namespace::enter::ExecSpec;
use crate::namespace::join::Joining;
use crate::namespace::reexec::{self, SealedCommand};
use crate::start::limits;
use crate::start::user::identify;
use crate::supervise::streams::{self, Signals, StreamEnds, supervise_process};
use crate::supervise::terminal;

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct ExecRequest {
    pub args: Vec<String>,
    /// Variables that override the container's.
    pub environment: Vec<(String, String)>,
    /// The user; that of the container's own process by default.
    pub user: Option<String>,
    /// The working directory; the container's by default.
    pub cwd: Option<String>,
    pub tty: bool,
    /// Whether it reads our standard input.
    pub stdin: bool,
}

/// The input of a joining process. It is passed in memory: the command line and environment of the process are briefly
/// readable inside the container.
#[derive(Debug, Serialize, Deserialize)]
pub struct ExecHandover {
    pub container: PathBuf,
    pub request: ExecRequest,
}

/// The command that joins a container: this program, with nothing about this machine on its command line or in its
/// environment.
pub fn join_command(dir: &ContainerDir, request: &ExecRequest) -> Result<SealedCommand, RuntimeError> {
    let handover = ExecHandover { container: dir.path().to_owned(), request: request.clone() };
    Ok(reexec::sealed_command(&["join".into()], &handover)?.without_environment())
}

/// Runs a process in a container, attached to our own input and outputs, and returns its exit code.
///
/// This must run in a process with one thread.
pub fn exec(
    dir: &ContainerDir,
    config: &ContainerConfig,
    request: &ExecRequest,
) -> Result<i32, RuntimeError> {
    let status = dir.current(config)?;
    let running = status.pid.filter(|_| status.state == ContainerState::Running);
    let pid = running.ok_or_else(|| RuntimeError::state(&config.name, &status.state, "running"))?;
    let root = PathBuf::from(format!("/proc/{pid}/root"));
    let opened = InRoot::open(&root).on("cannot open the container's root", &root)?;
    let started = Started::read(dir)?;
    let identity = match (&request.user, &started) {
        (None, Some(started)) => started.identity.clone(),
        (user, _) => {
            let user = user.as_ref().unwrap_or(&config.process.user);
            let mut identity = identify(&opened, user, &config.process.groups)?;
            identity.groups.extend(started.iter().flat_map(|started| &started.gpu_groups));
            identity
        }
    };
    let started =
        started.map_or_else(|| config.environment(&Private::default()), |started| started.environment);
    let mut environment = environment(config, &started, request);
    if environment.get("HOME").is_none_or(String::is_empty) {
        environment.insert("HOME".to_owned(), identity.home.clone());
    }
    let (streams, ends) = if request.tty {
        let (ours, theirs) = terminal::open_in(&opened)?;
        // Before the program can query it.
        terminal::copy_size(ours.as_fd());
        let copy = || rustix::io::fcntl_dupfd_cloexec(&theirs, 3).when("cannot open a terminal");
        ([copy()?, copy()?, theirs], StreamEnds::of_terminal(ours, true, request.stdin))
    } else {
        streams::pipes(request.stdin, true)?
    };
    drop(opened);
    streams::give_to(&streams, &identity);
    let spec = ExecSpec {
        args: request.args.clone(),
        environment: environment.into_iter().collect(),
        cwd: request.cwd.clone().unwrap_or_else(|| config.process.cwd.clone()),
        identity,
        security: Security { devices: Vec::new(), ..config.security.clone() },
        rlimits: limits::rlimits(&config.limits)?,
        tty: request.tty,
    };
    let joining = Joining { pid, began: status.pid_began, spec, streams };
    let started = joining.start()?;
    // Not blocked before: a container that delays the start must not keep the user from interrupting it.
    let mut signals = Signals::block()?;
    Ok(supervise_process(started, ends, &mut signals, None, &mut || {})?.code)
}

/// The environment of the container, overridden by the request's.
fn environment(
    config: &ContainerConfig,
    started: &[(String, String)],
    request: &ExecRequest,
) -> BTreeMap<String, String> {
    let mut all: BTreeMap<String, String> = started.iter().cloned().collect();
    let chosen = |name: &str| {
        config.process.environment.iter().any(|(known, _)| known == name)
            || config.process.given.iter().any(|known| known == name)
    };
    // A home directory that was not set explicitly is that of the container's user.
    if request.user.is_some() && !chosen("HOME") {
        all.remove("HOME");
    }
    if request.tty {
        all.entry("TERM".to_owned()).or_insert_with(|| "xterm".to_owned());
    }
    all.extend(request.environment.iter().cloned());
    all
}
