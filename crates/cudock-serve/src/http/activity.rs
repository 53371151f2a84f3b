//! What connections are doing: those that stall are closed, and idle ones make room for others.
//!
//! A client may connect and say nothing, send a head byte by byte, keep an idle connection for ever, or not take its
//! answer. A timer for each request would catch them all and cost a system call a request; so every connection notes
//! what it does, and each thread looks over its connections now and then.
//!
//! Bytes of a head that is not complete are no activity, and neither is an answer that nobody takes. An answer that is
//! being taken is, and so is an open stream that waits for the server.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use hyper::Version;
use tokio::sync::Notify;

use crate::reply::lock;

/// An idle connection is left alone for so long even if others want its place.
const SETTLING: Duration = Duration::from_millis(100);

/// What one connection is doing.
#[derive(Debug)]
pub(crate) struct Activity {
    start: Instant,
    /// Requests being read or answered, and open streams that wait for the server.
    busy: AtomicU32,
    /// Milliseconds from `start` to the end of the last of these, or to the connection's beginning.
    idle_since: AtomicU64,
    /// Whether the socket has taken bytes since the last look, and when a look last found so.
    wrote: AtomicBool,
    wrote_at: AtomicU64,
    /// Whether bytes are waiting because the client does not take them.
    blocked: AtomicBool,
    /// The HTTP version of the last request: 0 before the first, else 10, 11 or 20.
    version: AtomicU8,
    /// Heads read so far, and whether the last request has been read to its end.
    heads: AtomicU32,
    received: AtomicBool,
    evicted: AtomicBool,
    /// Told each time the connection is found stalled, and when it is to make room.
    wake: Notify,
}

/// Why a connection was woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Woken {
    Stalled,
    Evicted,
}

/// One request in progress, or a stream that waits for the server.
#[derive(Debug)]
pub(crate) struct Busy(Arc<Activity>);

impl Activity {
    fn new(start: Instant) -> Self {
        let now = milliseconds(start);
        Self {
            start,
            busy: AtomicU32::new(0),
            idle_since: AtomicU64::new(now),
            wrote: AtomicBool::new(false),
            wrote_at: AtomicU64::new(now),
            blocked: AtomicBool::new(false),
            version: AtomicU8::new(0),
            heads: AtomicU32::new(0),
            received: AtomicBool::new(false),
            evicted: AtomicBool::new(false),
            wake: Notify::new(),
        }
    }

    /// Marks something in progress until the guard is dropped.
    pub(crate) fn begin(self: Arc<Self>) -> Busy {
        self.busy.fetch_add(1, Ordering::Relaxed);
        Busy(self)
    }

    /// Notes a request whose head has been read, and whether it has a body still to come.
    pub(crate) fn head_read(&self, version: Version, has_body: bool) {
        let version = match version {
            Version::HTTP_09 | Version::HTTP_10 => 10,
            Version::HTTP_11 => 11,
            _ => 20,
        };
        self.version.store(version, Ordering::Relaxed);
        self.heads.fetch_add(1, Ordering::Relaxed);
        self.received.store(!has_body, Ordering::Relaxed);
    }

    /// Notes that the body of the last request has been read to its end.
    pub(crate) fn body_read(&self) {
        self.received.store(true, Ordering::Relaxed);
    }

    /// Notes that the socket took bytes.
    pub(crate) fn wrote(&self) {
        self.wrote.store(true, Ordering::Relaxed);
        self.blocked.store(false, Ordering::Relaxed);
    }

    /// Notes that the socket takes no more bytes at present.
    pub(crate) fn blocked(&self) {
        self.blocked.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.busy.load(Ordering::Relaxed) > 0
    }

    /// How many heads have been read, wrapping.
    pub(crate) fn heads(&self) -> u32 {
        self.heads.load(Ordering::Relaxed)
    }

    /// Whether a client of HTTP/1 that sends no more is owed an answer, if it sent its request to the end.
    pub(crate) fn owes_answer(&self) -> bool {
        let first_version = (10..20).contains(&self.version.load(Ordering::Relaxed));
        first_version && (self.is_busy() || self.blocked.load(Ordering::Relaxed))
    }

    /// Whether the body of the request in progress has not been read to its end.
    pub(crate) fn wants_body(&self) -> bool {
        self.is_busy() && !self.received.load(Ordering::Relaxed)
    }

    /// Whether the client understands an interim response and has not been sent part of the final one.
    pub(crate) fn takes_interim(&self) -> bool {
        self.version.load(Ordering::Relaxed) == 11 && self.is_busy() && !self.blocked.load(Ordering::Relaxed)
    }

    /// Waits to be found stalled or asked to make room.
    pub(crate) async fn woken(&self) -> Woken {
        self.wake.notified().await;
        if self.evicted.swap(false, Ordering::Relaxed) { Woken::Evicted } else { Woken::Stalled }
    }

    /// How long nothing has been in progress on the connection.
    pub(crate) fn quiet(&self) -> Duration {
        let now = milliseconds(self.start);
        if self.wrote.swap(false, Ordering::Relaxed) {
            self.wrote_at.store(now, Ordering::Relaxed);
        }
        let wrote_at = self.wrote_at.load(Ordering::Relaxed);
        let since = if self.blocked.load(Ordering::Relaxed) {
            wrote_at
        } else if self.is_busy() {
            now
        } else {
            wrote_at.max(self.idle_since.load(Ordering::Relaxed))
        };
        Duration::from_millis(now.saturating_sub(since))
    }

    /// Whether the connection may be closed for another, and since when it is idle.
    fn idle_since(&self) -> Option<u64> {
        let in_use = self.is_busy() || self.blocked.load(Ordering::Relaxed);
        let wanted = self.evicted.load(Ordering::Relaxed);
        (!in_use && !wanted && self.quiet() >= SETTLING).then(|| self.idle_since.load(Ordering::Relaxed))
    }
}

fn milliseconds(start: Instant) -> u64 {
    u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX)
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.idle_since.store(milliseconds(self.0.start), Ordering::Relaxed);
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
    /// Finds connections stalled that do nothing for so long. Those of one server share a `start`.
    pub(crate) fn new(start: Instant, patience: Duration) -> Self {
        Self { start, patience, connections: Arc::default() }
    }

    /// A connection that begins now.
    pub(crate) fn watch(&self) -> Arc<Activity> {
        let activity = Arc::new(Activity::new(self.start));
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
            if activity.quiet() > self.patience {
                activity.wake.notify_one();
            }
            true
        });
    }

    /// Asks the connection that has been idle longest, of all threads, to close; whether there is one.
    pub(crate) fn evict_oldest(all: &[Self]) -> bool {
        let mut oldest: Option<(u64, Arc<Activity>)> = None;
        for watchman in all {
            for activity in lock(&watchman.connections).iter().filter_map(Weak::upgrade) {
                let Some(since) = activity.idle_since() else { continue };
                if oldest.as_ref().is_none_or(|(before, _)| since < *before) {
                    oldest = Some((since, activity));
                }
            }
        }
        if let Some((_, activity)) = &oldest {
            activity.evicted.store(true, Ordering::Relaxed);
            activity.wake.notify_one();
        }
        oldest.is_some()
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};
    use std::thread;

    use super::*;

    const PATIENCE: Duration = Duration::from_millis(20);

    fn woken(activity: &Activity) -> Option<Woken> {
        match pin!(activity.woken()).as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(woken) => Some(woken),
            Poll::Pending => None,
        }
    }

    fn watchman() -> Watchman {
        Watchman::new(Instant::now(), PATIENCE)
    }

    #[test]
    fn a_connection_is_stalled_only_while_nothing_is_asked() {
        let watchman = watchman();
        let (silent, asking) = (watchman.watch(), watchman.watch());
        let request = Arc::clone(&asking).begin();
        thread::sleep(PATIENCE * 3);
        watchman.look();
        assert_eq!(
            woken(&silent),
            Some(Woken::Stalled),
            "it said nothing for three times as long as allowed"
        );
        assert_eq!(woken(&asking), None, "its request takes as long as it takes");
        drop(request);
        watchman.look();
        assert_eq!(woken(&asking), None, "idle time counts from the last answer");
    }

    #[test]
    fn an_answer_that_is_being_taken_is_activity_and_one_that_is_not_stalls() {
        let watchman = watchman();
        let (reading, stuck) = (watchman.watch(), watchman.watch());
        let unfinished = Arc::clone(&stuck).begin();
        for _ in 0..4 {
            thread::sleep(PATIENCE / 2);
            reading.wrote();
            reading.blocked();
            stuck.blocked();
            watchman.look();
        }
        assert_eq!(woken(&reading), None, "it takes its answer piece by piece");
        assert_eq!(woken(&stuck), Some(Woken::Stalled), "it took nothing, whatever else it asks");
        drop(unfinished);
    }

    #[test]
    fn the_connection_idle_longest_makes_room_and_busy_ones_never_do() {
        let watchmen = [watchman(), watchman()];
        let (first, second) = (watchmen[0].watch(), watchmen[1].watch());
        let busy = watchmen[0].watch();
        let request = Arc::clone(&busy).begin();
        assert!(!Watchman::evict_oldest(&watchmen), "newcomers are given time to ask");
        thread::sleep(SETTLING);
        drop(Arc::clone(&first).begin());
        thread::sleep(SETTLING * 2);
        assert!(Watchman::evict_oldest(&watchmen));
        assert_eq!((woken(&first), woken(&second)), (None, Some(Woken::Evicted)));
        assert!(Watchman::evict_oldest(&watchmen));
        assert_eq!(woken(&busy), None);
        drop(request);
    }

    #[test]
    fn only_a_whole_request_of_http1_is_answered_after_its_client_sends_no_more() {
        let activity = watchman().watch();
        assert!(!activity.owes_answer());
        let request = Arc::clone(&activity).begin();
        activity.head_read(Version::HTTP_11, true);
        assert!(activity.wants_body(), "its body is still to come");
        activity.body_read();
        assert!(activity.owes_answer() && activity.takes_interim() && !activity.wants_body());
        activity.head_read(Version::HTTP_10, false);
        assert!(activity.owes_answer() && !activity.takes_interim());
        activity.head_read(Version::HTTP_2, false);
        assert!(!activity.owes_answer());
        drop(request);
    }

    #[test]
    fn connections_that_are_gone_are_forgotten() {
        let watchman = watchman();
        drop(watchman.watch());
        let kept = watchman.watch();
        watchman.look();
        assert_eq!(lock(&watchman.connections).len(), 1);
        drop(kept);
    }
}
