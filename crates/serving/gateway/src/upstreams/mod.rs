//! All upstreams: which one gets a request, and what waits while there is none.

mod availability;
pub(crate) mod connection;
pub(crate) mod health;
pub(crate) mod scale;
pub(crate) mod send_progress;
pub(crate) mod tls;
pub(crate) mod upstream;
pub(crate) mod url;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use cudock_server::{DrainSignal, HttpRejection, Log};
use tokio::sync::Notify;

use crate::error::GatewayError;
use crate::upstreams::upstream::{Lease, Upstream};

pub(crate) struct Upstreams {
    pub(crate) all: Vec<Arc<Upstream>>,
    /// Rotates the order, so that upstreams with equally many requests take turns.
    turn: AtomicUsize,
    /// Notified when an upstream becomes reachable.
    reachable: Notify,
    /// Requests that wait for an upstream, and a notification for each that begins to.
    held: AtomicUsize,
    pub(crate) held_one: Notify,
    /// Requests that were given to an upstream so far, without probes.
    assigned: AtomicU64,
    drain: DrainSignal,
    log: Log,
}

/// Counts a request that waits for an upstream.
struct HeldGuard<'a>(&'a AtomicUsize);

impl Drop for HeldGuard<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Upstreams {
    pub(crate) fn new(all: Vec<Arc<Upstream>>, drain: DrainSignal, log: Log) -> Self {
        Self {
            all,
            turn: AtomicUsize::new(0),
            reachable: Notify::new(),
            held: AtomicUsize::new(0),
            held_one: Notify::new(),
            assigned: AtomicU64::new(0),
            drain,
            log,
        }
    }

    /// Number of requests that wait for an upstream.
    pub(crate) fn held(&self) -> usize {
        self.held.load(Ordering::Acquire)
    }

    /// Number of requests that were given to an upstream so far, without probes.
    pub(crate) fn assigned(&self) -> u64 {
        self.assigned.load(Ordering::Relaxed)
    }

    pub(crate) fn is_any_reachable(&self) -> bool {
        self.all.iter().any(|upstream| upstream.availability().is_reachable())
    }

    /// The reachable upstream with the fewest outstanding requests. Those that fail get none as long as there is another.
    pub(crate) fn pick(&self) -> Option<Lease> {
        let now = Instant::now();
        let turn = self.turn.fetch_add(1, Ordering::Relaxed) % self.all.len().max(1);
        let (before, from) = self.all.split_at_checked(turn)?;
        let candidates = from.iter().chain(before).filter_map(|upstream| {
            let availability = upstream.availability();
            let rank = (availability.is_ejected(now), upstream.outstanding());
            availability.is_reachable().then_some((rank, upstream))
        });
        candidates.min_by_key(|(rank, _)| *rank).map(|(_, upstream)| Lease::new(upstream))
    }

    /// Rejects a request if every upstream has rejected one a moment ago: it saves reading the bodies of a burst.
    pub(crate) fn reject_if_full(&self) -> Result<(), HttpRejection> {
        let mut least = None;
        for upstream in self.all.iter().filter(|upstream| upstream.availability().is_reachable()) {
            let Some(retry_after) = upstream.queue.recent_rejection() else { return Ok(()) };
            least = Some(least.map_or(retry_after, |least: Duration| least.min(retry_after)));
        }
        least.map_or(Ok(()), |retry_after| Err(HttpRejection::Overloaded { retry_after }))
    }

    /// Picks an upstream, and waits for one until `until` while there is none.
    pub(crate) async fn wait(&self, until: Instant) -> Result<Lease, GatewayError> {
        let start = Instant::now();
        let mut held = None;
        loop {
            let reachable = self.reachable.notified();
            if let Some(lease) = self.pick() {
                self.assigned.fetch_add(1, Ordering::Relaxed);
                return Ok(lease);
            }
            if held.is_none() {
                self.held.fetch_add(1, Ordering::AcqRel);
                held = Some(HeldGuard(&self.held));
                self.held_one.notify_one();
                for upstream in &self.all {
                    upstream.recheck.notify_one();
                }
            }
            tokio::select! {
                () = reachable => {}
                () = self.drain.begun() => return Err(GatewayError::Draining),
                () = tokio::time::sleep_until(until.into()) => {
                    return Err(GatewayError::Unavailable { waited: start.elapsed() });
                }
            }
        }
    }

    /// Records whether an upstream can be reached.
    pub(crate) fn set_reachable(&self, upstream: &Upstream, outcome: Result<(), String>) {
        if !upstream.set_reachable(outcome.is_ok()) {
            return;
        }
        match outcome {
            Ok(()) => {
                self.log.event("upstream_up", &[("upstream", &upstream.name)]);
                self.reachable.notify_waiters();
            }
            Err(reason) => {
                self.log.event("upstream_down", &[("upstream", &upstream.name), ("reason", &reason)]);
                upstream.recheck.notify_one();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use cudock_batcher::BatcherSettings;
    use cudock_server::LogFormat;

    use super::*;
    use crate::batching::queue::BatchQueue;

    fn upstreams(count: usize) -> Upstreams {
        let all = (0..count).map(|index| {
            let url = format!("http://127.0.0.1:{}", index + 1).parse().unwrap();
            Arc::new(Upstream::new(index, url, None, BatchQueue::new(BatcherSettings::default())))
        });
        Upstreams::new(
            all.collect(),
            DrainSignal::default(),
            Log::new(LogFormat::Off, false, std::io::sink()),
        )
    }

    fn port(lease: &Lease) -> u16 {
        lease.upstream.url.port
    }

    #[test]
    fn the_upstream_with_the_fewest_outstanding_requests_is_picked() {
        let upstreams = upstreams(3);
        assert!(upstreams.pick().is_none(), "none is reachable yet");
        upstreams.all.iter().for_each(|upstream| upstreams.set_reachable(upstream, Ok(())));
        let mut leases: Vec<Lease> = (0..9).map(|_| upstreams.pick().unwrap()).collect();
        assert!(upstreams.all.iter().all(|upstream| upstream.outstanding() == 3));
        leases.retain(|lease| port(lease) != 2);
        assert_eq!(upstreams.pick().map(|lease| port(&lease)), Some(2));
        upstreams.set_reachable(&upstreams.all[1], Err("gone".to_owned()));
        assert_ne!(upstreams.pick().map(|lease| port(&lease)), Some(2));
    }

    #[test]
    fn a_failing_upstream_is_picked_only_if_there_is_no_other() {
        let upstreams = upstreams(2);
        upstreams.all.iter().for_each(|upstream| upstreams.set_reachable(upstream, Ok(())));
        (0..5).for_each(|_| upstreams.all[0].on_failure());
        let leases: Vec<Lease> = (0..4).map(|_| upstreams.pick().unwrap()).collect();
        assert!(leases.iter().all(|lease| port(lease) == 2));
        upstreams.set_reachable(&upstreams.all[1], Err("gone".to_owned()));
        assert_eq!(upstreams.pick().map(|lease| port(&lease)), Some(1));
    }

    #[tokio::test]
    async fn a_request_is_held_until_an_upstream_is_reachable_or_its_time_is_over() {
        let upstreams = upstreams(1);
        let over = upstreams.wait(Instant::now() + Duration::from_millis(1)).await;
        assert!(matches!(over, Err(GatewayError::Unavailable { .. })));
        assert_eq!(upstreams.held(), 0);
        let later = Instant::now() + Duration::from_secs(600);
        let come_up = async {
            while upstreams.held() == 0 {
                upstreams.held_one.notified().await;
            }
            upstreams.set_reachable(&upstreams.all[0], Ok(()));
        };
        let (lease, ()) = tokio::join!(upstreams.wait(later), come_up);
        assert_eq!(port(&lease.unwrap_or_else(|error| panic!("{error}"))), 1);
        upstreams.set_reachable(&upstreams.all[0], Err("gone".to_owned()));
        let (drained, ()) = tokio::join!(upstreams.wait(later), async { upstreams.drain.begin() });
        assert!(matches!(drained, Err(GatewayError::Draining)));
    }
}
