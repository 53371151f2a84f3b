//! One probe of one run of a container: asked when its time comes, and never twice at once.

use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::mpsc::Sender;
use std::thread;
use std::time::Duration;

use cudock_group::Probe;
use cudock_group::probe::{Prober, Purpose, Question, Step};
use cudock_group::restart::Moment;
use cudock_group::{HttpGet, ProbeAction};

use super::http;
use super::message::Message;
use crate::error::RuntimeError;
use crate::exec::{self, ExecRequest};
use crate::home::ContainerDir;

/// What a question needs to know of the container it is about.
#[derive(Debug, Clone)]
pub(super) struct About {
    pub(super) name: String,
    pub(super) run: u64,
    pub(super) dir: ContainerDir,
    /// The network the container is in; none for this machine's own.
    pub(super) network: Option<PathBuf>,
    pub(super) answers: Sender<Message>,
}

/// What came of looking at a probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum News {
    /// Nothing before then.
    Wait(Moment),
    /// The container is to be killed, for this reason.
    Unhealthy(String),
    /// It became ready, or is no longer.
    Ready(bool),
}

/// A probe of a run.
#[derive(Debug)]
pub(super) struct Asker {
    purpose: Purpose,
    action: ProbeAction,
    timeout: Duration,
    prober: Prober,
    open: Option<Open>,
    /// Why the last answer was not good.
    complaint: String,
}

#[derive(Debug)]
enum Open {
    /// A command in the container, which is killed when its time is up.
    Command { child: Child, question: Question, by: Moment, killed: bool },
    /// A thread that waits for an answer, and gives up by itself.
    Request { question: Question },
}

impl Asker {
    pub(super) fn new(purpose: Purpose, probe: &Probe, started: Moment) -> Self {
        Self {
            purpose,
            action: probe.action.clone(),
            timeout: probe.timing.timeout,
            prober: Prober::new(purpose, probe.timing, started),
            open: None,
            complaint: "timed out waiting for a response".to_owned(),
        }
    }

    pub(super) fn is_readiness(&self) -> bool {
        self.purpose == Purpose::Readiness
    }

    /// Why the last answer was not good.
    pub(super) fn complaint(&self) -> &str {
        &self.complaint
    }

    /// Does what is due, and says what follows. To be called again until it says to wait.
    pub(super) fn look(&mut self, about: &About, index: usize, now: Moment) -> News {
        self.reap(now);
        loop {
            match self.prober.step(now) {
                Step::Wait(until) => return News::Wait(until),
                Step::Ready(ready) => return News::Ready(ready),
                Step::Restart => return News::Unhealthy(self.complaint.clone()),
                Step::Ask { question, by } => {
                    if let Err(why) = self.ask(about, index, question, by) {
                        self.answered(question, Err(why), now);
                    }
                }
            }
        }
    }

    /// Takes an answer in.
    pub(super) fn answered(&mut self, question: Question, outcome: Result<(), String>, now: Moment) {
        if matches!(self.open, Some(Open::Request { question: open }) if open == question) {
            self.open = None;
        }
        let healthy = outcome.is_ok();
        if let Err(why) = outcome {
            self.complaint = why;
        }
        self.prober.answered(question, healthy, now);
    }

    /// Takes the end of a command in, and ends one whose time is up.
    fn reap(&mut self, now: Moment) {
        let Some(Open::Command { child, question, by, killed }) = &mut self.open else { return };
        let (question, late) = (*question, now >= *by);
        match child.try_wait() {
            Ok(Some(_)) if *killed => self.open = None,
            Ok(Some(status)) => {
                self.open = None;
                let outcome =
                    if status.success() { Ok(()) } else { Err(format!("the command ended with {status}")) };
                self.answered(question, outcome, now);
            }
            _ if late && !*killed => {
                let _ = child.kill();
                *killed = true;
                "timed out waiting for a response".clone_into(&mut self.complaint);
            }
            _ => {}
        }
    }

    fn ask(&mut self, about: &About, index: usize, question: Question, by: Moment) -> Result<(), String> {
        if self.open.is_some() {
            return Err("the last question is not answered yet".to_owned());
        }
        self.open = Some(match &self.action {
            ProbeAction::Exec(command) => {
                let child = command_inside(about, command).map_err(|error| crate::launch::text(&error))?;
                Open::Command { child, question, by, killed: false }
            }
            ProbeAction::HttpGet(get) => {
                request_inside(about, get, index, question, self.timeout)
                    .map_err(|error| error.to_string())?;
                Open::Request { question }
            }
        });
        Ok(())
    }

    /// Ends what is under way, for the container has ended.
    pub(super) fn end(&mut self) {
        if let Some(Open::Command { child, .. }) = &mut self.open {
            let _ = child.kill();
            let _ = child.wait();
        }
        self.open = None;
    }
}

fn command_inside(about: &About, command: &[String]) -> Result<Child, RuntimeError> {
    let request = ExecRequest { args: command.to_vec(), ..ExecRequest::default() };
    exec::joiner(&about.dir, &request)?.apart().spawn(Stdio::null(), Stdio::null(), Stdio::null())
}

/// Of a thread that sends an HTTP probe. TLS in a debug build needs the most.
pub(super) const STACK_SIZE: usize = 512 << 10;

fn request_inside(
    about: &About,
    get: &HttpGet,
    probe: usize,
    question: Question,
    limit: Duration,
) -> std::io::Result<()> {
    let (about, get) = (about.clone(), get.clone());
    let thread = thread::Builder::new().name(format!("probe of {}", about.name)).stack_size(STACK_SIZE);
    thread.spawn(move || {
        let outcome = http::probe(&get, about.network.as_deref(), limit);
        let About { name, run, answers, .. } = about;
        // Nobody listens any more where the group has ended.
        let _ = answers.send(Message::Answered { name, run, probe, question, outcome });
    })?;
    Ok(())
}
