//! A worker: the process that runs the trials of one slot, one after the other.
//!
//! It is this same program, in a session of its own, and the subreaper of its trial. So a trial ends as a whole, whatever
//! it has forked, and its result is in a file before anybody is told. If the sweep dies, even by `kill -9`, the end of the
//! worker's input tells it: it ends its trial and itself.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use cudock_base::text::error_chain;
use rustix::io::Errno;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::attempt::Attempt;
use super::layout::TrialDir;
use super::process_tree::adopt_orphans;
use super::protocol::{AttemptResult, AttemptStart, WorkerEvent, WorkerRequest};
use crate::journal::AttemptEnd;

/// The longest request.
const MAX_REQUEST: usize = 4 << 20;

/// Runs trials until the sweep that started this process is gone. `lock` is the lock file of its workers.
pub fn run_worker(lock: &Path) -> io::Result<()> {
    // The first fails if this process leads a group already, which is just as well.
    let _ = rustix::process::setsid();
    adopt_orphans()?;
    let ignored = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGINT, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&ignored))?;
    }
    let lock = File::open(lock)?;
    lock.lock_shared()?;
    let mut channel = Channel::default();
    send(&WorkerEvent::Ready);
    while let Some(request) = channel.wait()? {
        if let WorkerRequest::Start(start) = request {
            let result = run(&start, &mut channel);
            if let Err(error) = write_result(&start, &result) {
                return Err(io::Error::other(format!(
                    "cannot write the result of trial {}: {error}",
                    start.trial
                )));
            }
            send(&WorkerEvent::Ended(result));
        }
    }
    drop(lock);
    Ok(())
}

fn run(start: &AttemptStart, channel: &mut Channel) -> AttemptResult {
    match Attempt::begin(start) {
        Ok(attempt) => attempt.supervise(channel),
        Err(error) => AttemptResult {
            trial: start.trial,
            attempt: start.attempt,
            end: AttemptEnd::FailedToStart { message: error_chain(&error) },
            ran_ms: 0,
            interrupted: false,
            notes: Vec::new(),
            gpu_memory: Vec::new(),
        },
    }
}

/// Writes the file that says how an attempt ended: whole or not at all. It survives `kill -9`; it need not survive a power
/// cut, because then the trial runs again.
fn write_result(start: &AttemptStart, result: &AttemptResult) -> io::Result<()> {
    let path = TrialDir::at(&start.directory).result(start.attempt);
    let temporary = cudock_base::files::temporary_path(&path);
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent)?;
    }
    std::fs::write(&temporary, serde_json::to_vec(result)?)?;
    std::fs::rename(&temporary, &path)
}

/// Requests from standard input.
#[derive(Debug, Default)]
pub(crate) struct Channel {
    buffer: Vec<u8>,
    is_closed: bool,
}

impl Channel {
    /// The next request; `None` if the sweep is gone.
    fn wait(&mut self) -> io::Result<Option<WorkerRequest>> {
        loop {
            if let Some(request) = self.parse()? {
                return Ok(Some(request));
            }
            if self.is_closed {
                return Ok(None);
            }
            self.read()?;
        }
    }

    /// The requests that are there, after a poll said that there are some.
    pub(crate) fn receive(&mut self) -> Vec<WorkerRequest> {
        if self.read().is_err() {
            self.is_closed = true;
        }
        std::iter::from_fn(|| self.parse().ok().flatten()).collect()
    }

    /// Whether the sweep is gone.
    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed
    }

    fn read(&mut self) -> io::Result<()> {
        let mut bytes = vec![0; 16 << 10];
        match rustix::io::read(io::stdin().as_fd(), bytes.as_mut_slice()) {
            Ok(0) => self.is_closed = true,
            Ok(count) => self.buffer.extend_from_slice(bytes.get(..count).unwrap_or_default()),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        if self.buffer.len() > MAX_REQUEST {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "request too long"));
        }
        Ok(())
    }

    fn parse(&mut self) -> io::Result<Option<WorkerRequest>> {
        let Some(end) = memchr::memchr(b'\n', &self.buffer) else { return Ok(None) };
        let rest = self.buffer.split_off(end + 1);
        let line = std::mem::replace(&mut self.buffer, rest);
        Ok(Some(serde_json::from_slice(&line)?))
    }
}

/// Tells the sweep. If it is gone, the end of the input will say so.
pub(crate) fn send(event: &WorkerEvent) {
    let Ok(mut line) = serde_json::to_vec(event) else { return };
    line.push(b'\n');
    let mut output = io::stdout().lock();
    let _ = output.write_all(&line).and_then(|()| output.flush());
}
