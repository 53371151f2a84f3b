//! Monitors connections: stalled ones are closed, and idle ones make room for others.
//!
//! A client may connect and send nothing, send a head byte by byte, keep an idle connection forever, or not read its
//! response. A timer per request would catch all of these and cost a system call per request; so every connection
//! records its activity, and each thread checks its connections now and then.
//!
//! Bytes of an incomplete head do not count as activity, and neither does a response that the client does not read. A
//! response that is being read does, and so does an open stream that waits for the server.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::{Duration, Instant};

use cudock_base::lock;
use hyper::Version;
use tokio::sync::Notify;

/// Shortest idle time after which a connection may be evicted.
const MIN_IDLE: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub struct ConnectionActivity {
    start: Instant,
    /// Requests being read or processed, and open streams that wait for the server.
    busy: AtomicU32,
    /// Milliseconds from `start` to the end of the last of these, or to the start of the connection.
    idle_since: AtomicU64,
    /// Whether the socket has accepted bytes since the last check, and when a check last found that.
    wrote: AtomicBool,
    wrote_at: AtomicU64,
    /// Whether bytes are waiting because the client does not read them.
    blocked: AtomicBool,
    /// The HTTP version of the last request: 0 before the first, else 10, 11 or 20.
    version: AtomicU8,
    /// Number of heads read, and whether the last request has been read completely.
    heads: AtomicU32,
    received: AtomicBool,
    /// The number of the head that states two lengths of its body; 0 if none does.
    two_lengths: AtomicU32,
    evicted: AtomicBool,
    /// The address of the client, once the connection is served.
    peer: OnceLock<IpAddr>,
    /// Notified each time the connection is found stalled, and when it is evicted.
    wake: Notify,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WakeReason {
    Stalled,
    Evicted,
}

/// A request in progress, or a stream that waits for the server.
#[derive(Debug)]
pub(crate) struct BusyGuard(Arc<ConnectionActivity>);

impl ConnectionActivity {
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
            two_lengths: AtomicU32::new(0),
            evicted: AtomicBool::new(false),
            peer: OnceLock::new(),
            wake: Notify::new(),
        }
    }

    /// The address of the client.
    pub fn peer(&self) -> Option<IpAddr> {
        self.peer.get().copied()
    }

    pub(crate) fn set_peer(&self, peer: IpAddr) {
        // A connection has one client.
        let _ = self.peer.set(peer);
    }

    pub(crate) fn begin(self: Arc<Self>) -> BusyGuard {
        self.busy.fetch_add(1, Ordering::Relaxed);
        BusyGuard(self)
    }

    /// Records that a head has been read, and whether a body follows.
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

    /// Records that the body of the current request has been read.
    pub fn body_read(&self) {
        self.received.store(true, Ordering::Relaxed);
    }

    pub(crate) fn wrote(&self) {
        self.wrote.store(true, Ordering::Relaxed);
        self.blocked.store(false, Ordering::Relaxed);
    }

    pub(crate) fn blocked(&self) {
        self.blocked.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.busy.load(Ordering::Relaxed) > 0
    }

    pub(crate) fn heads(&self) -> u32 {
        self.heads.load(Ordering::Relaxed)
    }

    pub(crate) fn set_two_lengths(&self, head: u32) {
        self.two_lengths.store(head, Ordering::Relaxed);
    }

    /// Whether the head of the current request states two lengths of its body.
    pub(crate) fn has_two_lengths(&self) -> bool {
        let head = self.two_lengths.load(Ordering::Relaxed);
        head != 0 && head == self.heads()
    }

    /// Whether an HTTP/1 client that has closed its sending side still waits for a response.
    pub(crate) fn owes_response(&self) -> bool {
        self.has_first_version() && (self.is_busy() || self.blocked.load(Ordering::Relaxed))
    }

    /// Whether the last request came over HTTP/1.
    fn has_first_version(&self) -> bool {
        (10..20).contains(&self.version.load(Ordering::Relaxed))
    }

    /// Whether the body of the current request is incomplete.
    pub(crate) fn wants_body(&self) -> bool {
        self.is_busy() && !self.received.load(Ordering::Relaxed)
    }

    /// Whether the last request of an HTTP/1 client was answered before its body was read.
    pub(crate) fn left_body_unread(&self) -> bool {
        self.has_first_version() && !self.received.load(Ordering::Relaxed)
    }

    /// Whether the client understands an interim response and has not been sent part of the final one.
    pub(crate) fn accepts_interim(&self) -> bool {
        self.version.load(Ordering::Relaxed) == 11 && self.is_busy() && !self.blocked.load(Ordering::Relaxed)
    }

    /// Waits until the connection is found stalled or evicted.
    pub(crate) async fn woken(&self) -> WakeReason {
        self.wake.notified().await;
        if self.evicted.swap(false, Ordering::Relaxed) { WakeReason::Evicted } else { WakeReason::Stalled }
    }

    pub(crate) fn idle_time(&self) -> Duration {
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

    /// Since when the connection is idle, if it may be evicted.
    fn idle_since(&self) -> Option<u64> {
        let in_use = self.is_busy() || self.blocked.load(Ordering::Relaxed);
        let wanted = self.evicted.load(Ordering::Relaxed);
        (!in_use && !wanted && self.idle_time() >= MIN_IDLE).then(|| self.idle_since.load(Ordering::Relaxed))
    }
}

fn milliseconds(start: Instant) -> u64 {
    u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX)
}

impl Drop for BusyGuard {
    fn drop(&mut self) {
        self.0.idle_since.store(milliseconds(self.0.start), Ordering::Relaxed);
        self.0.busy.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The connections of one thread.
#[derive(Clone)]
pub(crate) struct ConnectionMonitor {
    start: Instant,
    timeout: Duration,
    connections: Arc<Mutex<Vec<Weak<ConnectionActivity>>>>,
}

impl ConnectionMonitor {
    /// Creates a monitor with that inactivity timeout. All monitors of a server share `start`.
    pub(crate) fn new(start: Instant, timeout: Duration) -> Self {
        Self { start, timeout, connections: Arc::default() }
    }

    pub(crate) fn register(&self) -> Arc<ConnectionActivity> {
        let activity = Arc::new(ConnectionActivity::new(self.start));
        lock(&self.connections).push(Arc::downgrade(&activity));
        activity
    }

    pub(crate) async fn run(self) {
        let every = (self.timeout / 4).clamp(Duration::from_millis(10), Duration::from_secs(1));
        loop {
            tokio::time::sleep(every).await;
            self.check();
        }
    }

    fn check(&self) {
        lock(&self.connections).retain(|connection| {
            let Some(activity) = connection.upgrade() else { return false };
            if activity.idle_time() > self.timeout {
                activity.wake.notify_one();
            }
            true
        });
    }

    /// Evicts the connection of all threads that has been idle longest; returns whether there was one.
    pub(crate) fn evict_oldest(all: &[Self]) -> bool {
        let mut oldest: Option<(u64, Arc<ConnectionActivity>)> = None;
        for monitor in all {
            for activity in lock(&monitor.connections).iter().filter_map(Weak::upgrade) {
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

    const TIMEOUT: Duration = Duration::from_millis(20);

    fn woken(activity: &ConnectionActivity) -> Option<WakeReason> {
        match pin!(activity.woken()).as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(woken) => Some(woken),
            Poll::Pending => None,
        }
    }

    fn monitor() -> ConnectionMonitor {
        ConnectionMonitor::new(Instant::now(), TIMEOUT)
    }

    #[test]
    fn a_connection_stalls_only_without_a_request() {
        let monitor = monitor();
        let (silent, asking) = (monitor.register(), monitor.register());
        let request = Arc::clone(&asking).begin();
        thread::sleep(TIMEOUT * 3);
        monitor.check();
        assert_eq!(woken(&silent), Some(WakeReason::Stalled), "it was silent three times as long as allowed");
        assert_eq!(woken(&asking), None, "a running request has no time limit here");
        drop(request);
        monitor.check();
        assert_eq!(woken(&asking), None, "idle time counts from the last response");
    }

    #[test]
    fn a_response_that_is_being_read_is_activity_and_one_that_is_not_stalls() {
        let monitor = monitor();
        let (reading, stuck) = (monitor.register(), monitor.register());
        let unfinished = Arc::clone(&stuck).begin();
        for _ in 0..4 {
            thread::sleep(TIMEOUT / 2);
            reading.wrote();
            reading.blocked();
            stuck.blocked();
            monitor.check();
        }
        assert_eq!(woken(&reading), None, "it reads its response chunk by chunk");
        assert_eq!(woken(&stuck), Some(WakeReason::Stalled), "it read nothing");
        drop(unfinished);
    }

    #[test]
    fn the_connection_idle_longest_is_evicted_and_busy_ones_never_are() {
        let monitors = [monitor(), monitor()];
        let (first, second) = (monitors[0].register(), monitors[1].register());
        let busy = monitors[0].register();
        let request = Arc::clone(&busy).begin();
        let evicted = ConnectionMonitor::evict_oldest(&monitors);
        assert!(!evicted, "new connections get time for their first request");
        thread::sleep(MIN_IDLE);
        drop(Arc::clone(&first).begin());
        thread::sleep(MIN_IDLE * 2);
        assert!(ConnectionMonitor::evict_oldest(&monitors));
        assert_eq!((woken(&first), woken(&second)), (None, Some(WakeReason::Evicted)));
        assert!(ConnectionMonitor::evict_oldest(&monitors));
        assert_eq!(woken(&busy), None);
        drop(request);
    }

    #[test]
    fn only_a_complete_http1_request_is_processed_after_its_client_half_closes() {
        let activity = monitor().register();
        assert!(!activity.owes_response());
        let request = Arc::clone(&activity).begin();
        activity.head_read(Version::HTTP_11, true);
        assert!(activity.wants_body(), "its body is still to come");
        activity.body_read();
        assert!(activity.owes_response() && activity.accepts_interim() && !activity.wants_body());
        activity.head_read(Version::HTTP_10, false);
        assert!(activity.owes_response() && !activity.accepts_interim());
        activity.head_read(Version::HTTP_2, false);
        assert!(!activity.owes_response());
        drop(request);
    }

    #[test]
    fn closed_connections_are_removed() {
        let monitor = monitor();
        drop(monitor.register());
        let kept = monitor.register();
        monitor.check();
        assert_eq!(lock(&monitor.connections).len(), 1);
        drop(kept);
    }
}
