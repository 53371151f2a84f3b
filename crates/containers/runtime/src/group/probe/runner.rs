//! Runs one probe of one run of a container, one attempt at a time.

use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::mpsc::Sender;
use std::thread;
use std::time::Duration;

use cudock_group::Probe;
use cudock_group::probe::{ProbeAttempt, ProbeStep, Prober, Purpose};
use cudock_group::restart::Moment;
use cudock_group::{HttpGet, ProbeAction};

use super::http;
use crate::container::exec::{self, ExecRequest};
use crate::container::home::ContainerDir;
use crate::error::RuntimeError;
use crate::group::message::Message;

#[derive(Debug, Clone)]
pub(in crate::group) struct ProbeContext {
    pub(in crate::group) name: String,
    pub(in crate::group) run: u64,
    pub(in crate::group) dir: ContainerDir,
    /// The network namespace of the container; `None` for the host's.
    pub(in crate::group) network: Option<PathBuf>,
    pub(in crate::group) messages: Sender<Message>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::group) enum ProbeEvent {
    /// Call again at this time.
    Wait(Moment),
    /// The container must be killed, for this reason.
    Unhealthy(String),
    Ready(bool),
}

#[derive(Debug)]
pub(in crate::group) struct ProbeRunner {
    purpose: Purpose,
    action: ProbeAction,
    timeout: Duration,
    prober: Prober,
    pending: Option<PendingAttempt>,
    failure: String,
}

#[derive(Debug)]
enum PendingAttempt {
    /// A command in the container, which is killed at its deadline.
    Command { child: Child, attempt: ProbeAttempt, deadline: Moment, killed: bool },
    /// A thread that waits for a response, with a deadline of its own.
    Request { attempt: ProbeAttempt },
}

impl ProbeRunner {
    pub(in crate::group) fn new(purpose: Purpose, probe: &Probe, started: Moment) -> Self {
        Self {
            purpose,
            action: probe.action.clone(),
            timeout: probe.timing.timeout,
            prober: Prober::new(purpose, probe.timing, started),
            pending: None,
            failure: "timed out waiting for a response".to_owned(),
        }
    }

    pub(in crate::group) fn is_readiness(&self) -> bool {
        self.purpose == Purpose::Readiness
    }

    pub(in crate::group) fn failure(&self) -> &str {
        &self.failure
    }

    /// Does what is due. Call it again until it returns [`ProbeEvent::Wait`].
    pub(in crate::group) fn poll(&mut self, context: &ProbeContext, index: usize, now: Moment) -> ProbeEvent {
        self.reap(now);
        loop {
            match self.prober.step(now) {
                ProbeStep::Wait(until) => return ProbeEvent::Wait(until),
                ProbeStep::Ready(ready) => return ProbeEvent::Ready(ready),
                ProbeStep::Restart => return ProbeEvent::Unhealthy(self.failure.clone()),
                ProbeStep::Run { attempt, deadline } => {
                    if let Err(reason) = self.start(context, index, attempt, deadline) {
                        self.finished(attempt, Err(reason), now);
                    }
                }
            }
        }
    }

    pub(in crate::group) fn finished(
        &mut self,
        attempt: ProbeAttempt,
        outcome: Result<(), String>,
        now: Moment,
    ) {
        if matches!(self.pending, Some(PendingAttempt::Request { attempt: pending }) if pending == attempt) {
            self.pending = None;
        }
        let healthy = outcome.is_ok();
        if let Err(reason) = outcome {
            self.failure = reason;
        }
        self.prober.finished(attempt, healthy, now);
    }

    /// Takes the exit code of a command, and kills one at its deadline.
    fn reap(&mut self, now: Moment) {
        let Some(PendingAttempt::Command { child, attempt, deadline, killed }) = &mut self.pending else {
            return;
        };
        let (attempt, late) = (*attempt, now >= *deadline);
        match child.try_wait() {
            Ok(Some(_)) if *killed => self.pending = None,
            Ok(Some(status)) => {
                self.pending = None;
                let outcome =
                    if status.success() { Ok(()) } else { Err(format!("the command failed: {status}")) };
                self.finished(attempt, outcome, now);
            }
            _ if late && !*killed => {
                let _ = child.kill();
                *killed = true;
                "timed out waiting for a response".clone_into(&mut self.failure);
            }
            _ => {}
        }
    }

    fn start(
        &mut self,
        context: &ProbeContext,
        index: usize,
        attempt: ProbeAttempt,
        deadline: Moment,
    ) -> Result<(), String> {
        if self.pending.is_some() {
            return Err("the last attempt is still running".to_owned());
        }
        self.pending = Some(match &self.action {
            ProbeAction::Exec(command) => {
                let child =
                    command_inside(context, command).map_err(|error| crate::error::error_text(&error))?;
                PendingAttempt::Command { child, attempt, deadline, killed: false }
            }
            ProbeAction::HttpGet(get) => {
                request_inside(context, get, index, attempt, self.timeout)
                    .map_err(|error| error.to_string())?;
                PendingAttempt::Request { attempt }
            }
        });
        Ok(())
    }

    /// Ends a pending attempt, after the container has exited.
    pub(in crate::group) fn end(&mut self) {
        if let Some(PendingAttempt::Command { child, .. }) = &mut self.pending {
            let _ = child.kill();
            let _ = child.wait();
        }
        self.pending = None;
    }
}

fn command_inside(context: &ProbeContext, command: &[String]) -> Result<Child, RuntimeError> {
    let request = ExecRequest { args: command.to_vec(), ..ExecRequest::default() };
    exec::join_command(&context.dir, &request)?.own_process_group().spawn(
        Stdio::null(),
        Stdio::null(),
        Stdio::null(),
    )
}

/// The stack of a thread that sends an HTTP probe. TLS in a debug build needs the most.
pub(in crate::group) const STACK_SIZE: usize = 512 << 10;

fn request_inside(
    context: &ProbeContext,
    get: &HttpGet,
    probe: usize,
    attempt: ProbeAttempt,
    limit: Duration,
) -> std::io::Result<()> {
    let (context, get) = (context.clone(), get.clone());
    let thread = thread::Builder::new().name(format!("probe of {}", context.name)).stack_size(STACK_SIZE);
    thread.spawn(move || {
        let outcome = http::probe(&get, context.network.as_deref(), limit);
        let ProbeContext { name, run, messages, .. } = context;
        // The receiver is gone once the group has ended.
        let _ = messages.send(Message::Probed { name, run, probe, attempt, outcome });
    })?;
    Ok(())
}
