//! A further process in a container that runs.

use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::enter::Entry;
use crate::error::{OnFile, OnSystem, RuntimeError};
use crate::home::ContainerDir;
use crate::in_root::InRoot;
use crate::join::Joining;
use crate::plan::{Plan, Private, Security};
use crate::pump::{self, Ends, Signals, stay};
use crate::reexec::{self, Sealed};
use crate::started::Started;
use crate::status::{State, Status};
use crate::user::identify;
use crate::{limits, terminal};

/// What is to run beside the container's own process.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct ExecRequest {
    /// The program and its arguments.
    pub args: Vec<String>,
    /// Variables over the container's.
    pub environment: Vec<(String, String)>,
    /// As whom; as the container's own process without it.
    pub user: Option<String>,
    /// Where; where the container's own process began without it.
    pub cwd: Option<String>,
    /// Whether it gets a terminal.
    pub tty: bool,
    /// Whether it reads our standard input.
    pub stdin: bool,
}

/// What a joining process is told. It is handed over in memory: its command line and environment can be read inside the
/// container for a moment.
#[derive(Debug, Serialize, Deserialize)]
pub struct Handover {
    /// The container's directory.
    pub container: PathBuf,
    /// What is to run.
    pub request: ExecRequest,
}

/// The command that joins a container: this program started over, with nothing about this machine on its command line
/// or in its environment.
pub fn joiner(dir: &ContainerDir, request: &ExecRequest) -> Result<Sealed, RuntimeError> {
    let handover = Handover { container: dir.path().to_owned(), request: request.clone() };
    Ok(reexec::sealed_command(&["join".into()], &handover)?.anonymous())
}

/// Runs a process in a container, connected to our own input and outputs. What it ended with.
///
/// As [`crate::watch`], this must run in a process with one thread.
pub fn exec(dir: &ContainerDir, plan: &Plan, request: &ExecRequest) -> Result<i32, RuntimeError> {
    let status = running(dir, plan)?;
    join(dir, plan, request, &status)
}

/// The status of a container that runs.
fn running(dir: &ContainerDir, plan: &Plan) -> Result<Status, RuntimeError> {
    let status = dir.current(plan)?;
    if status.state == State::Running && status.pid.is_some() {
        return Ok(status);
    }
    Err(RuntimeError::State {
        name: plan.name.clone(),
        is: status.state.word().to_owned(),
        needed: "running",
    })
}

fn join(
    dir: &ContainerDir,
    plan: &Plan,
    request: &ExecRequest,
    status: &Status,
) -> Result<i32, RuntimeError> {
    let pid = status.pid.unwrap_or_default();
    let root = PathBuf::from(format!("/proc/{pid}/root"));
    let opened = InRoot::open(&root).on("cannot open the container's root", &root)?;
    let started = Started::read(dir)?;
    let identity = match (&request.user, &started) {
        (None, Some(started)) => started.identity(),
        (user, _) => {
            let user = user.as_ref().unwrap_or(&plan.process.user);
            let mut identity = identify(&opened, user, &plan.process.groups)?;
            identity.groups.extend(started.iter().flat_map(|started| &started.gpu_groups));
            identity
        }
    };
    let started =
        started.map_or_else(|| plan.environment(&Private::default()), |started| started.environment);
    let mut environment = environment(plan, &started, request);
    if environment.get("HOME").is_none_or(String::is_empty) {
        environment.insert("HOME".to_owned(), identity.home.clone());
    }
    let (streams, ends) = if request.tty {
        let (ours, theirs) = terminal::open_in(&opened)?;
        // Before the program can ask for it.
        terminal::copy_size(ours.as_fd());
        let copy = || rustix::io::fcntl_dupfd_cloexec(&theirs, 3).when("cannot make a terminal");
        ([copy()?, copy()?, theirs], Ends::of_terminal(ours, true, request.stdin))
    } else {
        pump::pipes(request.stdin, true)?
    };
    drop(opened);
    pump::give_to(&streams, &identity);
    let entry = Entry {
        args: request.args.clone(),
        environment: environment.into_iter().collect(),
        cwd: request.cwd.clone().unwrap_or_else(|| plan.process.cwd.clone()),
        identity,
        security: Security { devices: Vec::new(), ..plan.security.clone() },
        rlimits: limits::rlimits(&plan.limits)?,
        tty: request.tty,
    };
    let joining = Joining { pid, began: status.pid_began, entry, streams };
    // Not before: a container that holds the joining process up must not keep anyone from interrupting us.
    let began = joining.start()?;
    let mut signals = Signals::hold()?;
    Ok(stay(began, ends, &mut signals, None, &mut || {})?.code)
}

/// The environment the container was started with, and what was asked for over it.
fn environment(plan: &Plan, started: &[(String, String)], request: &ExecRequest) -> BTreeMap<String, String> {
    let mut whole: BTreeMap<String, String> = started.iter().cloned().collect();
    let chosen = |name: &str| {
        plan.process.environment.iter().any(|(known, _)| known == name)
            || plan.process.given.iter().any(|known| known == name)
    };
    // A home that nobody chose is that of the container's user, not of another one.
    if request.user.is_some() && !chosen("HOME") {
        whole.remove("HOME");
    }
    if request.tty {
        whole.entry("TERM".to_owned()).or_insert_with(|| "xterm".to_owned());
    }
    whole.extend(request.environment.iter().cloned());
    whole
}
