//! A worker: the process that runs the trials of one slot, one after the other.
//!
//! It is this same program, in a session of its own, and the subreaper of its trial. So a trial
//! ends as a whole, whatever it has forked, and its result is in a file before the sweep receives
//! it. If the sweep dies, even by `kill -9`, the worker's input ends: it then ends its trial and
//! itself.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use cudock_base::process::tree::adopt_orphans;
use cudock_base::text::error_chain;
use cudock_sweep::AttemptEnd;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::attempt::Attempt;
use super::messages::MessageReader;
use super::outbox::{Outbox, send_ready};
use super::protocol::{AttemptStart, RequestReader, WorkerRequest};
use super::spare_dir::SpareDir;
use crate::layout::TrialDir;

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
    let mut requests = MessageReader::new(io::stdin());
    let mut spare = SpareDir::default();
    send_ready()?;
    while let Some(request) = requests.wait()? {
        if let WorkerRequest::Start(start) = request {
            run(&start, &mut spare, &mut requests).map_err(|error| {
                io::Error::other(format!("cannot write the result of trial {}: {error}", start.trial))
            })?;
        }
    }
    drop(lock);
    Ok(())
}

/// Runs an attempt, whose result is in its file before it is sent to the sweep.
fn run(start: &AttemptStart, spare: &mut SpareDir, requests: &mut RequestReader) -> io::Result<()> {
    spare.become_trial(&start.directory);
    let path = TrialDir::at(&start.directory).events(start.attempt);
    let mut outbox = Outbox::create(&path).map_err(io::Error::other)?;
    let result = match Attempt::begin(start, &mut outbox) {
        Ok(attempt) => {
            if let Some(trials) = start.directory.parent() {
                spare.prepare(trials);
            }
            attempt.supervise(requests)
        }
        Err(error) => start.result(AttemptEnd::FailedToStart { message: error_chain(&error) }),
    };
    outbox.finish(result)
}
