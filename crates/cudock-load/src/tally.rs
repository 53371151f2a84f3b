//! What is counted while the load lasts.
//!
//! Two rules, the same for both kinds of load. **Latency** is told of the requests that were meant to be sent inside
//! the window, whenever their answers came. **Rates** are told of the answers that came inside the window, whenever
//! they were asked for. So neither a slow answer nor one that comes in the grace period flatters the server.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

/// The time in which things count.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    pub(crate) start: Instant,
    pub(crate) end: Instant,
}

impl Window {
    fn holds(&self, time: Instant) -> bool {
        self.start <= time && time < self.end
    }
}

/// Latencies in nanoseconds, kept to three digits and to a microsecond.
pub(crate) type Latencies = Histogram<u64>;

/// Slots of the rate over time.
pub(crate) const SLOTS: usize = 100;

/// Counts of one worker, or of all of them together.
#[derive(Debug)]
pub(crate) struct Tally {
    window: Window,
    slot: Duration,
    /// Requests meant to be sent in the window.
    pub(crate) started: u64,
    /// Latencies of answers 2xx.
    pub(crate) accepted: Latencies,
    /// Latencies of answers 429 and 503.
    pub(crate) refused: Latencies,
    /// Latencies of all other answers.
    pub(crate) failed: Latencies,
    /// How late requests were sent, in an open loop.
    pub(crate) late: Latencies,
    pub(crate) statuses: BTreeMap<u16, u64>,
    /// Requests without an answer because a connection could not be made or broke, by reason.
    pub(crate) broken: BTreeMap<String, u64>,
    /// Requests without an answer when the grace period was over.
    pub(crate) unanswered: u64,
    /// Answers 2xx that came in the window, and the rows they answer.
    pub(crate) good: u64,
    pub(crate) good_rows: u64,
    /// The same, over time.
    pub(crate) slots: Vec<u64>,
    pub(crate) checked: u64,
    pub(crate) wrong: u64,
    /// Processor time the workers took, in seconds, and how many workers there were.
    pub(crate) busy: f64,
    pub(crate) connections: usize,
}

impl Tally {
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

    /// A request that was meant to be sent at `intended` is sent now, or never will be.
    pub(crate) fn start(&mut self, intended: Instant) {
        if self.window.holds(intended) {
            self.started += 1;
        }
    }

    /// A request of an open loop leaves.
    pub(crate) fn send(&mut self, intended: Instant, now: Instant) {
        if self.window.holds(intended) {
            record(&mut self.late, now.saturating_duration_since(intended));
        }
    }

    /// An answer has come.
    pub(crate) fn answer(&mut self, intended: Instant, now: Instant, status: u16, rows: usize) {
        let success = (200..300).contains(&status);
        if success && self.window.holds(now) {
            self.good += 1;
            self.good_rows += rows as u64;
            let since = now.saturating_duration_since(self.window.start).as_nanos();
            let number = usize::try_from(since / self.slot.as_nanos().max(1)).unwrap_or(usize::MAX);
            if let Some(slot) = self.slots.get_mut(number.min(SLOTS - 1)) {
                *slot += 1;
            }
        }
        if self.window.holds(intended) {
            *self.statuses.entry(status).or_default() += 1;
            let latencies = match status {
                200..300 => &mut self.accepted,
                429 | 503 => &mut self.refused,
                _ => &mut self.failed,
            };
            record(latencies, now.saturating_duration_since(intended));
        }
    }

    /// A request will have no answer.
    pub(crate) fn lose(&mut self, intended: Instant, reason: &str) {
        if self.window.holds(intended) {
            match self.broken.get_mut(reason) {
                Some(count) => *count += 1,
                None => {
                    self.broken.insert(reason.to_owned(), 1);
                }
            }
        }
    }

    /// A request has no answer, and the time is over.
    pub(crate) fn abandon(&mut self, intended: Instant) {
        if self.window.holds(intended) {
            self.unanswered += 1;
        }
    }

    /// An answer was compared with the expected one.
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
        let mut tally = Tally::new(Window { start: at(1000), end: at(2000) });
        // Sent before the window, answered in it; in it; sent in it, answered behind it; behind it.
        for (sent, answered) in [(900, 1100), (1200, 1300), (1900, 2500), (2100, 2200)] {
            tally.start(at(sent));
            tally.answer(at(sent), at(answered), 200, 4);
        }
        assert_eq!((tally.started, tally.good, tally.good_rows), (2, 2, 8));
        assert_eq!(tally.accepted.len(), 2);
        assert!(tally.accepted.max() >= 599_000_000, "{}", tally.accepted.max());
        assert_eq!(tally.slots.iter().sum::<u64>(), 2);
        assert_eq!(tally.slots.get(10), Some(&1));
    }

    #[test]
    fn refusals_and_failures_are_kept_apart() {
        let start = Instant::now();
        let mut tally = Tally::new(Window { start, end: start + Duration::from_secs(1) });
        for status in [200, 429, 503, 500, 404] {
            tally.answer(start, start + Duration::from_millis(1), status, 1);
        }
        tally.lose(start, "reset");
        tally.abandon(start);
        let mut sum = Tally::new(Window { start, end: start + Duration::from_secs(1) });
        sum.add(&tally);
        sum.add(&tally);
        assert_eq!((sum.accepted.len(), sum.refused.len(), sum.failed.len()), (2, 4, 4));
        assert_eq!((sum.good, sum.unanswered, sum.broken.get("reset")), (2, 2, Some(&2)));
        assert_eq!(sum.statuses.get(&429), Some(&2));
    }

    #[test]
    fn a_long_latency_is_not_cut_short() {
        let start = Instant::now();
        let mut tally = Tally::new(Window { start, end: start + Duration::from_secs(1) });
        tally.answer(start, start + Duration::from_secs(300), 200, 1);
        assert!(tally.accepted.max() >= 299_000_000_000, "{}", tally.accepted.max());
    }
}
