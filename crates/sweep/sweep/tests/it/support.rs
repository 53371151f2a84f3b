//! Plans and events for tests.

use std::time::Duration;

use cudock_base::Timestamp;
use cudock_sweep::{
    AttemptEnd, Distribution, Event, Goal, MetricFormat, MetricSource, Objective, Parameter, ParameterValue,
    PassMode, Record, SamplerKind, Space, SweepLimits, SweepPlan, TrialHandle, TrialId,
};

/// A plan with one parameter `x` in 0..1 and one objective `score` to maximize.
pub(crate) fn plan(trials: u32) -> SweepPlan {
    SweepPlan {
        name: "test".to_owned(),
        command: vec!["train".to_owned()],
        image: None,
        space: Space { parameters: vec![uniform("x")] },
        machine: None,
        pass: PassMode::Arguments,
        objectives: vec![objective("score", Goal::Maximize)],
        metrics: MetricSource::Stdout(MetricFormat::Pairs),
        sampler: SamplerKind::Random,
        seed: 7,
        policy: None,
        limits: SweepLimits { trials: Some(trials), ..SweepLimits::default() },
        gpus_per_trial: 1,
        trials_per_gpu: 1,
        gpu_memory: None,
        retries: 0,
    }
}

pub(crate) fn objective(metric: &str, goal: Goal) -> Objective {
    Objective { metric: metric.to_owned(), goal, target: None }
}

pub(crate) fn uniform(name: &str) -> Parameter {
    let distribution = Distribution::Uniform { min: 0.0, max: 1.0 };
    Parameter { name: name.to_owned(), distribution, conditions: Vec::new() }
}

pub(crate) fn text(value: &str) -> ParameterValue {
    ParameterValue::Text(value.to_owned())
}

/// A number of seconds after the epoch of the tests.
pub(crate) fn at(seconds: u64) -> Timestamp {
    Timestamp::from_millis(1_794_745_800_000 + seconds * 1000)
}

pub(crate) fn record(seconds: u64, event: Event) -> Record {
    Record { at: at(seconds), event }
}

pub(crate) fn created(plan: SweepPlan, slots: u32) -> Event {
    Event::Created { plan: Box::new(plan), slots, price_per_hour: None }
}

pub(crate) fn started(trial: u32, attempt: u32) -> Event {
    let handle = TrialHandle::Process { pid: 100 + trial, start_time: u64::from(attempt) };
    Event::Started { trial: TrialId(trial), attempt, handle }
}

pub(crate) fn reported(trial: u32, attempt: u32, metric: &str, interval: u64, value: f64) -> Event {
    Event::Reported { trial: TrialId(trial), attempt, metric: metric.to_owned(), interval, step: None, value }
}

pub(crate) fn ended(trial: u32, attempt: u32, code: i32, seconds: u64) -> Event {
    let end = AttemptEnd::Exited { code };
    Event::Ended { trial: TrialId(trial), attempt, end, ran: Duration::from_secs(seconds) }
}
