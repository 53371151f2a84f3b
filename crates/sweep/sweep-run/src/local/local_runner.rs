//! Runs trials on this machine: one worker process for each slot.

use cudock_base::bug::Parts;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use cudock_base::process::tree::{adopt_orphans, kill_descendants, kill_marked};
use cudock_base::{Digest, FileError, Timestamp, bounded_output};
use cudock_sweep::{AttemptEnd, Event, SweepPlan, TrialHandle, TrialId};
use rustix::event::{PollFd, PollFlags, poll};

use super::attempt::timespec;
use super::gpus::SlotGpus;
use super::messages::MessageReader;
use super::outbox::read_attempt;
use super::protocol::{AttemptResult, AttemptStart, MetricReport, WorkerEvent, WorkerRequest};
use super::spare_dir::remove_spares;
use crate::command::{CommandInput, TRIAL_DIR, TrialCommand, trial_command};
use crate::layout::SweepDir;
use crate::runner::{AttemptToStart, LiveAttempt, Runner, RunnerEvent};

/// Interval of checks whether workers have ended.
const END_PAUSE: Duration = Duration::from_millis(100);

/// How this machine fails to run trials.
#[derive(Debug, thiserror::Error)]
pub enum LocalError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error("cannot set up the supervision of processes")]
    Subreaper(#[source] std::io::Error),
}

/// Settings of a local runner.
#[derive(Debug, Clone)]
pub(crate) struct LocalOptions {
    pub(crate) plan: SweepPlan,
    pub(crate) directory: SweepDir,
    /// The directory in which trials run.
    pub(crate) working_directory: PathBuf,
    /// This program: `sweep-worker FILE` runs a worker, `run` and `rm` are those of containers.
    pub(crate) program: PathBuf,
    /// Time between SIGTERM and SIGKILL.
    pub(crate) grace: Duration,
}

/// The trials of this machine.
pub(crate) struct LocalRunner {
    options: LocalOptions,
    objectives: Vec<String>,
    gpus: SlotGpus,
    /// The worker of each slot that has been used.
    workers: Vec<Option<Worker>>,
    /// Events of attempts that never reached a worker.
    failed: Vec<RunnerEvent>,
}

struct Worker {
    process: Child,
    /// None once it was requested to end.
    requests: Option<ChildStdin>,
    events: MessageReader<ChildStdout>,
    running: Option<Running>,
}

#[derive(Clone, Copy)]
struct Running {
    trial: TrialId,
    attempt: u32,
    starting: Timestamp,
    began: Instant,
}

impl LocalRunner {
    pub(crate) fn new(options: LocalOptions, gpus: SlotGpus) -> Result<Self, LocalError> {
        adopt_orphans().map_err(|error| LocalError::Subreaper(error.into()))?;
        let lock = options.directory.workers_lock();
        File::options().create(true).append(true).open(&lock).map_err(FileError::at("create", &lock))?;
        Ok(Self {
            objectives: options.plan.objectives.iter().map(|objective| objective.metric.clone()).collect(),
            workers: gpus.iter().map(|_| None).collect(),
            gpus,
            options,
            failed: Vec::new(),
        })
    }

    /// The name of an attempt's container, if it has one.
    fn container(&self, trial: TrialId, attempt: u32) -> Option<String> {
        self.options.plan.image.as_ref()?;
        let path = self.options.directory.path().to_string_lossy();
        let digest = Digest::sha256_of(path.as_bytes()).hex().part(..8).to_owned();
        Some(format!("sweep-{digest}-{trial}-{attempt}"))
    }

    fn attempt_start(&self, attempt: &AttemptToStart<'_>, slot: usize) -> AttemptStart {
        let plan = &self.options.plan;
        let directory = self.options.directory.trial(attempt.trial);
        let gpus = self.gpus.get(slot).and_then(Option::as_deref);
        let container = self.container(attempt.trial, attempt.attempt);
        let TrialCommand { command, environment } = trial_command(&CommandInput {
            plan,
            trial: attempt.trial.0,
            attempt: attempt.attempt,
            parameters: attempt.parameters,
            directory: &directory,
            gpus,
            container: container.as_deref(),
            program: &self.options.program,
        });
        AttemptStart {
            trial: attempt.trial,
            attempt: attempt.attempt,
            starting: attempt.starting,
            directory: directory.path().to_owned(),
            working_directory: self.options.working_directory.clone(),
            command,
            environment,
            parameters: attempt.parameters.clone(),
            container,
            objectives: self.objectives.clone(),
            metrics: plan.metrics.clone(),
            gpus: gpus.unwrap_or_default().to_vec(),
            gpu_memory_limit: plan.gpu_memory.filter(|_| plan.trials_per_gpu > 1),
            has_own_gpus: plan.trials_per_gpu <= 1,
            grace_ms: u64::try_from(self.options.grace.as_millis()).unwrap_or(u64::MAX),
        }
    }

    /// Sends a request to the worker of a slot, which is started if there is none.
    fn request(&mut self, slot: usize, request: &WorkerRequest) -> std::io::Result<()> {
        let worker = match self.workers.get_mut(slot).and_then(Option::take) {
            Some(worker) => worker,
            None => self.spawn()?,
        };
        let mut line = serde_json::to_vec(request)?;
        line.push(b'\n');
        let worker = self.workers.get_mut(slot).map(|place| place.insert(worker));
        worker.and_then(|worker| worker.requests.as_mut()).map_or(Ok(()), |pipe| pipe.write_all(&line))
    }

    /// Starts a worker. Nothing is sent to it before it holds its lock: a later run waits for that, and so for all that
    /// this one has started.
    fn spawn(&self) -> std::io::Result<Worker> {
        let lost = || std::io::Error::other("the worker process ended before it was ready");
        let mut process = Command::new(&self.options.program)
            .arg("sweep-worker")
            .arg(self.options.directory.workers_lock())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (requests, events) = process.stdin.take().zip(process.stdout.take()).ok_or_else(lost)?;
        let mut events = MessageReader::new(events);
        match events.wait()? {
            Some(WorkerEvent::Ready) => {
                Ok(Worker { process, requests: Some(requests), events, running: None })
            }
            _ => Err(lost()),
        }
    }

    /// Waits until workers have sent events; returns their slots.
    fn readable(&self, timeout: Duration) -> Vec<usize> {
        let workers = self.workers.iter().enumerate();
        let workers: Vec<(usize, &Worker)> =
            workers.filter_map(|(slot, worker)| Some((slot, worker.as_ref()?))).collect();
        let mut fds: Vec<PollFd<'_>> =
            workers.iter().map(|(_, worker)| PollFd::new(&worker.events, PollFlags::IN)).collect();
        if poll(&mut fds, Some(&timespec(timeout))).is_err() {
            // By a signal: the sweep looks what it was.
            return Vec::new();
        }
        let ready = workers.iter().zip(&fds).filter(|(_, fd)| !fd.revents().is_empty());
        ready.map(|((slot, _), _)| *slot).collect()
    }

    /// The new events of a slot's worker.
    fn receive(&mut self, slot: usize) -> Vec<RunnerEvent> {
        let Some(worker) = self.workers.get_mut(slot).and_then(Option::as_mut) else { return Vec::new() };
        let (messages, is_closed) = (worker.events.receive(), worker.events.is_closed());
        let mut events: Vec<RunnerEvent> =
            messages.into_iter().flat_map(|message| self.handle(slot, message)).collect();
        if is_closed {
            events.extend(self.worker_is_gone(slot));
        }
        events
    }

    fn handle(&mut self, slot: usize, event: WorkerEvent) -> Vec<RunnerEvent> {
        let Some(worker) = self.workers.get_mut(slot).and_then(Option::as_mut) else { return Vec::new() };
        let Some(Running { trial, attempt, .. }) = worker.running else { return Vec::new() };
        match event {
            WorkerEvent::Ready => Vec::new(),
            WorkerEvent::Started { pid, start_time } => {
                vec![RunnerEvent::Event(self.started(trial, attempt, pid, start_time))]
            }
            WorkerEvent::Reported(reports) => {
                reports.into_iter().map(|report| reported(trial, attempt, report)).collect()
            }
            WorkerEvent::Ended(result) => {
                worker.running = None;
                ended(result)
            }
        }
    }

    fn started(&self, trial: TrialId, attempt: u32, pid: u32, start_time: u64) -> Event {
        let handle = match self.container(trial, attempt) {
            Some(name) => TrialHandle::Container { name },
            None => TrialHandle::Process { pid, start_time },
        };
        Event::Started { trial, attempt, handle }
    }

    /// A worker was killed: ends what it was running, whose processes are children of this one now.
    fn worker_is_gone(&mut self, slot: usize) -> Vec<RunnerEvent> {
        let Some(mut worker) = self.workers.get_mut(slot).and_then(Option::take) else { return Vec::new() };
        drop(worker.requests);
        // It is dead, or about to end as its output has.
        let _ = worker.process.wait();
        let others = self.workers.iter().flatten();
        let others: Vec<i32> = others.filter_map(|other| i32::try_from(other.process.id()).ok()).collect();
        kill_descendants(&others, &mut |_, _| {});
        let Some(running) = worker.running else { return Vec::new() };
        self.remove_container(running.trial, running.attempt);
        let live = LiveAttempt {
            trial: running.trial,
            attempt: running.attempt,
            starting: running.starting,
            handle: None,
        };
        self.outcome(&live, Some(running.began.elapsed()))
    }

    fn remove_container(&self, trial: TrialId, attempt: u32) {
        if let Some(name) = self.container(trial, attempt) {
            let mut command = Command::new(&self.options.program);
            // Most often there is none.
            let _ = bounded_output(command.args(["rm", "-f", &name]), b"", Duration::from_secs(60), 64 << 10);
        }
    }

    /// The outcome of an attempt whose worker is gone, according to its file; lost if the file has
    /// none.
    fn outcome(&self, live: &LiveAttempt, ran: Option<Duration>) -> Vec<RunnerEvent> {
        let LiveAttempt { trial, attempt, .. } = *live;
        let directory = self.options.directory.trial(trial);
        let result = read_attempt(&directory.events(attempt), live.starting);
        let is_interrupted = result.as_ref().is_some_and(|(_, result)| result.interrupted);
        if let Some((reports, result)) = result.filter(|_| !is_interrupted) {
            let reports = reports.into_iter().map(|report| reported(trial, attempt, report));
            return reports.chain(ended(result)).collect();
        }
        let ran = ran.unwrap_or_else(|| last_sign(&directory.log(attempt)).since(live.starting));
        let end = if is_interrupted { AttemptEnd::Interrupted } else { AttemptEnd::Lost };
        vec![RunnerEvent::Event(Event::Ended { trial, attempt, end, ran })]
    }
}

impl Runner for LocalRunner {
    type Error = LocalError;

    /// They are processes of this machine.
    const OUTLIVES_MACHINE: bool = false;

    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn start(&mut self, attempt: &AttemptToStart<'_>) {
        let slot = usize::try_from(attempt.slot).unwrap_or(usize::MAX);
        let start = self.attempt_start(attempt, slot);
        let sent = self.request(slot, &WorkerRequest::Start(Box::new(start)));
        let running = Running {
            trial: attempt.trial,
            attempt: attempt.attempt,
            starting: attempt.starting,
            began: Instant::now(),
        };
        if let Some(worker) = self.workers.get_mut(slot).and_then(Option::as_mut) {
            // If the request could not be written, the worker is dead, and its end will be noticed.
            worker.running = Some(running);
        } else if let Err(error) = sent {
            let end =
                AttemptEnd::FailedToStart { message: format!("cannot start a worker process: {error}") };
            let (trial, attempt) = (attempt.trial, attempt.attempt);
            self.failed.push(RunnerEvent::Event(Event::Ended { trial, attempt, end, ran: Duration::ZERO }));
        }
    }

    fn stop(&mut self, trial: TrialId, attempt: u32) {
        let running = self.workers.iter().position(|worker| {
            let running = worker.as_ref().and_then(|worker| worker.running);
            running.is_some_and(|running| (running.trial, running.attempt) == (trial, attempt))
        });
        if let Some(slot) = running {
            // A worker that is dead has ended its attempt, too.
            let _ = self.request(slot, &WorkerRequest::Stop { trial, attempt });
        }
    }

    fn poll(&mut self, timeout: Duration) -> Result<Vec<RunnerEvent>, LocalError> {
        let mut events = std::mem::take(&mut self.failed);
        let timeout = if events.is_empty() { timeout } else { Duration::ZERO };
        for slot in self.readable(timeout) {
            events.extend(self.receive(slot));
        }
        Ok(events)
    }

    fn recover(&mut self, live: &[LiveAttempt]) -> Result<Vec<RunnerEvent>, LocalError> {
        let path = self.options.directory.workers_lock();
        let lock = File::open(&path).map_err(FileError::at("open", &path))?;
        cudock_base::files::lock(&lock, &|| {}).map_err(FileError::at("lock", &path))?;
        let trials = self.options.directory.trials();
        kill_marked(TRIAL_DIR, &trials);
        remove_spares(&trials);
        for attempt in live {
            self.remove_container(attempt.trial, attempt.attempt);
        }
        Ok(live.iter().flat_map(|attempt| self.outcome(attempt, None)).collect())
    }

    fn shut_down(&mut self) -> Result<(), LocalError> {
        // They take the end of their requests for the end of this process.
        self.workers.iter_mut().flatten().for_each(|worker| worker.requests = None);
        while self.workers.iter().any(Option::is_some) {
            for slot in self.readable(END_PAUSE) {
                let Some(place) = self.workers.get_mut(slot) else { continue };
                if let Some(worker) = place {
                    // Their further events are in the files of their attempts.
                    worker.events.receive::<WorkerEvent>();
                    if worker.events.is_closed() {
                        let _ = worker.process.wait();
                        *place = None;
                    }
                }
            }
        }
        remove_spares(&self.options.directory.trials());
        Ok(())
    }
}

fn reported(trial: TrialId, attempt: u32, report: MetricReport) -> RunnerEvent {
    let MetricReport { metric, interval, step, value } = report;
    RunnerEvent::Event(Event::Reported { trial, attempt, metric, interval, step, value })
}

fn ended(result: AttemptResult) -> Vec<RunnerEvent> {
    let AttemptResult { trial, attempt, end, ran_ms, notes, .. } = result;
    let notes = notes.into_iter().map(|note| RunnerEvent::Warning(format!("trial {trial}: {note}")));
    let end = Event::Ended { trial, attempt, end, ran: Duration::from_millis(ran_ms) };
    notes.chain([RunnerEvent::Event(end)]).collect()
}

/// When a file was last written to; the beginning of time if it does not exist.
fn last_sign(path: &Path) -> Timestamp {
    let modified = path.metadata().and_then(|metadata| metadata.modified()).ok();
    let since = modified.and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok()).unwrap_or_default();
    Timestamp::from_millis(u64::try_from(since.as_millis()).unwrap_or_default())
}
