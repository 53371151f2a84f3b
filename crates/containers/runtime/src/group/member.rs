//! One container of a group: its watcher, its probes, and how it is stopped.

use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::process::{Child, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use cudock_group::Container;
use cudock_group::probe::Purpose;
use cudock_group::restart::Moment;
use nix::sys::signal::Signal;
use rustix::io::{FdFlags, fcntl_setfd};

use super::create::private;
use super::log_mux::{LogMux, spawn};
use super::message::Message;
use super::probe::runner::{ProbeContext, ProbeEvent, ProbeRunner};
use crate::container::config::{ContainerConfig, Private};
use crate::container::home::ContainerDir;
use crate::container::log::Stream;
use crate::container::recover::MONITOR;
use crate::error::{OnError, RuntimeError, error_text};
use crate::namespace::reexec;
use crate::supervise::signal::{exit_status_code, stop_signal};

/// How long a watcher may run after its container was killed.
const KILL_GRACE: Duration = Duration::from_secs(5);

/// How long output may arrive after a watcher has exited.
const OUTPUT_GRACE: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Member {
    pub(super) container: Container,
    pub(super) init: bool,
    pub(super) config: ContainerConfig,
    dir: ContainerDir,
    private: Private,
    /// The current run; `None` between runs.
    pub(super) run: Option<Run>,
    runs: u64,
    pub(super) exit_code: Option<i32>,
    /// Why it is not running or not ready.
    pub(super) reason: Option<String>,
}

#[derive(Debug)]
pub(super) struct Run {
    number: u64,
    watcher: Child,
    reply: Option<String>,
    ended: Option<ExitStatus>,
    ending: Option<Ending>,
    probes: Vec<ProbeRunner>,
    context: ProbeContext,
    outputs: Vec<JoinHandle<()>>,
    ready: bool,
}

#[derive(Debug)]
struct Ending {
    /// When it is killed.
    deadline: Moment,
    signaled: bool,
    killed: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum RunEnd {
    Exited(i32),
    /// It did not start, for this reason.
    FailedToStart(String),
}

/// Where the output and the events of a member go.
#[derive(Debug)]
pub(super) struct Channels<'a> {
    pub(super) messages: &'a Sender<Message>,
    pub(super) mux: &'a Arc<LogMux>,
    pub(super) network: Option<PathBuf>,
}

impl Member {
    pub(super) fn new(container: Container, init: bool, dir: ContainerDir, config: ContainerConfig) -> Self {
        let private = private(&container);
        Self { container, init, config, dir, private, run: None, runs: 0, exit_code: None, reason: None }
    }

    /// Starts a watcher, which is killed when this process exits. Must be called from the main thread.
    pub(super) fn start(&mut self, channels: &Channels<'_>) -> Result<(), RuntimeError> {
        self.runs += 1;
        let number = self.runs;
        let (from_watcher, to_us) = io::pipe().when("cannot create a pipe")?;
        let to_us = OwnedFd::from(to_us);
        fcntl_setfd(&to_us, FdFlags::empty()).when("cannot pass on a pipe")?;
        let mut args = vec![MONITOR.into(), self.dir.path().as_os_str().to_owned(), "--tied".into()];
        args.extend(["--ready".into(), to_us.as_raw_fd().to_string().into()]);
        let attached = channels.mux.is_attached();
        if attached {
            args.push("--attached".into());
        }
        let output = || if attached { Stdio::piped() } else { Stdio::null() };
        let sealed = reexec::sealed_command(&args, &self.private)?;
        let mut watcher = sealed.own_process_group().spawn(Stdio::null(), output(), output())?;
        drop(to_us);
        let name = self.container.name.clone();
        let out = watcher.stdout.take().map(|out| channels.mux.follow(&name, out, Stream::Out));
        let err = watcher.stderr.take().map(|err| channels.mux.follow(&name, err, Stream::Err));
        let outputs: Vec<_> = out.into_iter().chain(err).collect::<Result<_, _>>()?;
        await_reply(from_watcher, name.clone(), number, channels.messages.clone())?;
        let context = ProbeContext {
            name,
            run: number,
            dir: self.dir.clone(),
            network: channels.network.clone(),
            messages: channels.messages.clone(),
        };
        self.run = Some(Run {
            number,
            watcher,
            reply: None,
            ended: None,
            ending: None,
            probes: Vec::new(),
            context,
            outputs,
            ready: false,
        });
        Ok(())
    }

    /// Takes the watcher's report of the start. Returns whether the container runs.
    pub(super) fn began(&mut self, number: u64, reply: String, now: Moment) -> bool {
        let Some(run) = self.run.as_mut().filter(|run| run.number == number) else { return false };
        let runs = reply == "running";
        run.reply = Some(reply);
        if runs {
            let probes = [
                (Purpose::Liveness, &self.container.liveness),
                (Purpose::Readiness, &self.container.readiness),
            ];
            let probes = probes
                .into_iter()
                .filter_map(|(purpose, probe)| Some(ProbeRunner::new(purpose, probe.as_ref()?, now)));
            run.probes = probes.collect();
            run.ready = self.container.readiness.is_none();
            self.reason = None;
        }
        runs
    }

    /// Whether it runs and its readiness probe, if it has one, succeeds.
    pub(super) fn is_ready(&self) -> bool {
        self.run.as_ref().is_some_and(|run| run.ready && run.ended.is_none() && run.ending.is_none())
    }

    /// How its run ended, if it has ended. Clears the run.
    pub(super) fn take_end(&mut self) -> Option<RunEnd> {
        let run = self.run.as_mut()?;
        if run.ended.is_none() {
            run.ended = run.watcher.try_wait().ok().flatten();
        }
        // The reply comes from another thread and may be later, but it always comes, since the pipe closes.
        let (status, reply) = (run.ended?, run.reply.clone()?);
        let mut run = self.run.take()?;
        run.probes.iter_mut().for_each(ProbeRunner::end);
        drain_outputs(&run.outputs);
        let code = exit_status_code(status);
        if reply == "running" {
            self.exit_code = Some(code);
            return Some(RunEnd::Exited(code));
        }
        let reason = match reexec::parse_reply(&reply) {
            Err(error) if !reply.is_empty() => error_text(&error),
            _ => format!("the watcher failed: {status}"),
        };
        Some(RunEnd::FailedToStart(reason))
    }

    pub(super) fn ran_out_of_memory(&self) -> bool {
        self.dir.status().is_ok_and(|status| status.out_of_memory)
    }

    /// Begins to stop its run, which is killed after `grace`.
    pub(super) fn stop(&mut self, grace: Duration, now: Moment) {
        if let Some(run) = &mut self.run {
            let deadline = now.saturating_add(grace);
            let ending = run.ending.get_or_insert(Ending { deadline, signaled: false, killed: false });
            ending.deadline = ending.deadline.min(deadline);
        }
    }

    pub(super) fn grace(&self) -> Duration {
        Duration::from_secs(self.config.stop_seconds.into())
    }

    /// Does what is due to stop a run, and returns when to poll again.
    pub(super) fn poll_stop(&mut self, now: Moment) -> Option<Moment> {
        let run = self.run.as_mut()?;
        let begun = run.reply.is_some();
        let ending = run.ending.as_mut()?;
        // A container that is being created has no process to signal yet.
        if begun && !ending.signaled && now < ending.deadline {
            ending.signaled = true;
            let _ = self.dir.signal(&self.config, stop_signal(&self.config.stop_signal));
        }
        if now < ending.deadline {
            return Some(ending.deadline);
        }
        if !ending.killed {
            ending.killed = true;
            if begun {
                let _ = self.dir.signal(&self.config, Signal::SIGKILL);
            }
        }
        let last = ending.deadline.saturating_add(KILL_GRACE);
        if now < last {
            return Some(last);
        }
        let _ = run.watcher.kill();
        None
    }

    /// Runs due probes. Returns their events and when to poll again.
    pub(super) fn poll_probes(&mut self, now: Moment) -> (Vec<ProbeEvent>, Option<Moment>) {
        let mut events = Vec::new();
        let mut again: Option<Moment> = None;
        let Some(run) = self.run.as_mut().filter(|run| run.ended.is_none() && run.ending.is_none()) else {
            return (events, again);
        };
        for (index, runner) in run.probes.iter_mut().enumerate() {
            loop {
                match runner.poll(&run.context, index, now) {
                    ProbeEvent::Wait(until) => {
                        again = Some(again.map_or(until, |known| known.min(until)));
                        break;
                    }
                    ProbeEvent::Ready(ready) => {
                        run.ready = ready;
                        self.reason = (!ready).then(|| format!("not ready: {}", runner.failure()));
                        events.push(ProbeEvent::Ready(ready));
                    }
                    ProbeEvent::Unhealthy(reason) => {
                        self.reason = Some(format!("not alive: {reason}"));
                        events.push(ProbeEvent::Unhealthy(reason));
                    }
                }
            }
        }
        (events, again)
    }

    pub(super) fn unready_reason(&self) -> Option<String> {
        let run = self.run.as_ref().filter(|run| !run.ready && run.ending.is_none())?;
        let runner = run.probes.iter().find(|runner| runner.is_readiness())?;
        Some(format!("not ready: {}", runner.failure()))
    }

    pub(super) fn probe(&mut self, number: u64, probe: usize) -> Option<&mut ProbeRunner> {
        self.run.as_mut().filter(|run| run.number == number)?.probes.get_mut(probe)
    }
}

/// Waits for the last output of a container, so that it is printed before its end is announced.
fn drain_outputs(outputs: &[JoinHandle<()>]) {
    let until = Instant::now() + OUTPUT_GRACE;
    while outputs.iter().any(|output| !output.is_finished()) && Instant::now() < until {
        thread::sleep(Duration::from_millis(1));
    }
}

/// Waits for a watcher's report of the start in a thread.
fn await_reply(
    mut from: io::PipeReader,
    name: String,
    run: u64,
    messages: Sender<Message>,
) -> Result<(), RuntimeError> {
    spawn(format!("start of {name}"), move || {
        let mut reply = String::new();
        // If it cannot be read, the watcher exited without a report.
        let _ = from.read_to_string(&mut reply);
        let _ = messages.send(Message::Began { name, run, reply });
    })
    .map(drop)
}
