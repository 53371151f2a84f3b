//! Measurements and how they are compared.

use std::time::Duration;

use cudock_loadgen::LoadReport;
use schemars::JsonSchema;
use serde::Serialize;

/// A larger share of requests without a response makes a load too high.
const MAX_ERRORS: f64 = 0.01;

/// Throughput and latency under a load.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Measurement {
    pub rows_per_second: f64,
    pub p50_ms: f64,
    pub p99_ms: f64,
    /// Share of requests without a successful response.
    pub errors: f64,
}

impl Measurement {
    #[allow(clippy::cast_precision_loss, reason = "counts become a share")]
    pub(crate) fn of(report: &LoadReport) -> Self {
        let unsuccessful =
            report.refused.count + report.failed.count + report.broken_count() + report.unanswered;
        Self {
            rows_per_second: report.rows_per_second,
            p50_ms: report.latency.p50_ms,
            p99_ms: report.latency.p99_ms,
            errors: unsuccessful as f64 / (report.requests as f64).max(1.0),
        }
    }

    /// The typical measurement of several runs, without those that were unusually fast or slow.
    pub(crate) fn typical(runs: &[Self]) -> Option<Self> {
        let typical = |field: fn(&Self) -> f64| middle_mean(&runs.iter().map(field).collect::<Vec<_>>());
        (!runs.is_empty()).then(|| Self {
            rows_per_second: typical(|run| run.rows_per_second),
            p50_ms: typical(|run| run.p50_ms),
            p99_ms: typical(|run| run.p99_ms),
            errors: typical(|run| run.errors),
        })
    }

    /// Whether latency and errors are within bounds.
    pub fn is_within(&self, target_p99: Option<Duration>) -> bool {
        self.rows_per_second > 0.0
            && self.errors <= MAX_ERRORS
            && target_p99.is_none_or(|target| self.p99_ms <= target.as_secs_f64() * 1e3)
    }

    pub(crate) fn score(&self, target_p99: Option<Duration>) -> Score {
        if self.is_within(target_p99) {
            Score::Within(self.rows_per_second)
        } else if self.rows_per_second > 0.0 {
            Score::Beyond(1e3 / self.p99_ms.max(1e-6) * (1.0 - self.errors))
        } else {
            Score::Failed
        }
    }
}

/// The mean of the middle half of some values: as insensitive to a few outliers as the median, with less noise. Zero if there
/// are none.
#[allow(clippy::cast_precision_loss, reason = "a few values")]
pub(crate) fn middle_mean(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    let outside = (values.len() + 1) / 4;
    let middle = values.get(outside..values.len() - outside).unwrap_or_default();
    middle.iter().sum::<f64>() / (middle.len() as f64).max(1.0)
}

/// How good a measurement is. Every one within the target is better than every other.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub(crate) enum Score {
    Failed,
    /// The target is missed: the nearer to it, the higher.
    Beyond(f64),
    /// Rows per second.
    Within(f64),
}

impl Score {
    /// Whether it is higher by more than a share of the other.
    pub(crate) fn beats(self, other: Self, share: f64) -> bool {
        match (self, other) {
            (Self::Within(one), Self::Within(other)) | (Self::Beyond(one), Self::Beyond(other)) => {
                one > other * (1.0 + share)
            }
            _ => self > other,
        }
    }

    /// Its logarithm, on a scale on which everything within the target is far above the rest.
    pub(crate) fn log(self) -> f64 {
        const FAR: f64 = 100.0;
        match self {
            Self::Within(score) => score.ln(),
            Self::Beyond(score) => score.max(1e-9).ln() - FAR,
            Self::Failed => -2.0 * FAR,
        }
    }

    /// Its ratio to another one of the same kind.
    pub(crate) fn ratio(self, other: Self) -> f64 {
        match (self, other) {
            (Self::Within(one), Self::Within(other)) | (Self::Beyond(one), Self::Beyond(other)) => {
                one / other.max(f64::MIN_POSITIVE)
            }
            _ => f64::from(self > other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latency_within_the_target_comes_before_throughput() {
        let run =
            |rows_per_second, p99_ms, errors| Measurement { rows_per_second, p50_ms: 1.0, p99_ms, errors };
        let target = Some(Duration::from_millis(20));
        let ranking = [
            run(0.0, 0.0, 0.0),
            run(900.0, 60.0, 0.0),
            run(900.0, 30.0, 0.0),
            run(10.0, 20.0, 0.0),
            run(100.0, 5.0, 0.005),
        ];
        for pair in ranking.windows(2) {
            assert!(pair[1].score(target).beats(pair[0].score(target), 0.01), "{pair:?}");
        }
        assert!(run(900.0, 60.0, 0.0).is_within(None));
        assert!(!run(900.0, 5.0, 0.02).is_within(None), "two of a hundred requests were rejected");
        assert!(!Score::Within(100.5).beats(Score::Within(100.0), 0.01));
    }

    #[test]
    fn unusual_runs_do_not_count() {
        let run = |rows_per_second| Measurement { rows_per_second, p50_ms: 1.0, p99_ms: 2.0, errors: 0.0 };
        for (rates, typical) in [
            (&[][..], None),
            (&[10.0], Some(10.0)),
            (&[10.0, 30.0], Some(20.0)),
            (&[12.0, 1.0, 10.0], Some(10.0)),
            (&[10.0, 12.0, 1.0, 90.0], Some(11.0)),
            (&[90.0, 11.0, 10.0, 12.0, 1.0], Some(11.0)),
            (&[90.0, 11.0, 80.0, 10.0, 12.0, 1.0, 2.0, 11.0], Some(11.0)),
        ] {
            let runs: Vec<Measurement> = rates.iter().map(|rate| run(*rate)).collect();
            assert_eq!(Measurement::typical(&runs), typical.map(run), "{rates:?}");
        }
    }
}
