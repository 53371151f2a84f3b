//! Whether an upstream gets requests: a state machine with the clock passed in.

use std::time::{Duration, Instant};

/// Failures in a row after which an upstream gets no requests for a while.
const MAX_FAILURES: u32 = 5;
/// The first such time; it doubles with each ejection up to the longest.
const FIRST_EJECTION: Duration = Duration::from_secs(1);
const LONGEST_EJECTION: Duration = Duration::from_secs(60);

/// Whether an upstream gets requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Availability {
    is_reachable: bool,
    /// Failures since the last success.
    failures: u32,
    /// Ejections since the last success.
    ejections: u32,
    ejected_until: Option<Instant>,
}

impl Availability {
    /// Whether a connection can be made and the health check passes.
    pub(crate) fn is_reachable(self) -> bool {
        self.is_reachable
    }

    /// Whether it has failed too often of late.
    pub(crate) fn is_ejected(self, now: Instant) -> bool {
        self.ejected_until.is_some_and(|until| now < until)
    }

    /// Reports the result of a health check or of a connection attempt; returns whether it changes anything.
    pub(crate) fn set_reachable(&mut self, is_reachable: bool) -> bool {
        let changes = self.is_reachable != is_reachable;
        if changes && is_reachable {
            // It was restarted: what happened before does not count.
            *self = Self::default();
        }
        self.is_reachable = is_reachable;
        changes
    }

    pub(crate) fn on_success(&mut self) {
        (self.failures, self.ejections, self.ejected_until) = (0, 0, None);
    }

    /// Reports a failed request. Returns for how long the upstream is ejected, if it is because of this failure.
    pub(crate) fn on_failure(&mut self, now: Instant) -> Option<Duration> {
        self.failures += 1;
        if self.failures < MAX_FAILURES || self.is_ejected(now) {
            return None;
        }
        let time = LONGEST_EJECTION.min(FIRST_EJECTION * 2_u32.saturating_pow(self.ejections.min(16)));
        self.ejections += 1;
        self.ejected_until = now.checked_add(time);
        Some(time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_upstream_is_ejected_after_failures_in_a_row_for_longer_each_time() {
        let mut now = Instant::now();
        let mut upstream = Availability::default();
        for seconds in [1, 2, 4, 8, 16, 32, 60, 60] {
            let time = Duration::from_secs(seconds);
            while upstream.failures + 1 < MAX_FAILURES {
                assert_eq!(upstream.on_failure(now), None);
            }
            assert_eq!(upstream.on_failure(now), Some(time));
            assert!(upstream.is_ejected(now + time / 2));
            assert_eq!(upstream.on_failure(now + time / 2), None, "it is ejected already");
            now += time;
            assert!(!upstream.is_ejected(now), "it gets another chance");
        }
        upstream.on_success();
        assert_eq!(upstream, Availability::default());
    }

    #[test]
    fn one_success_between_failures_prevents_the_ejection() {
        let mut upstream = Availability::default();
        for failure in 0..4 * MAX_FAILURES {
            if failure % (MAX_FAILURES - 1) == 0 {
                upstream.on_success();
            }
            assert_eq!(upstream.on_failure(Instant::now()), None);
        }
    }

    #[test]
    fn an_upstream_that_comes_back_starts_afresh() {
        let now = Instant::now();
        let mut upstream = Availability::default();
        assert!(!upstream.is_reachable(), "nothing is known yet");
        assert!(upstream.set_reachable(true) && !upstream.set_reachable(true));
        (0..MAX_FAILURES).for_each(|_| _ = upstream.on_failure(now));
        assert!(upstream.is_ejected(now));
        assert!(upstream.set_reachable(false) && upstream.set_reachable(true));
        assert!(upstream.is_reachable() && !upstream.is_ejected(now));
    }
}
