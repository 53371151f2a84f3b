//! Sweeps for the tests of views, given by their events.

use std::time::Duration;

use cudock_base::{Timestamp, Usd};
use cudock_sweep::failure_logs::FailureLogs;
use cudock_sweep::policy::{Bandit, EvaluationSchedule, Slack};
use cudock_sweep::{
    Assignment, AttemptEnd, Condition, Distribution, Event, Goal, MetricFormat, MetricSource, Objective,
    Parameter, ParameterValue, PassMode, Record, SamplerKind, Space, Sweep, SweepAction, SweepEnd,
    SweepLimits, SweepPlan, TerminationPolicy, TrialHandle, TrialId,
};

/// A sweep and its clock.
pub(crate) struct Story {
    pub(crate) sweep: Sweep,
    pub(crate) logs: FailureLogs,
    pub(crate) now: Timestamp,
}

impl Story {
    pub(crate) fn new(plan: SweepPlan) -> Self {
        let now = Timestamp::parse("2026-11-17T08:00:00Z").unwrap();
        let price_per_hour = Some(Usd::from_cents(360));
        let event = Event::Created { plan: Box::new(plan), slots: 8, price_per_hour };
        let sweep = Sweep::replay(&[Record { at: now, event }]).unwrap();
        Self { sweep, logs: FailureLogs::default(), now }
    }

    pub(crate) fn record(&mut self, event: Event) {
        self.sweep.apply(&Record { at: self.now, event }).unwrap();
    }

    /// Starts the next trial.
    pub(crate) fn start(&mut self, parameters: &[(&str, ParameterValue)]) -> TrialId {
        let trial = TrialId(u32::try_from(self.sweep.trials().len()).unwrap());
        let parameters: Assignment =
            parameters.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        self.record(Event::Proposed { trial, parameters });
        self.attempt(trial, 1);
        trial
    }

    pub(crate) fn attempt(&mut self, trial: TrialId, attempt: u32) {
        let slot = (0..8).find(|slot| self.sweep.live().all(|(_, live)| live.slot != *slot)).unwrap();
        self.record(Event::Starting { trial, attempt, slot });
        let handle = TrialHandle::Process { pid: 100 + trial.0, start_time: 1 };
        self.record(Event::Started { trial, attempt, handle });
    }

    /// Reports values of a metric, ten seconds apart, and carries out the stops that follow. The trial ends if it is one.
    pub(crate) fn report(&mut self, trial: TrialId, metric: &str, values: &[f64]) {
        for value in values {
            self.now = self.now.plus(Duration::from_secs(10));
            let attempt = self.sweep.trial(trial).unwrap().attempt().unwrap();
            let (number, interval) = (attempt.number, attempt.reports(metric) + 1);
            let event = Event::Reported {
                trial,
                attempt: number,
                metric: metric.to_owned(),
                interval,
                step: Some(interval),
                value: *value,
            };
            self.record(event);
            let stops = self
                .sweep
                .next(self.now)
                .into_iter()
                .filter(|action| matches!(action, SweepAction::Stop { .. }));
            for event in stops.flat_map(|stop| stop.events()).collect::<Vec<_>>() {
                self.record(event);
                self.end(trial, AttemptEnd::Signaled { signal: 15 });
            }
        }
    }

    pub(crate) fn end(&mut self, trial: TrialId, end: AttemptEnd) {
        let attempt = self.sweep.trial(trial).unwrap().attempt().unwrap();
        let (attempt, ran) = (attempt.number, self.now.since(attempt.starting));
        self.record(Event::Ended { trial, attempt, end, ran });
    }

    pub(crate) fn succeed(&mut self, trial: TrialId) {
        self.end(trial, AttemptEnd::Exited { code: 0 });
    }
}

pub(crate) fn objective(metric: &str, goal: Goal) -> Objective {
    Objective { metric: metric.to_owned(), goal, target: None }
}

pub(crate) fn plan(name: &str, objectives: Vec<Objective>, parameters: Vec<Parameter>) -> SweepPlan {
    SweepPlan {
        name: name.to_owned(),
        command: vec!["train".to_owned()],
        image: None,
        space: Space { parameters },
        machine: None,
        pass: PassMode::Arguments,
        objectives,
        metrics: MetricSource::Stdout(MetricFormat::Pairs),
        sampler: SamplerKind::Random,
        seed: 1,
        policy: None,
        limits: SweepLimits { trials: Some(27), ..SweepLimits::default() },
        gpus_per_trial: 1,
        trials_per_gpu: 1,
        gpu_memory: None,
        retries: 0,
    }
}

pub(crate) fn parameter(name: &str, distribution: Distribution) -> Parameter {
    Parameter { name: name.to_owned(), distribution, conditions: Vec::new() }
}

pub(crate) fn text(value: &str) -> ParameterValue {
    ParameterValue::Text(value.to_owned())
}

/// One objective, a bandit policy and a conditional parameter. Trial 0 succeeded, 1 was stopped by the policy, 2 succeeded
/// after a value that is not a number, 3 failed twice, 4 runs.
pub(crate) fn digits() -> Story {
    use ParameterValue::{Float, Int};
    let optimizers = Distribution::Choice(vec![text("adam"), text("sgd")]);
    let conditions = vec![Condition { parent: "optimizer".to_owned(), values: vec![text("sgd")] }];
    let momentum = Distribution::Uniform { min: 0.0, max: 1.0 };
    let parameters = vec![
        parameter("lr", Distribution::LogUniform { min: 1e-4, max: 0.1 }),
        parameter("layers", Distribution::RandInt { start: 1, end: 5 }),
        parameter("optimizer", optimizers),
        Parameter { conditions, ..parameter("momentum", momentum) },
        parameter("weight_decay", Distribution::Normal { mean: 0.0, deviation: 0.5 }),
    ];
    let mut plan = plan("digits", vec![objective("accuracy", Goal::Maximize)], parameters);
    let schedule = EvaluationSchedule { interval: 1, delay: 2 };
    plan.policy = Some(TerminationPolicy::Bandit(Bandit { slack: Slack::Factor(0.2), schedule }));
    plan.retries = 1;
    let mut story = Story::new(plan);
    let adam = |lr: f64, layers: i64| {
        [
            ("lr", Float(lr)),
            ("layers", Int(layers)),
            ("optimizer", text("adam")),
            ("weight_decay", Float(0.25)),
        ]
    };
    let first = story.start(&adam(0.01, 2));
    story.report(first, "accuracy", &[0.5, 0.8, 0.85]);
    story.succeed(first);
    let second = story.start(&[
        ("lr", Float(0.1)),
        ("layers", Int(1)),
        ("optimizer", text("sgd")),
        ("momentum", Float(0.9)),
        ("weight_decay", Float(-0.5)),
    ]);
    story.report(second, "accuracy", &[0.4, 0.61]);
    let third = story.start(&adam(0.003, 4));
    story.report(third, "accuracy", &[0.7, f64::NAN, 0.9132]);
    story.succeed(third);
    let fourth = story.start(&adam(0.0001, 3));
    story.report(fourth, "accuracy", &[0.3]);
    story.end(fourth, AttemptEnd::Exited { code: 1 });
    story.attempt(fourth, 2);
    story.end(fourth, AttemptEnd::Exited { code: 1 });
    let fifth = story.start(&adam(0.02, 2));
    story.report(fifth, "accuracy", &[0.55, 0.75]);
    story
}

/// Two objectives; trials 0 and 1 are the front, 2 is dominated.
pub(crate) fn tradeoff() -> Story {
    let objectives = vec![objective("accuracy", Goal::Maximize), objective("latency_ms", Goal::Minimize)];
    let widths = Distribution::Choice([8, 16, 32].map(ParameterValue::Int).to_vec());
    let mut story = Story::new(plan("tradeoff", objectives, vec![parameter("width", widths)]));
    for (width, accuracy, latency) in [(8, 0.8, 5.0), (32, 0.95, 20.0), (16, 0.79, 9.0)] {
        let trial = story.start(&[("width", ParameterValue::Int(width))]);
        story.report(trial, "accuracy", &[accuracy]);
        story.report(trial, "latency_ms", &[latency]);
        story.succeed(trial);
    }
    story.record(Event::Finished { end: SweepEnd::Trials });
    story
}
