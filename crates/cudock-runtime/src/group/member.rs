//! One container of a group, from the side of the supervisor: its watcher, and how that is told to end.

use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
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

use super::ask::{About, Asker, News};
use super::make::private;
use super::message::Message;
use super::output::{Stream, Voice};
use crate::error::{OnSystem, RuntimeError};
use crate::home::ContainerDir;
use crate::plan::{Plan, Private};
use crate::reexec;
use crate::signal::stop_signal;

/// A watcher that does not end by itself when its container was killed is given so long.
const LAST_MOMENTS: Duration = Duration::from_secs(5);

/// How long output may come after the end of a watcher.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// A container of the group.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) container: Container,
    pub(super) init: bool,
    pub(super) plan: Plan,
    dir: ContainerDir,
    private: Private,
    /// The run it is in; none between runs.
    pub(super) run: Option<Run>,
    runs: u64,
    pub(super) exit_code: Option<i32>,
    pub(super) why: Option<String>,
}

/// One run of a container.
#[derive(Debug)]
pub(super) struct Run {
    number: u64,
    watcher: Child,
    /// What the watcher said of the start.
    answer: Option<String>,
    ended: Option<ExitStatus>,
    ending: Option<Ending>,
    askers: Vec<Asker>,
    about: About,
    outputs: Vec<JoinHandle<()>>,
    ready: bool,
}

/// How far the end of a run has come.
#[derive(Debug)]
struct Ending {
    /// When asking is over.
    by: Moment,
    asked: bool,
    forced: bool,
}

/// How a run came out.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Came {
    /// It ended with this code.
    Out(i32),
    /// It never began, for this reason.
    ToNothing(String),
}

/// What a member is connected to.
#[derive(Debug)]
pub(super) struct Ties<'a> {
    pub(super) messages: &'a Sender<Message>,
    pub(super) voice: &'a Arc<Voice>,
    pub(super) network: Option<PathBuf>,
}

impl Member {
    pub(super) fn new(container: Container, init: bool, dir: ContainerDir, plan: Plan) -> Self {
        let private = private(&container);
        Self { container, init, plan, dir, private, run: None, runs: 0, exit_code: None, why: None }
    }

    /// Starts a watcher, which ends with us. Must be called from the thread that lives as long as this process.
    pub(super) fn start(&mut self, ties: &Ties<'_>) -> Result<(), RuntimeError> {
        self.runs += 1;
        let number = self.runs;
        let (from_watcher, to_us) = io::pipe().when("cannot hear from the watcher")?;
        let to_us = OwnedFd::from(to_us);
        fcntl_setfd(&to_us, FdFlags::empty()).when("cannot hand a pipe down")?;
        let mut words = vec!["monitor".into(), self.dir.path().as_os_str().to_owned(), "--tied".into()];
        words.extend(["--ready".into(), to_us.as_raw_fd().to_string().into()]);
        let attached = ties.voice.is_attached();
        if attached {
            words.push("--attached".into());
        }
        let output = || if attached { Stdio::piped() } else { Stdio::null() };
        let sealed = reexec::sealed_command(&words, &self.private)?;
        let mut watcher = sealed.apart().spawn(Stdio::null(), output(), output())?;
        drop(to_us);
        let mut outputs = Vec::new();
        if let Some(out) = watcher.stdout.take() {
            outputs.push(
                ties.voice.follow(&self.container.name, out, Stream::Out).when("cannot start a thread")?,
            );
        }
        if let Some(err) = watcher.stderr.take() {
            outputs.push(
                ties.voice.follow(&self.container.name, err, Stream::Err).when("cannot start a thread")?,
            );
        }
        let name = self.container.name.clone();
        hear(from_watcher, name.clone(), number, ties.messages.clone()).when("cannot start a thread")?;
        let about = About {
            name,
            run: number,
            dir: self.dir.clone(),
            network: ties.network.clone(),
            answers: ties.messages.clone(),
        };
        self.run = Some(Run {
            number,
            watcher,
            answer: None,
            ended: None,
            ending: None,
            askers: Vec::new(),
            about,
            outputs,
            ready: false,
        });
        Ok(())
    }

    /// The watcher said how the start went. Whether the container runs now.
    pub(super) fn began(&mut self, number: u64, answer: String, now: Moment) -> bool {
        let Some(run) = self.run.as_mut().filter(|run| run.number == number) else { return false };
        let runs = answer == "running";
        run.answer = Some(answer);
        if runs {
            let probes = [
                (Purpose::Liveness, &self.container.liveness),
                (Purpose::Readiness, &self.container.readiness),
            ];
            let askers = probes
                .into_iter()
                .filter_map(|(purpose, probe)| Some(Asker::new(purpose, probe.as_ref()?, now)));
            run.askers = askers.collect();
            run.ready = self.container.readiness.is_none();
            self.why = None;
        }
        runs
    }

    /// Whether it runs and, if it has a readiness probe, that says yes.
    pub(super) fn is_ready(&self) -> bool {
        self.run.as_ref().is_some_and(|run| run.ready && run.ended.is_none() && run.ending.is_none())
    }

    /// How its run came out, if it has ended; there is none then.
    pub(super) fn came_out(&mut self) -> Option<Came> {
        let run = self.run.as_mut()?;
        if run.ended.is_none() {
            run.ended = run.watcher.try_wait().ok().flatten();
        }
        // What it said comes by another way, and may be later; it comes for certain, since the pipe closes.
        let (status, answer) = (run.ended?, run.answer.clone()?);
        let mut run = self.run.take()?;
        run.askers.iter_mut().for_each(Asker::end);
        await_last_words(&run.outputs);
        let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default());
        if answer == "running" {
            self.exit_code = Some(code);
            return Some(Came::Out(code));
        }
        let why = match reexec::reported(&answer) {
            Err(error) if !answer.is_empty() => crate::launch::text(&error),
            _ => format!("its watcher ended with {status}"),
        };
        Some(Came::ToNothing(why))
    }

    /// Whether its last run was ended for using more memory than it may.
    pub(super) fn ran_out_of_memory(&self) -> bool {
        self.dir.status().is_ok_and(|status| status.out_of_memory)
    }

    /// Has its run end: it is asked to, and ended after a time.
    pub(super) fn end(&mut self, grace: Duration, now: Moment) {
        if let Some(run) = &mut self.run {
            let by = now.saturating_add(grace);
            let ending = run.ending.get_or_insert(Ending { by, asked: false, forced: false });
            ending.by = ending.by.min(by);
        }
    }

    /// How long it may take to end when it is asked to.
    pub(super) fn grace(&self) -> Duration {
        Duration::from_secs(self.plan.stop_seconds.into())
    }

    /// Does what is due in the ending of a run; when to look again.
    pub(super) fn go_on_ending(&mut self, now: Moment) -> Option<Moment> {
        let run = self.run.as_mut()?;
        let begun = run.answer.is_some();
        let ending = run.ending.as_mut()?;
        // A container that is being made has no process to ask yet.
        if begun && !ending.asked && now < ending.by {
            ending.asked = true;
            let _ = self.dir.signal(&self.plan, stop_signal(&self.plan.stop_signal));
        }
        if now < ending.by {
            return Some(ending.by);
        }
        if !ending.forced {
            ending.forced = true;
            if begun {
                let _ = self.dir.signal(&self.plan, Signal::SIGKILL);
            }
        }
        let last = ending.by.saturating_add(LAST_MOMENTS);
        if now < last {
            return Some(last);
        }
        let _ = run.watcher.kill();
        None
    }

    /// Asks what is due; what followed, and when to look again.
    pub(super) fn look(&mut self, now: Moment) -> (Vec<News>, Option<Moment>) {
        let mut news = Vec::new();
        let mut again: Option<Moment> = None;
        let Some(run) = self.run.as_mut().filter(|run| run.ended.is_none() && run.ending.is_none()) else {
            return (news, again);
        };
        for (index, asker) in run.askers.iter_mut().enumerate() {
            loop {
                match asker.look(&run.about, index, now) {
                    News::Wait(until) => {
                        again = Some(again.map_or(until, |known| known.min(until)));
                        break;
                    }
                    News::Ready(ready) => {
                        run.ready = ready;
                        self.why = (!ready).then(|| format!("not ready: {}", asker.complaint()));
                        news.push(News::Ready(ready));
                    }
                    News::Unhealthy(why) => {
                        self.why = Some(format!("not alive: {why}"));
                        news.push(News::Unhealthy(why));
                    }
                }
            }
        }
        (news, again)
    }

    /// Why it is not ready, as far as its probe said.
    pub(super) fn complaint(&self) -> Option<String> {
        let run = self.run.as_ref().filter(|run| !run.ready && run.ending.is_none())?;
        let asker = run.askers.iter().find(|asker| asker.is_readiness())?;
        Some(format!("not ready: {}", asker.complaint()))
    }

    /// A request of a probe was answered.
    pub(super) fn answered(&mut self, number: u64, probe: usize, answer: Answer, now: Moment) {
        let run = self.run.as_mut().filter(|run| run.number == number);
        if let Some(asker) = run.and_then(|run| run.askers.get_mut(probe)) {
            asker.answered(answer.question, answer.outcome, now);
        }
    }
}

/// An answer to a probe.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) question: cudock_group::probe::Question,
    pub(super) outcome: Result<(), String>,
}

/// Lets what a container wrote last be passed on before its end is told.
fn await_last_words(outputs: &[JoinHandle<()>]) {
    let until = Instant::now() + LAST_WORDS;
    while outputs.iter().any(|output| !output.is_finished()) && Instant::now() < until {
        thread::sleep(Duration::from_millis(1));
    }
}

/// Waits for a watcher's word on the start.
fn hear(mut from: io::PipeReader, name: String, run: u64, messages: Sender<Message>) -> io::Result<()> {
    let thread = thread::Builder::new().name(format!("start of {name}")).stack_size(128 << 10);
    thread.spawn(move || {
        let mut answer = String::new();
        // Where it cannot be read the watcher ended without a word.
        let _ = from.read_to_string(&mut answer);
        let _ = messages.send(Message::Began { name, run, answer });
    })?;
    Ok(())
}
