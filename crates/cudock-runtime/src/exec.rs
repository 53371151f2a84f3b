//! A further process in a container that runs.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::PathBuf;

use libcontainer::container::builder::ContainerBuilder;
use libcontainer::syscall::syscall::SyscallType;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::error::{OnFile, OnSystem, RuntimeError};
use crate::executor::Become;
use crate::home::{ContainerDir, write_json};
use crate::in_root::InRoot;
use crate::last_words;
use crate::launch::{explained, filter, text};
use crate::plan::{Plan, Private};
use crate::pump::{Ends, Signals, stay};
use crate::started::Started;
use crate::status::State;
use crate::terminal::{ConsoleSocket, own_size};
use crate::user::identify;

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

/// Runs a process in a container, connected to our own input and outputs. What it ended with.
///
/// As [`crate::watch`], this must run in a process with one thread.
pub fn exec(dir: &ContainerDir, plan: &Plan, request: &ExecRequest) -> Result<i32, RuntimeError> {
    let pid = running(dir, plan)?;
    join(dir, plan, request, pid, None)
}

/// Runs a function of ours inside a container, as a program of it would run.
pub fn inside(dir: &ContainerDir, plan: &Plan, function: fn() -> i32) -> Result<i32, RuntimeError> {
    let pid = running(dir, plan)?;
    let request = ExecRequest { args: vec!["cudock".to_owned()], ..ExecRequest::default() };
    join(dir, plan, &request, pid, Some(function))
}

/// The first process of a container that runs. From here on this process sees what its watcher sees.
fn running(dir: &ContainerDir, plan: &Plan) -> Result<i32, RuntimeError> {
    let status = dir.current(plan)?;
    if let Some(watcher) = status.watcher.filter(|_| status.state == State::Running) {
        crate::visit::stay_with(watcher)?;
    }
    status.pid.filter(|_| status.state == State::Running).ok_or_else(|| RuntimeError::State {
        name: plan.name.clone(),
        is: status.state.word().to_owned(),
        needed: "running",
    })
}

fn join(
    dir: &ContainerDir,
    plan: &Plan,
    request: &ExecRequest,
    pid: i32,
    instead: Option<fn() -> i32>,
) -> Result<i32, RuntimeError> {
    let root = PathBuf::from(format!("/proc/{pid}/root"));
    let started = Started::read(dir)?;
    let identity = match (&request.user, &started) {
        (None, Some(started)) => started.identity(),
        (user, _) => {
            let opened = InRoot::open(&root).on("cannot open the container's root", &root)?;
            let user = user.as_ref().unwrap_or(&plan.process.user);
            let mut identity = identify(&opened, user, &plan.process.groups)?;
            identity.groups.extend(started.iter().flat_map(|started| &started.gpu_groups));
            identity
        }
    };
    let started =
        started.map_or_else(|| plan.environment(&Private::default()), |started| started.environment);
    let mut environment = environment(plan, &started, request);
    environment.entry("HOME".to_owned()).or_insert_with(|| identity.home.clone());
    let executor = Become {
        environment: environment.into_iter().collect(),
        cwd: request.cwd.clone().unwrap_or_else(|| plan.process.cwd.clone()),
        filter: filter(&plan.security)?,
        size: request.tty.then(own_size).flatten(),
        late: false,
        instead,
        init: false,
    };
    let capabilities = &plan.security.capabilities;
    let process = json!({
        "terminal": request.tty,
        "user": {"uid": identity.uid, "gid": identity.gid, "additionalGids": identity.groups},
        "args": request.args,
        "env": [format!("HOME={}", identity.home)],
        "cwd": "/",
        "capabilities": {
            "bounding": capabilities, "effective": capabilities, "permitted": capabilities,
            "inheritable": [], "ambient": [],
        },
        "noNewPrivileges": plan.security.no_new_privileges,
    });
    let described = dir.run().join(format!("exec-{}.json", std::process::id()));
    write_json(&described, &process)?;
    let mut signals = Signals::hold()?;
    let console = request.tty.then(|| ConsoleSocket::bind(&dir.run())).transpose()?;
    let mut builder = ContainerBuilder::new(plan.id.clone(), SyscallType::default())
        .with_executor(executor)
        .with_root_path(dir.oci())
        .map_err(|error| RuntimeError::Create(text(&error)))?
        .with_console_socket(console.as_ref().map(ConsoleSocket::path));
    if console.is_none() {
        let stdin = if request.stdin {
            rustix::io::dup(io::stdin()).when("cannot pass standard input on")?
        } else {
            fs::File::open("/dev/null").when("cannot open /dev/null")?.into()
        };
        builder = builder
            .with_stdin(stdin)
            .with_stdout(rustix::io::dup(io::stdout()).when("cannot pass standard output on")?)
            .with_stderr(rustix::io::dup(io::stderr()).when("cannot pass standard error on")?);
    }
    last_words::listen();
    let outcome = builder
        .as_tenant()
        .with_detach(console.is_some())
        .with_process(Some(&described))
        .build()
        .map_err(|error| explained(&text(&error)));
    let _ = fs::remove_file(&described);
    let began = outcome?.as_raw();
    let ends = match console {
        Some(console) => Ends::of_terminal(console.receive()?, true, request.stdin),
        None => Ends::default(),
    };
    Ok(stay(began, ends, &mut signals, None)?.code)
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
