//! Worker threads for jobs that would block an I/O thread: large bodies and decompression.
//!
//! There are few of them, so that such jobs cannot take all CPU cores, and they run at a lower priority than the I/O
//! threads. A queued job has its memory reserved, so the queue is bounded by the memory budget.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;

use cudock_base::lock;
use rustix::process::{Pid, setpriority_process};
use rustix::thread::gettid;
use tokio::sync::oneshot;

/// Largest text or compressed data that is processed on the I/O thread, in bytes.
pub const MAX_INLINE_PARSE: usize = 64 << 10;
/// Largest copy that is made on the I/O thread, in bytes.
pub const MAX_INLINE_COPY: usize = 1 << 20;
const NICE: i32 = 10;

type Job = Box<dyn FnOnce() + Send>;

/// The thread of a job ended before the job did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the request could not be read: its thread ended")]
pub struct WorkerLost;

pub struct WorkerPool {
    jobs: Mutex<Sender<Job>>,
}

impl WorkerPool {
    /// Starts `threads` threads; they end when the pool is dropped.
    pub fn new(threads: usize) -> Self {
        let (jobs, waiting) = channel();
        let waiting = Arc::new(Mutex::new(waiting));
        for number in 0..threads.max(1) {
            let waiting = Arc::clone(&waiting);
            // Without threads the pool rejects jobs, which callers report.
            let _ = thread::Builder::new().name(format!("parse {number}")).spawn(move || run_jobs(&waiting));
        }
        Self { jobs: Mutex::new(jobs) }
    }

    /// Runs a job on a worker thread. A job whose caller is gone before it starts does not run.
    pub async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, WorkerLost> {
        let (reply, outcome) = oneshot::channel();
        let job: Job = Box::new(move || {
            if !reply.is_closed() {
                let _ = reply.send(work());
            }
        });
        lock(&self.jobs).send(job).map_err(|_| WorkerLost)?;
        outcome.await.map_err(|_| WorkerLost)
    }
}

fn run_jobs(waiting: &Mutex<Receiver<Job>>) {
    // Without the permission to lower the priority, the thread keeps its own.
    let _ = setpriority_process(Pid::from_raw(gettid().as_raw_nonzero().get()), NICE);
    loop {
        let job = lock(waiting).recv();
        let Ok(job) = job else { return };
        // A job that panics must not end the thread; its caller sees the channel closed.
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(job));
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Waker};

    use super::*;

    #[tokio::test]
    async fn jobs_run_on_another_thread_and_a_panic_fails_only_its_own_job() {
        let workers = WorkerPool::new(1);
        let here = thread::current().id();
        let there = workers.run(move || thread::current().id()).await.unwrap();
        assert_ne!(here, there);
        assert_eq!(workers.run(|| panic!("on purpose")).await, Err::<(), _>(WorkerLost));
        assert_eq!(workers.run(move || thread::current().id()).await, Ok(there));
    }

    #[tokio::test]
    async fn a_job_whose_caller_is_gone_does_not_run() {
        let workers = WorkerPool::new(1);
        let (release, wait) = std::sync::mpsc::channel::<()>();
        let (started, has_started) = std::sync::mpsc::channel();
        let mut context = Context::from_waker(Waker::noop());
        let mut first = Box::pin(workers.run(move || wait.recv().is_ok()));
        assert!(first.as_mut().poll(&mut context).is_pending());
        let mut second = Box::pin(workers.run(move || started.send(()).unwrap()));
        assert!(second.as_mut().poll(&mut context).is_pending());
        drop(second);
        release.send(()).unwrap();
        assert!(first.await.unwrap());
        workers.run(|| ()).await.unwrap();
        assert!(has_started.try_recv().is_err());
    }
}
