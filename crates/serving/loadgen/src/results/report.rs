//! The report of a run.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::load::{Load, LoadSettings};
use crate::results::counters::{Latencies, LoadCounters, SLOTS};

#[derive(Clone, Debug, serde::Serialize, schemars::JsonSchema)]
pub struct LoadReport {
    pub load: Load,
    pub seconds: f64,
    pub warm_up_seconds: f64,
    /// Requests whose intended send time is in the measurement.
    pub requests: u64,
    /// The same per second.
    pub offered_per_second: f64,
    /// Successful responses per second.
    pub goodput_per_second: f64,
    /// Rows of successful responses per second.
    pub rows_per_second: f64,
    /// Latency of 2xx responses.
    pub latency: Latency,
    /// Latency of 429 and 503 responses.
    pub refused: Latency,
    /// Latency of all other responses.
    pub failed: Latency,
    pub statuses: BTreeMap<u16, u64>,
    /// Requests without a response because a connection failed, by reason.
    pub broken: BTreeMap<String, u64>,
    /// Requests without a response at the end of the grace period.
    pub unanswered: u64,
    pub checked: u64,
    pub wrong: u64,
    /// How late requests were sent (open loop): time spent waiting for a connection, or for the generator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sent_late: Option<Latency>,
    pub connections: usize,
    /// CPU utilization of the generator (closed loop). Close to 1, the generator is the bottleneck.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generator_busy: Option<f64>,
    /// Successful responses per second, over time.
    pub timeline: Timeline,
}

/// Latency in milliseconds.
#[derive(Clone, Debug, Default, serde::Serialize, schemars::JsonSchema)]
pub struct Latency {
    pub count: u64,
    pub mean_ms: f64,
    pub p50_ms: f64,
    pub p90_ms: f64,
    pub p99_ms: f64,
    pub p999_ms: f64,
    pub max_ms: f64,
    /// Shares of the responses and what they took at most, for a curve.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub curve: Vec<(f64, f64)>,
}

/// A rate over time.
#[derive(Clone, Debug, Default, serde::Serialize, schemars::JsonSchema)]
pub struct Timeline {
    pub slot_seconds: f64,
    pub per_second: Vec<f64>,
}

impl LoadReport {
    #[allow(clippy::cast_precision_loss, reason = "counts become rates for people")]
    pub(crate) fn new(settings: &LoadSettings, counters: &LoadCounters, busy: Option<f64>) -> Self {
        let seconds = settings.duration.as_secs_f64().max(1e-9);
        let per_second = |count: u64| count as f64 / seconds;
        let slot_seconds = seconds / SLOTS as f64;
        let open = matches!(settings.load, Load::Open { .. });
        Self {
            load: settings.load,
            seconds,
            warm_up_seconds: settings.warm_up.as_secs_f64(),
            requests: counters.started,
            offered_per_second: per_second(counters.started),
            goodput_per_second: per_second(counters.good),
            rows_per_second: per_second(counters.good_rows),
            latency: Latency::with_curve(&counters.accepted),
            refused: Latency::new(&counters.refused),
            failed: Latency::new(&counters.failed),
            statuses: counters.statuses.clone(),
            broken: counters.broken.clone(),
            unanswered: counters.unanswered,
            checked: counters.checked,
            wrong: counters.wrong,
            sent_late: open.then(|| Latency::new(&counters.late)),
            connections: counters.connections,
            generator_busy: busy,
            timeline: Timeline {
                slot_seconds,
                per_second: counters.slots.iter().map(|count| *count as f64 / slot_seconds).collect(),
            },
        }
    }

    pub fn broken_count(&self) -> u64 {
        self.broken.values().sum()
    }

    /// Whether the server kept up: latency is within the target, and nearly all requests succeeded.
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
            // Ten points for each further nine, as far as there are responses. The fastest alone are left out:
            // they say little and would stretch every chart.
            #[allow(clippy::cast_precision_loss, reason = "a count of responses")]
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

/// Rounds to a microsecond, the resolution of the histograms.
fn round(milliseconds: f64) -> f64 {
    (milliseconds * 1e3).round() / 1e3
}
