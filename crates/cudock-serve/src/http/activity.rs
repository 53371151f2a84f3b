//! Connections on which nothing is asked for too long.
//!
//! A client may connect and say nothing, send a head byte by byte, or keep an idle connection for ever. A timer for each
//! request would catch them all and cost a system call a request; so every connection notes when it last was busy, and
//! each thread looks over its connections now and then.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use crate::reply::lock;

/// What one connection is doing.
pub(crate) struct Activity {
    start: Instant,
    /// Requests that are being read or answered.
    busy: AtomicU32,
    /// Milliseconds from `start` to the end of the last request, or to the connection's beginning.
    idle_since: AtomicU64,
    /// Told each time the connection is found idle for too long.
    overdue: Notify,
}

/// One request in progress.
pub(crate) struct Busy<'activity>(&'activity Activity);

impl Activity {
    /// Marks a request in progress until the guard is dropped.
    pub(crate) fn begin(&self) -> Busy<'_> {
        self.busy.fetch_add(1, Ordering::Relaxed);
        Busy(self)
    }

    /// Waits to be found idle for too long.
    pub(crate) async fn overdue(&self) {
        self.overdue.notified().await;
    }

    fn milliseconds(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn idle(&self) -> Option<Duration> {
        let idle = self.busy.load(Ordering::Relaxed) == 0;
        let since = self.idle_since.load(Ordering::Relaxed);
        idle.then(|| Duration::from_millis(self.milliseconds().saturating_sub(since)))
    }
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.idle_since.store(self.0.milliseconds(), Ordering::Relaxed);
        self.0.busy.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The connections of one thread.
#[derive(Clone)]
pub(crate) struct Watchman {
    start: Instant,
    patience: Duration,
    connections: Arc<Mutex<Vec<Weak<Activity>>>>,
}

impl Watchman {
    /// Finds connections overdue that ask nothing for so long.
    pub(crate) fn new(patience: Duration) -> Self {
        Self { start: Instant::now(), patience, connections: Arc::default() }
    }

    /// A connection that begins now.
    pub(crate) fn watch(&self) -> Arc<Activity> {
        let activity = Arc::new(Activity {
            start: self.start,
            busy: AtomicU32::new(0),
            idle_since: AtomicU64::new(u64::try_from(self.start.elapsed().as_millis()).unwrap_or(0)),
            overdue: Notify::new(),
        });
        lock(&self.connections).push(Arc::downgrade(&activity));
        activity
    }

    /// Looks over the connections again and again.
    pub(crate) async fn rounds(self) {
        let every = (self.patience / 4).clamp(Duration::from_millis(10), Duration::from_secs(1));
        loop {
            tokio::time::sleep(every).await;
            self.look();
        }
    }

    fn look(&self) {
        lock(&self.connections).retain(|connection| {
            let Some(activity) = connection.upgrade() else { return false };
            if activity.idle().is_some_and(|idle| idle > self.patience) {
                activity.overdue.notify_one();
            }
            true
        });
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Waker};
    use std::thread;

    use super::*;

    fn is_overdue(activity: &Activity) -> bool {
        pin!(activity.overdue()).as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    #[test]
    fn a_connection_is_overdue_only_while_nothing_is_asked() {
        let watchman = Watchman::new(Duration::from_millis(20));
        let (silent, asking) = (watchman.watch(), watchman.watch());
        let request = asking.begin();
        thread::sleep(Duration::from_millis(60));
        watchman.look();
        assert!(is_overdue(&silent), "it said nothing for three times as long as is allowed");
        assert!(!is_overdue(&asking), "its request takes as long as it takes");
        drop(request);
        watchman.look();
        assert!(!is_overdue(&asking), "idle time counts from the last answer");
    }

    #[test]
    fn connections_that_are_gone_are_forgotten() {
        let watchman = Watchman::new(Duration::from_secs(1));
        drop(watchman.watch());
        let kept = watchman.watch();
        watchman.look();
        assert_eq!(lock(&watchman.connections).len(), 1);
        drop(kept);
    }
}
