//! A trial and its attempts.

use std::collections::BTreeMap;
use std::time::Duration;

use cudock_base::{Timestamp, Usd};

use crate::event::{AttemptEnd, StopReason, TrialHandle};
use crate::objective::Objective;
use crate::space::Assignment;
use crate::trial_id::TrialId;

/// One assignment of parameters, and its outcome.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    pub id: TrialId,
    pub parameters: Assignment,
    pub proposed: Timestamp,
    /// All attempts in order; only the last one counts.
    pub attempts: Vec<TrialAttempt>,
    /// Why it was stopped.
    pub stop: Option<StopReason>,
    pub status: TrialStatus,
    /// A finite value for each objective, once it has succeeded or was stopped: the best one for a single objective, the
    /// last ones for several, because the best of each may be of different states of a model.
    pub result: Option<Vec<f64>>,
}

/// One execution of a trial.
#[derive(Debug, Clone, PartialEq)]
pub struct TrialAttempt {
    /// Number of the attempt, from 1.
    pub number: u32,
    pub slot: u32,
    pub starting: Timestamp,
    pub started: Option<Timestamp>,
    /// None if it is not known whether it was started.
    pub handle: Option<TrialHandle>,
    /// The reports of each metric.
    pub curves: BTreeMap<String, Vec<MetricPoint>>,
    pub end: Option<AttemptEnd>,
    /// How long it ran, once it has ended.
    pub ran: Duration,
    pub(super) price_per_hour: Option<Usd>,
}

/// A report of a metric.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MetricPoint {
    /// The program's own number for the step.
    pub step: Option<u64>,
    pub value: f64,
    pub at: Timestamp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrialStatus {
    /// It is to be started, for the first time or again.
    Waiting,
    Starting,
    Running,
    /// A stop was decided, and it still exists.
    Stopping,
    Succeeded,
    Stopped,
    Failed,
}

impl TrialStatus {
    pub fn is_ended(self) -> bool {
        matches!(self, Self::Succeeded | Self::Stopped | Self::Failed)
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Stopping => "stopping",
            Self::Succeeded => "succeeded",
            Self::Stopped => "stopped",
            Self::Failed => "failed",
        }
    }
}

impl TrialAttempt {
    /// The number of reports of a metric.
    pub fn reports(&self, metric: &str) -> u64 {
        self.curves.get(metric).map_or(0, |points| points.len() as u64)
    }

    /// Its cost until now, or until its end.
    pub(super) fn cost(&self, now: Timestamp) -> Usd {
        self.price_per_hour.map_or(Usd::ZERO, |price| cost_of(price, self.time(now)))
    }

    /// How long it has run.
    pub(super) fn time(&self, now: Timestamp) -> Duration {
        if self.end.is_some() { self.ran } else { now.since(self.starting) }
    }
}

/// The cost of a time, rounded up to a billionth of a dollar.
pub(super) fn cost_of(price_per_hour: Usd, time: Duration) -> Usd {
    price_per_hour.share(time.as_millis(), 3_600_000)
}

impl Trial {
    /// The last attempt.
    pub fn attempt(&self) -> Option<&TrialAttempt> {
        self.attempts.last()
    }

    /// Attempts that have ended, except for those that the sweep took with it.
    pub(super) fn failures(&self) -> u32 {
        let ends = self.attempts.iter().filter_map(|attempt| attempt.end.as_ref());
        let failures = ends.filter(|end| **end != AttemptEnd::Interrupted).count();
        u32::try_from(failures).unwrap_or(u32::MAX)
    }

    /// Why it ended, with the arithmetic; none while it has not.
    pub fn ending(&self, objectives: &[Objective]) -> Option<String> {
        let id = self.id;
        Some(match (self.status, &self.stop) {
            (TrialStatus::Succeeded, _) => format!("trial {id} succeeded"),
            (TrialStatus::Stopped, Some(StopReason::Policy(decision))) => {
                format!("trial {id} stopped at step {}: {decision}", decision.interval)
            }
            (TrialStatus::Stopped, Some(reason)) => format!("trial {id} stopped: {reason}"),
            (TrialStatus::Failed, _) => match self.attempt().and_then(|attempt| attempt.end.as_ref()) {
                Some(AttemptEnd::Exited { code: 0 }) => {
                    format!("trial {id} failed: {}", self.missing(objectives))
                }
                Some(end) => format!("trial {id} failed: {end}"),
                None => format!("trial {id} failed: not started before the end of the sweep"),
            },
            _ => return None,
        })
    }

    /// Names the objective without a result.
    fn missing(&self, objectives: &[Objective]) -> String {
        let is_missing = |objective: &&Objective| self.value(objective, objectives.len() == 1).is_none();
        let Some(Objective { metric, .. }) = objectives.iter().find(is_missing) else {
            return "no result".to_owned();
        };
        match self.attempt().map_or(0, |attempt| attempt.reports(metric)) {
            0 => format!("metric `{metric}` was never reported"),
            _ => format!("metric `{metric}` has no finite value"),
        }
    }

    /// The values that rank it: its result, or while it runs, what it has reached so far.
    pub fn standing(&self, objectives: &[Objective]) -> Option<Vec<f64>> {
        match self.status {
            TrialStatus::Starting | TrialStatus::Running | TrialStatus::Stopping => self.values(objectives),
            _ => self.result.clone(),
        }
    }

    /// The values of the objectives; none if one is missing.
    pub(super) fn values(&self, objectives: &[Objective]) -> Option<Vec<f64>> {
        objectives.iter().map(|objective| self.value(objective, objectives.len() == 1)).collect()
    }

    /// The value of each objective: its result, or what it has reached so far.
    pub fn scores(&self, objectives: &[Objective]) -> Vec<Option<f64>> {
        if let Some(result) = &self.result {
            return result.iter().copied().map(Some).collect();
        }
        objectives.iter().map(|objective| self.value(objective, objectives.len() == 1)).collect()
    }

    /// The best value if there is one objective, and the last if there are several.
    fn value(&self, objective: &Objective, is_only: bool) -> Option<f64> {
        let mut values = self.curve(&objective.metric).iter().map(|point| point.value);
        if is_only {
            objective.goal.best(values)
        } else {
            values.next_back().filter(|value| value.is_finite())
        }
    }

    /// The reports of a metric in the last attempt.
    pub fn curve(&self, metric: &str) -> &[MetricPoint] {
        self.attempt().and_then(|attempt| attempt.curves.get(metric)).map_or(&[], Vec::as_slice)
    }

    /// How long all attempts ran, up to now.
    pub fn run_time(&self, now: Timestamp) -> Duration {
        self.attempts.iter().map(|attempt| attempt.time(now)).sum()
    }

    /// The cost of all attempts until now.
    pub fn cost(&self, now: Timestamp) -> Usd {
        self.attempts.iter().map(|attempt| attempt.cost(now)).sum()
    }
}
