//! Counters of a run.
//!
//! Two rules, for both kinds of load. **Latency** is measured for requests whose intended send time is inside the
//! window, whenever their responses arrive. **Rates** are measured for responses that arrive inside the window,
//! whenever their requests were sent. So neither a slow response nor one in the grace period flatters the server.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    pub(crate) start: Instant,
    pub(crate) end: Instant,
}

impl Window {
    fn contains(&self, time: Instant) -> bool {
        self.start <= time && time < self.end
    }
}

/// Latencies in nanoseconds, kept to three digits and to a microsecond.
pub(crate) type Latencies = Histogram<u64>;

/// Slots of the rate over time.
pub(crate) const SLOTS: usize = 100;

/// Counters of one worker, or of all together.
#[derive(Debug)]
pub(crate) struct LoadCounters {
    window: Window,
    slot: Duration,
    /// Requests whose intended send time is in the window.
    pub(crate) started: u64,
    /// Latencies of 2xx responses.
    pub(crate) accepted: Latencies,
    /// Latencies of 429 and 503 responses.
    pub(crate) refused: Latencies,
    /// Latencies of all other responses.
    pub(crate) failed: Latencies,
    /// How late requests were sent, in an open loop.
    pub(crate) late: Latencies,
    pub(crate) statuses: BTreeMap<u16, u64>,
    /// Requests without a response because a connection failed, by reason.
    pub(crate) broken: BTreeMap<String, u64>,
    /// Requests without a response at the end of the grace period.
    pub(crate) unanswered: u64,
    /// 2xx responses in the window, and their rows.
    pub(crate) good: u64,
    pub(crate) good_rows: u64,
    /// The same over time.
    pub(crate) slots: Vec<u64>,
    pub(crate) checked: u64,
    pub(crate) wrong: u64,
    /// CPU time of the workers in seconds, and the number of connections.
    pub(crate) busy: f64,
    pub(crate) connections: usize,
}

impl LoadCounters {
    pub(crate) fn new(window: Window) -> Self {
        let slots = u32::try_from(SLOTS).unwrap_or(1);
        let slot = (window.end.saturating_duration_since(window.start) / slots).max(Duration::from_micros(1));
        Self {
            window,
            slot,
            started: 0,
            accepted: latencies(),
            refused: latencies(),
            failed: latencies(),
            late: latencies(),
            statuses: BTreeMap::new(),
            broken: BTreeMap::new(),
            unanswered: 0,
            good: 0,
            good_rows: 0,
            slots: vec![0; SLOTS],
            checked: 0,
            wrong: 0,
            busy: 0.0,
            connections: 0,
        }
    }

    /// Counts a request that is sent now, or never will be.
    pub(crate) fn start(&mut self, intended: Instant) {
        if self.window.contains(intended) {
            self.started += 1;
        }
    }

    /// Counts a sent request of an open loop.
    pub(crate) fn send(&mut self, intended: Instant, now: Instant) {
        if self.window.contains(intended) {
            record(&mut self.late, now.saturating_duration_since(intended));
        }
    }

    pub(crate) fn response(&mut self, intended: Instant, now: Instant, status: u16, rows: usize) {
        let success = (200..300).contains(&status);
        if success && self.window.contains(now) {
            self.good += 1;
            self.good_rows += rows as u64;
            let since = now.saturating_duration_since(self.window.start).as_nanos();
            let number = usize::try_from(since / self.slot.as_nanos().max(1)).unwrap_or(usize::MAX);
            if let Some(slot) = self.slots.get_mut(number.min(SLOTS - 1)) {
                *slot += 1;
            }
        }
        if self.window.contains(intended) {
            *self.statuses.entry(status).or_default() += 1;
            let latencies = match status {
                200..300 => &mut self.accepted,
                429 | 503 => &mut self.refused,
                _ => &mut self.failed,
            };
            record(latencies, now.saturating_duration_since(intended));
        }
    }

    /// Counts a request that will have no response.
    pub(crate) fn lose(&mut self, intended: Instant, reason: &str) {
        if self.window.contains(intended) {
            *self.broken.entry(reason.to_owned()).or_default() += 1;
        }
    }

    /// Counts a request without a response at the end.
    pub(crate) fn abandon(&mut self, intended: Instant) {
        if self.window.contains(intended) {
            self.unanswered += 1;
        }
    }

    pub(crate) fn check(&mut self, right: bool) {
        self.checked += 1;
        self.wrong += u64::from(!right);
    }

    /// Adds what another worker counted in the same window.
    pub(crate) fn add(&mut self, other: &Self) {
        self.started += other.started;
        for (into, from) in [
            (&mut self.accepted, &other.accepted),
            (&mut self.refused, &other.refused),
            (&mut self.failed, &other.failed),
            (&mut self.late, &other.late),
        ] {
            // Histograms that grow by themselves take all of each other's values.
            let _ = into.add(from);
        }
        for (status, count) in &other.statuses {
            *self.statuses.entry(*status).or_default() += count;
        }
        for (reason, count) in &other.broken {
            *self.broken.entry(reason.clone()).or_default() += count;
        }
        self.unanswered += other.unanswered;
        self.good += other.good;
        self.good_rows += other.good_rows;
        for (into, from) in self.slots.iter_mut().zip(&other.slots) {
            *into += from;
        }
        self.checked += other.checked;
        self.wrong += other.wrong;
        self.busy += other.busy;
        self.connections += other.connections;
    }
}

fn latencies() -> Latencies {
    // The bounds are right by themselves: low at least one, high at least twice low, digits at most five.
    let mut histogram = Histogram::new_with_bounds(1_000, 60_000_000_000, 3)
        .unwrap_or_else(|_| unreachable!("constant bounds"));
    histogram.auto(true);
    histogram
}

fn record(latencies: &mut Latencies, latency: Duration) {
    let nanoseconds = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
    // A histogram that grows by itself takes every value.
    let _ = latencies.record(nanoseconds);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latency_goes_by_the_intended_time_and_rates_by_the_answer() {
        let start = Instant::now();
        let at = |milliseconds| start + Duration::from_millis(milliseconds);
        let mut counters = LoadCounters::new(Window { start: at(1000), end: at(2000) });
        // Sent before the window, completed in it; in it; sent in it, completed behind it; behind it.
        for (sent, completed) in [(900, 1100), (1200, 1300), (1900, 2500), (2100, 2200)] {
            counters.start(at(sent));
            counters.response(at(sent), at(completed), 200, 4);
        }
        assert_eq!((counters.started, counters.good, counters.good_rows), (2, 2, 8));
        assert_eq!(counters.accepted.len(), 2);
        assert!(counters.accepted.max() >= 599_000_000, "{}", counters.accepted.max());
        assert_eq!(counters.slots.iter().sum::<u64>(), 2);
        assert_eq!(counters.slots.get(10), Some(&1));
    }

    #[test]
    fn refusals_and_failures_are_kept_apart() {
        let start = Instant::now();
        let mut counters = LoadCounters::new(Window { start, end: start + Duration::from_secs(1) });
        for status in [200, 429, 503, 500, 404] {
            counters.response(start, start + Duration::from_millis(1), status, 1);
        }
        counters.lose(start, "reset");
        counters.abandon(start);
        let mut sum = LoadCounters::new(Window { start, end: start + Duration::from_secs(1) });
        sum.add(&counters);
        sum.add(&counters);
        assert_eq!((sum.accepted.len(), sum.refused.len(), sum.failed.len()), (2, 4, 4));
        assert_eq!((sum.good, sum.unanswered, sum.broken.get("reset")), (2, 2, Some(&2)));
        assert_eq!(sum.statuses.get(&429), Some(&2));
    }

    #[test]
    fn a_long_latency_is_not_cut_short() {
        let start = Instant::now();
        let mut counters = LoadCounters::new(Window { start, end: start + Duration::from_secs(1) });
        counters.response(start, start + Duration::from_secs(300), 200, 1);
        assert!(counters.accepted.max() >= 299_000_000_000, "{}", counters.accepted.max());
    }
}
