//! Measurements and how they are compared.

use std::time::Duration;

use cudock_load::LoadReport;
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

    /// The mean of several runs.
    #[allow(clippy::cast_precision_loss, reason = "a few runs")]
    pub(crate) fn mean(runs: &[Self]) -> Option<Self> {
        let mean = |field: fn(&Self) -> f64| runs.iter().map(field).sum::<f64>() / runs.len() as f64;
        (!runs.is_empty()).then(|| Self {
            rows_per_second: mean(|run| run.rows_per_second),
            p50_ms: mean(|run| run.p50_ms),
            p99_ms: mean(|run| run.p99_ms),
            errors: mean(|run| run.errors),
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
    fn the_mean_of_no_runs_is_none() {
        assert_eq!(Measurement::mean(&[]), None);
        let run = |rows_per_second| Measurement { rows_per_second, p50_ms: 1.0, p99_ms: 2.0, errors: 0.0 };
        assert_eq!(Measurement::mean(&[run(10.0), run(30.0)]), Some(run(20.0)));
    }
}
