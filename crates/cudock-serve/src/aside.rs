//! Threads for work that would hold up everybody on an I/O thread: large bodies, and what compressed ones unpack to.
//!
//! They are few, so that such work cannot take all processors, and they give way to the I/O threads. What waits for
//! them has its memory reserved, so the queue is bounded by the memory budget.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;

use rustix::process::{Pid, setpriority_process};
use rustix::thread::gettid;
use tokio::sync::oneshot;

use crate::ServeError;
use crate::reply::lock;

/// Bytes of JSON, and of compressed or unpacked data, that are read on the I/O thread.
pub(crate) const INLINE: usize = 64 << 10;
/// Bytes that are copied on the I/O thread.
pub(crate) const INLINE_COPY: usize = 1 << 20;
/// How much the threads give way to others: the kernel's nice value.
const NICE: i32 = 10;

type Job = Box<dyn FnOnce() + Send>;

/// The threads.
pub(crate) struct Aside {
    jobs: Mutex<Sender<Job>>,
}

impl Aside {
    /// Starts so many threads; they end with this.
    pub(crate) fn new(threads: usize) -> Self {
        let (jobs, waiting) = channel();
        let waiting = Arc::new(Mutex::new(waiting));
        for number in 0..threads.max(1) {
            let waiting = Arc::clone(&waiting);
            // Without its threads the pool refuses work, which callers report.
            let _ =
                thread::Builder::new().name(format!("parse {number}")).spawn(move || work_through(&waiting));
        }
        Self { jobs: Mutex::new(jobs) }
    }

    /// Runs it on one of the threads. A job whose caller has gone by its turn is not run.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, ServeError> + Send + 'static,
    ) -> Result<T, ServeError> {
        let (reply, outcome) = oneshot::channel();
        let job: Job = Box::new(move || {
            if !reply.is_closed() {
                let _ = reply.send(work());
            }
        });
        let gone = || ServeError::Engine("the request could not be read: its thread ended".to_owned());
        lock(&self.jobs).send(job).map_err(|_| gone())?;
        outcome.await.unwrap_or_else(|_| Err(gone()))
    }
}

fn work_through(waiting: &Mutex<Receiver<Job>>) {
    // A thread that may not give way works all the same.
    let _ = setpriority_process(Pid::from_raw(gettid().as_raw_nonzero().get()), NICE);
    loop {
        let job = lock(waiting).recv();
        let Ok(job) = job else { return };
        // One job that panics must not take the thread from all others; its caller sees the reply dropped.
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(job));
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]
mod tests {
    use super::*;

    #[tokio::test]
    async fn work_is_done_elsewhere_and_a_panic_costs_only_its_own_job() {
        let aside = Aside::new(1);
        let here = thread::current().id();
        let there = aside.run(move || Ok(thread::current().id())).await.unwrap();
        assert_ne!(here, there);
        let failed: Result<(), _> = aside.run(|| panic!("on purpose")).await;
        assert!(failed.is_err());
        assert_eq!(aside.run(move || Ok(thread::current().id())).await.unwrap(), there);
    }

    #[tokio::test]
    async fn work_whose_caller_left_is_not_done() {
        let aside = Aside::new(1);
        let (release, wait) = std::sync::mpsc::channel::<()>();
        let first = aside.run(move || Ok(wait.recv().is_ok()));
        let mut first = Box::pin(first);
        assert!(
            std::future::poll_fn(|cx| std::task::Poll::Ready(first.as_mut().poll(cx))).await.is_pending()
        );
        let (told, heard) = std::sync::mpsc::channel();
        let mut second = Box::pin(aside.run(move || {
            told.send(()).unwrap();
            Ok(())
        }));
        assert!(
            std::future::poll_fn(|cx| std::task::Poll::Ready(second.as_mut().poll(cx))).await.is_pending()
        );
        drop(second);
        release.send(()).unwrap();
        assert!(first.await.unwrap());
        aside.run(|| Ok(())).await.unwrap();
        assert!(heard.try_recv().is_err());
    }
}
