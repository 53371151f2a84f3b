//! One attempt of a trial, as its worker sees it: a process with its output, metrics and descendants.

use std::fs;
use std::io::{self, PipeReader};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use cudock_base::files::read_some;
use cudock_base::process::tree::{kill_descendants, reap, start_time};
use cudock_base::text::format::bytes;
use cudock_base::{FileError, bounded_output};
use cudock_sweep::AttemptEnd;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, WaitStatus, kill_process_group, pidfd_open};

use super::gpus::MemoryWatch;
use super::outbox::Outbox;
use super::protocol::{AttemptResult, AttemptStart, RequestReader, WorkerEvent, WorkerRequest};
use super::report_reader::ReportReader;
use super::trial_log::{MAX_LOG, TrialLog};
use crate::layout::TrialDir;

/// Interval of reading files and reaping orphans.
const TICK: Duration = Duration::from_millis(200);

/// How long the processes of a container may take to clean up after its program has ended.
const CONTAINER_GRACE: Duration = Duration::from_secs(5);

/// The longest time of `cudock rm`.
const REMOVE_TIMEOUT: Duration = Duration::from_secs(60);

/// How long output is waited for that processes which cannot be killed may hold back.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// Why an attempt could not be started.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BeginError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error("the command is empty")]
    NoCommand,
    #[error("cannot start {program}")]
    Spawn { program: String, source: io::Error },
    #[error("cannot watch the process")]
    Watch(#[source] io::Error),
}

/// A running attempt.
pub(crate) struct Attempt<'a> {
    start: &'a AttemptStart,
    outbox: &'a mut Outbox,
    began: Instant,
    main: Pid,
    main_exit: OwnedFd,
    status: Option<WaitStatus>,
    output: Option<PipeReader>,
    log: TrialLog,
    reader: ReportReader,
    memory: MemoryWatch,
    /// When the processes that are left are killed.
    deadline: Option<Instant>,
    /// Whether its program has ended; others may be left.
    has_ended: bool,
    is_stopping: bool,
    is_interrupted: bool,
    notes: Vec<String>,
}

impl<'a> Attempt<'a> {
    /// Creates the files of the attempt and starts its process.
    pub(crate) fn begin(start: &'a AttemptStart, outbox: &'a mut Outbox) -> Result<Self, BeginError> {
        let directory = TrialDir::at(&start.directory);
        for path in [directory.checkpoints(), directory.artifacts()] {
            fs::create_dir_all(&path).map_err(FileError::at("create directory", &path))?;
        }
        let parameters = serde_json::to_vec(&start.parameters).map_err(io::Error::from);
        let path = directory.parameters();
        parameters.and_then(|json| fs::write(&path, json)).map_err(FileError::at("write", &path))?;
        let path = directory.log(start.attempt);
        let log = TrialLog::create(&path, MAX_LOG).map_err(FileError::at("create", &path))?;
        let reader = ReportReader::new(start);
        let memory = MemoryWatch::begin(&start.gpus, start.gpu_memory_limit);
        let (main, output) = spawn(start)?;
        let watched = pidfd_open(main, PidfdFlags::empty());
        let main_exit = watched.map_err(|error| {
            kill_descendants(&[], &mut |_, _| {});
            BeginError::Watch(error.into())
        })?;
        Ok(Self {
            start,
            outbox,
            began: Instant::now(),
            main,
            main_exit,
            status: None,
            output: Some(output),
            log,
            reader,
            memory,
            deadline: None,
            has_ended: false,
            is_stopping: false,
            is_interrupted: false,
            notes: Vec::new(),
        })
    }

    /// Waits for the end of the attempt, and reports metrics meanwhile.
    pub(crate) fn supervise(mut self, requests: &mut RequestReader) -> AttemptResult {
        let pid = self.main.as_raw_nonzero().get();
        self.outbox.push(&WorkerEvent::Started {
            pid: pid.unsigned_abs(),
            start_time: start_time(pid).unwrap_or_default(),
        });
        let mut ticked = Instant::now();
        loop {
            let has_children = self.reap();
            if self.status.is_some() && !has_children {
                break;
            }
            if self.status.is_some() && !self.has_ended {
                // Processes that its program left running are not waited for, except for the
                // processes around a container.
                let grace = if self.start.container.is_some() { CONTAINER_GRACE } else { Duration::ZERO };
                self.deadline = Some(Instant::now() + grace);
                self.has_ended = true;
            }
            if self.deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                self.kill();
                break;
            }
            self.wait(requests);
            if ticked.elapsed() >= TICK {
                ticked = Instant::now();
                self.reader.read_files();
                if let Some(note) = self.memory.check() {
                    self.notes.push(note);
                    self.stop();
                }
            }
            self.push_reports();
            self.outbox.flush_due();
        }
        let ran = self.began.elapsed();
        self.drain();
        self.remove_container();
        self.push_reports();
        self.result(ran)
    }

    /// Reaps children; returns whether there are others.
    fn reap(&mut self) -> bool {
        let reaped = reap();
        for (pid, status) in reaped.ended {
            if pid == self.main {
                self.status = Some(status);
            }
        }
        reaped.has_children
    }

    /// Waits for a request, output or the end of the process, but not for longer than a tick.
    fn wait(&mut self, requests: &mut RequestReader) {
        let mut fds = Vec::with_capacity(3);
        let listens = !requests.is_closed();
        if listens {
            fds.push(PollFd::new(&*requests, PollFlags::IN));
        }
        if self.status.is_none() {
            fds.push(PollFd::new(&self.main_exit, PollFlags::IN));
        }
        let has_output = self.output.is_some();
        if let Some(output) = &self.output {
            fds.push(PollFd::new(output, PollFlags::IN));
        }
        let killed = self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let until = [killed, self.outbox.due()].into_iter().flatten().fold(TICK, Duration::min);
        if poll(&mut fds, Some(&timespec(until))).is_err() {
            return;
        }
        let is_ready = |fd: Option<&PollFd<'_>>| fd.is_some_and(|fd| !fd.revents().is_empty());
        let (has_request, has_output) =
            (listens && is_ready(fds.first()), has_output && is_ready(fds.last()));
        if has_request {
            for request in requests.receive() {
                if let WorkerRequest::Stop { trial, attempt } = request
                    && (trial, attempt) == (self.start.trial, self.start.attempt)
                {
                    self.stop();
                }
            }
            if requests.is_closed() && !self.is_stopping && self.status.is_none() {
                self.is_interrupted = true;
                self.stop();
            }
        }
        if has_output {
            self.read_output();
        }
    }

    /// Sends SIGTERM to the process and its group.
    fn stop(&mut self) {
        if !self.is_stopping && self.status.is_none() {
            self.is_stopping = true;
            self.deadline = Some(Instant::now() + Duration::from_millis(self.start.grace_ms));
            // It may have ended meanwhile.
            let _ = kill_process_group(self.main, Signal::TERM);
        }
    }

    fn kill(&mut self) {
        let (main, had_ended) = (self.main, self.status.is_some());
        let status = &mut self.status;
        let (count, all_gone) = kill_descendants(&[], &mut |pid, ended| {
            if pid == main {
                *status = Some(ended);
            }
        });
        if had_ended && count > 0 {
            self.notes.push(format!("{count} processes that it left running were killed"));
        }
        if !all_gone {
            self.notes.push("some of its processes cannot be killed: stuck in the kernel".to_owned());
        }
    }

    fn read_output(&mut self) {
        let mut buffer = vec![0; 64 << 10];
        let Some(output) = &mut self.output else { return };
        match read_some(output, &mut buffer) {
            Ok(bytes @ [_, ..]) => {
                if let Err(error) = self.log.write(bytes)
                    && self.notes.is_empty()
                {
                    self.notes.push(format!("its output cannot be written: {error}"));
                }
                self.reader.output(bytes);
            }
            _ => self.output = None,
        }
    }

    /// Reads what is left of output and files.
    fn drain(&mut self) {
        let deadline = Instant::now() + DRAIN_TIMEOUT;
        while let Some(output) = &self.output {
            let mut fds = [PollFd::new(output, PollFlags::IN)];
            let left = deadline.saturating_duration_since(Instant::now());
            match poll(&mut fds, Some(&timespec(left))) {
                Ok(0) => break,
                Ok(_) => self.read_output(),
                Err(_) => {}
            }
        }
        self.reader.finish();
    }

    /// Removes the container, if that was not left to itself.
    fn remove_container(&mut self) {
        let (Some(name), Some(program)) = (&self.start.container, self.start.command.first()) else { return };
        if self.is_stopping || self.status.is_none_or(|status| !status.exited()) {
            let mut command = Command::new(program);
            let removed = bounded_output(command.args(["rm", "-f", name]), b"", REMOVE_TIMEOUT, 64 << 10);
            if let Err(error) = removed {
                self.notes.push(format!("container {name} cannot be removed: {error}"));
            }
            kill_descendants(&[], &mut |_, _| {});
        }
    }

    fn push_reports(&mut self) {
        let reports = self.reader.take();
        if !reports.is_empty() {
            self.outbox.push(&WorkerEvent::Reported(reports));
        }
    }

    fn result(mut self, ran: Duration) -> AttemptResult {
        if self.log.dropped() > 0 {
            let dropped = bytes(self.log.dropped());
            self.notes.push(format!(
                "{dropped} of its output were dropped: the log keeps the last {}",
                bytes(MAX_LOG)
            ));
        }
        self.notes.extend(self.reader.note());
        let (gpu_memory, note) = self.memory.finish(self.start.has_own_gpus);
        self.notes.extend(note);
        let end = match self.status {
            Some(status) => match (status.exit_status(), status.terminating_signal()) {
                (Some(code), _) => AttemptEnd::Exited { code },
                (None, Some(signal)) => AttemptEnd::Signaled { signal },
                (None, None) => AttemptEnd::Lost,
            },
            None => AttemptEnd::Lost,
        };
        AttemptResult {
            ran_ms: u64::try_from(ran.as_millis()).unwrap_or(u64::MAX),
            interrupted: self.is_interrupted,
            notes: self.notes,
            gpu_memory,
            ..self.start.result(end)
        }
    }
}

/// Starts the process of an attempt in a process group of its own. Both its outputs are one pipe, so that their order is
/// kept.
fn spawn(start: &AttemptStart) -> Result<(Pid, PipeReader), BeginError> {
    let (program, arguments) = start.command.split_first().ok_or(BeginError::NoCommand)?;
    let failed = |source| BeginError::Spawn { program: program.clone(), source };
    let (reader, writer) = io::pipe().map_err(failed)?;
    let mut command = Command::new(program);
    command
        .args(arguments)
        .envs(start.environment.iter().map(|(name, value)| (name, value)))
        .current_dir(&start.working_directory)
        .stdin(Stdio::null())
        .stdout(writer.try_clone().map_err(failed)?)
        .stderr(writer)
        .process_group(0);
    let child = command.spawn().map_err(failed)?;
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    Ok((pid.ok_or_else(|| failed(io::Error::other("invalid process id")))?, reader))
}

pub(crate) fn timespec(time: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(time.subsec_nanos()),
    }
}
