//! The report of `cudock sweep show --format json`.

use std::collections::BTreeMap;

use cudock_base::{Timestamp, Usd};
use cudock_sweep::failure_logs::FailureLogs;
use cudock_sweep::{Assignment, Goal, ParameterValue, Sweep, TargetReached, Trial};
use schemars::JsonSchema;
use serde::Serialize;

use super::values::{reason, steps};

/// A sweep and its trials.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SweepReport<'s> {
    schema: u8,
    name: &'s str,
    /// `running`, `paused` or `ended`.
    state: &'static str,
    /// Why it ended.
    reason: Option<String>,
    objectives: Vec<ObjectiveReport<'s>>,
    /// All trials by number.
    trials: Vec<TrialReport<'s>>,
    /// The number of the best trial, which may be running; with several objectives those of the Pareto front.
    best: Vec<u32>,
    /// The cheapest trial of each size that came to the target of the objective, the cheapest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    cheapest: Vec<TargetReport<'s>>,
    /// US dollars of all attempts so far.
    cost: Usd,
    /// Time that the sweep was active.
    seconds: f64,
}

#[derive(Debug, Serialize, JsonSchema)]
struct ObjectiveReport<'s> {
    metric: &'s str,
    goal: Goal,
    /// A value that is good enough.
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<f64>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct TargetReport<'s> {
    trial: u32,
    /// The size of the machine, if that is a parameter.
    size: Option<&'s str>,
    /// US dollars and time from the start of its last attempt until it reported the target.
    cost: Usd,
    seconds: f64,
}

#[derive(Debug, Serialize, JsonSchema)]
struct TrialReport<'s> {
    id: u32,
    /// `waiting`, `starting`, `running`, `stopping`, `succeeded`, `stopped` or `failed`.
    state: &'static str,
    #[schemars(with = "BTreeMap<String, ParameterValue>")]
    parameters: &'s Assignment,
    /// The best value of each metric so far, or with several objectives the last one; null before
    /// the first.
    best: BTreeMap<&'s str, Option<f64>>,
    /// Reports of the first objective in the last attempt.
    steps: usize,
    /// Why it ended, with the arithmetic of the policy that stopped it.
    reason: Option<String>,
    /// The last lines of the output of a failed trial, as far as it is on this machine.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    log: &'s [String],
    /// US dollars of all attempts so far.
    cost: Usd,
    /// How long all attempts ran.
    seconds: f64,
    attempts: usize,
}

/// The report of a sweep.
pub fn report<'s>(sweep: &'s Sweep, logs: &'s FailureLogs, now: Timestamp) -> SweepReport<'s> {
    let plan = sweep.plan();
    SweepReport {
        schema: 1,
        name: &plan.name,
        state: match sweep.end() {
            Some(_) => "ended",
            None if sweep.is_paused() => "paused",
            None => "running",
        },
        reason: sweep.end().map(|end| end.to_string()),
        objectives: plan
            .objectives
            .iter()
            .map(|each| ObjectiveReport { metric: &each.metric, goal: each.goal, target: each.target })
            .collect(),
        trials: sweep.trials().iter().map(|trial| trial_report(sweep, logs, trial, now)).collect(),
        best: sweep.front().iter().map(|trial| trial.id.0).collect(),
        cheapest: sweep.cheapest().into_iter().map(target_report).collect(),
        cost: sweep.cost(now),
        seconds: sweep.active_time(now).as_secs_f64(),
    }
}

fn target_report(reached: TargetReached<'_>) -> TargetReport<'_> {
    let TargetReached { trial, size, time, cost } = reached;
    TargetReport { trial: trial.id.0, size, cost, seconds: time.as_secs_f64() }
}

fn trial_report<'s>(
    sweep: &'s Sweep,
    logs: &'s FailureLogs,
    trial: &'s Trial,
    now: Timestamp,
) -> TrialReport<'s> {
    let objectives = &sweep.plan().objectives;
    let names = objectives.iter().map(|objective| objective.metric.as_str());
    TrialReport {
        id: trial.id.0,
        state: trial.status.name(),
        parameters: &trial.parameters,
        best: names.zip(trial.scores(objectives)).collect(),
        steps: steps(trial, objectives),
        reason: reason(trial, objectives),
        log: logs.of(trial.id).map_or(&[], |log| &log.lines),
        cost: trial.cost(now),
        seconds: trial.run_time(now).as_secs_f64(),
        attempts: trial.attempts.len(),
    }
}
