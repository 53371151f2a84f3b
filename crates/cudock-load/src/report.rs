//! What came of a run, as numbers.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::run::{Load, Settings};
use crate::tally::{Latencies, SLOTS, Tally};

/// What came of a run.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Report {
    /// What was put on the server.
    pub load: Load,
    /// How long things counted.
    pub seconds: f64,
    /// How long the load lasted before that.
    pub warm_up_seconds: f64,
    /// Requests meant to be sent in that time.
    pub requests: u64,
    /// The same, each second.
    pub offered_per_second: f64,
    /// Answers 2xx that came in that time, each second.
    pub goodput_per_second: f64,
    /// Rows they answer, each second.
    pub rows_per_second: f64,
    /// Latency of answers 2xx.
    pub latency: Latency,
    /// Latency of answers 429 and 503.
    pub refused: Latency,
    /// Latency of all other answers.
    pub failed: Latency,
    /// Answers by status.
    pub statuses: BTreeMap<u16, u64>,
    /// Requests without an answer because a connection could not be made or broke, by reason.
    pub broken: BTreeMap<String, u64>,
    /// Requests without an answer when the grace period was over.
    pub unanswered: u64,
    /// Answers compared with the expected ones.
    pub checked: u64,
    /// Those that differed.
    pub wrong: u64,
    /// How late requests were sent (open loop): time spent waiting for a connection, or for the generator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sent_late: Option<Latency>,
    /// Connections made.
    pub connections: usize,
    /// The share of its time that the generator was at work (closed loop). Near one, the generator is the limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generator_busy: Option<f64>,
    /// Answers 2xx each second, over time.
    pub timeline: Timeline,
}

/// How long answers took, in milliseconds.
#[derive(Clone, Debug, Default, serde::Serialize)]
pub struct Latency {
    /// How many.
    pub count: u64,
    /// On average.
    pub mean_ms: f64,
    /// Half took no longer.
    pub p50_ms: f64,
    /// Nine of ten took no longer.
    pub p90_ms: f64,
    /// 99 of a hundred took no longer.
    pub p99_ms: f64,
    /// 999 of a thousand took no longer.
    pub p999_ms: f64,
    /// The longest.
    pub max_ms: f64,
    /// Shares of the answers and what they took at most, for a curve.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub curve: Vec<(f64, f64)>,
}

/// A rate over time.
#[derive(Clone, Debug, Default, serde::Serialize)]
pub struct Timeline {
    /// Seconds one value stands for.
    pub slot_seconds: f64,
    /// The rate in each.
    pub per_second: Vec<f64>,
}

impl Report {
    #[allow(clippy::cast_precision_loss, reason = "counts become rates for people")]
    pub(crate) fn new(settings: &Settings, tally: &Tally, busy: Option<f64>) -> Self {
        let seconds = settings.duration.as_secs_f64().max(1e-9);
        let per_second = |count: u64| count as f64 / seconds;
        let slot_seconds = seconds / SLOTS as f64;
        let open = matches!(settings.load, Load::Open { .. });
        Self {
            load: settings.load,
            seconds,
            warm_up_seconds: settings.warm_up.as_secs_f64(),
            requests: tally.started,
            offered_per_second: per_second(tally.started),
            goodput_per_second: per_second(tally.good),
            rows_per_second: per_second(tally.good_rows),
            latency: Latency::with_curve(&tally.accepted),
            refused: Latency::new(&tally.refused),
            failed: Latency::new(&tally.failed),
            statuses: tally.statuses.clone(),
            broken: tally.broken.clone(),
            unanswered: tally.unanswered,
            checked: tally.checked,
            wrong: tally.wrong,
            sent_late: open.then(|| Latency::new(&tally.late)),
            connections: tally.connections,
            generator_busy: busy,
            timeline: Timeline {
                slot_seconds,
                per_second: tally.slots.iter().map(|count| *count as f64 / slot_seconds).collect(),
            },
        }
    }

    /// Requests lost because connections could not be made or broke.
    pub fn broken_count(&self) -> u64 {
        self.broken.values().sum()
    }

    /// Whether the server kept up: the latency is within the target, and of what was asked nearly all was answered.
    pub fn meets(&self, p99: Duration, goodput_share: f64) -> bool {
        self.latency.count > 0
            && self.latency.p99_ms <= p99.as_secs_f64() * 1e3
            && self.goodput_per_second >= self.offered_per_second * goodput_share
    }
}

impl Latency {
    fn new(latencies: &Latencies) -> Self {
        if latencies.is_empty() {
            return Self::default();
        }
        let at = |share| milliseconds(latencies.value_at_quantile(share));
        Self {
            count: latencies.len(),
            mean_ms: round(latencies.mean() / 1e6),
            p50_ms: at(0.5),
            p90_ms: at(0.9),
            p99_ms: at(0.99),
            p999_ms: at(0.999),
            max_ms: milliseconds(latencies.max()),
            curve: Vec::new(),
        }
    }

    fn with_curve(latencies: &Latencies) -> Self {
        let mut latency = Self::new(latencies);
        if latency.count > 0 {
            // Ten points for each further nine, as far as there are answers to tell of. The fastest alone are left out:
            // they say little and would stretch every picture.
            #[allow(clippy::cast_precision_loss, reason = "a count of answers")]
            let nines = (latency.count as f64).log10().max(0.1);
            latency.curve = (1..=200)
                .map(|step| f64::from(step) / 10.0)
                .take_while(|nine| *nine < nines)
                .map(|nine| 1.0 - 10_f64.powf(-nine))
                .chain([1.0])
                .map(|share| (share, milliseconds(latencies.value_at_quantile(share))))
                .collect();
        }
        latency
    }
}

#[allow(clippy::cast_precision_loss, reason = "latencies are far below 2^53 nanoseconds")]
fn milliseconds(nanoseconds: u64) -> f64 {
    round(nanoseconds as f64 / 1e6)
}

/// To a microsecond, which is what the histograms hold.
fn round(milliseconds: f64) -> f64 {
    (milliseconds * 1e3).round() / 1e3
}
