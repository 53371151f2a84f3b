//! How long a journal of 100,000 events takes to read and replay, with each policy: the promise is 1 s.
#![allow(clippy::unwrap_used, reason = "a measurement that fails panics")]

use std::time::{Duration, Instant};

use cudock_base::{Rng, Timestamp};
use cudock_sweep::policy::{Asha, Bandit, EvaluationSchedule, Median, Slack};
use cudock_sweep::{
    AttemptEnd, Distribution, Event, Goal, Journal, MetricFormat, MetricSource, Objective, Parameter,
    ParameterValue, PassMode, Record, SamplerKind, Space, Sweep, SweepLimits, SweepPlan, TerminationPolicy,
    TrialHandle, TrialId,
};

const EVENTS: usize = 100_000;
const REPORTS: u64 = 96;
const RUNS: usize = 5;

fn main() {
    let schedule = EvaluationSchedule { interval: 1, delay: 0 };
    let policies = [
        ("none", None),
        ("bandit", Some(TerminationPolicy::Bandit(Bandit { slack: Slack::Amount(1e9), schedule }))),
        ("median", Some(TerminationPolicy::Median(Median { schedule }))),
        ("asha", Some(TerminationPolicy::Asha(Asha { min_steps: 1, max_steps: None, reduction: 4 }))),
    ];
    for (name, policy) in policies {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("journal.jsonl");
        let records = records(policy);
        drop(Journal::create(&path, &records).unwrap());
        let bytes = path.metadata().unwrap().len();
        let mut times: Vec<(Duration, Duration)> = (0..RUNS)
            .map(|_| {
                let start = Instant::now();
                let read = Journal::read(&path).unwrap();
                let read_time = start.elapsed();
                let sweep = Sweep::replay(&read).unwrap();
                assert_eq!(sweep.trials().len(), EVENTS / 100);
                (read_time, start.elapsed())
            })
            .collect();
        times.sort_by_key(|(_, total)| *total);
        let (read, total) = times.get(RUNS / 2).copied().unwrap();
        println!(
            "policy {name:6}: {} events, {:.1} MB: read {:.0} ms, read and replayed {:.0} ms (promised 1000 ms)",
            records.len(),
            f64::from(u32::try_from(bytes).unwrap()) / 1e6,
            read.as_secs_f64() * 1e3,
            total.as_secs_f64() * 1e3
        );
    }
}

/// Trials of 100 events each, 96 of which are reports; 8 trials run at a time.
fn records(policy: Option<TerminationPolicy>) -> Vec<Record> {
    let lr = Parameter {
        name: "lr".to_owned(),
        distribution: Distribution::LogUniform { min: 1e-5, max: 1e-1 },
        conditions: Vec::new(),
    };
    let plan = SweepPlan {
        name: "bench".to_owned(),
        command: vec!["train".to_owned()],
        image: None,
        space: Space { parameters: vec![lr] },
        machine: None,
        pass: PassMode::Arguments,
        objectives: vec![Objective { metric: "accuracy".to_owned(), goal: Goal::Maximize, target: None }],
        metrics: MetricSource::Stdout(MetricFormat::Pairs),
        sampler: SamplerKind::Random,
        seed: 0,
        policy,
        limits: SweepLimits { trials: Some(10_000), ..SweepLimits::default() },
        gpus_per_trial: 1,
        trials_per_gpu: 1,
        gpu_memory: None,
        retries: 0,
    };
    let mut rng = Rng::new(1);
    let mut events = vec![Event::Created { plan: Box::new(plan), slots: 8, price_per_hour: None }];
    let attempt = 1;
    for group in 0..u32::try_from(EVENTS / 800).unwrap() {
        let trials = || (0..8).map(|slot| (TrialId(group * 8 + slot), slot));
        for (trial, slot) in trials() {
            let parameters = [("lr".to_owned(), ParameterValue::Float(rng.unit()))].into();
            events.push(Event::Proposed { trial, parameters });
            events.push(Event::Starting { trial, attempt, slot });
            let handle = TrialHandle::Process { pid: 1000 + trial.0, start_time: 12_345_678 };
            events.push(Event::Started { trial, attempt, handle });
        }
        for interval in 1..=REPORTS {
            for (trial, _) in trials() {
                let metric = "accuracy".to_owned();
                events.push(Event::Reported {
                    trial,
                    attempt,
                    metric,
                    interval,
                    step: None,
                    value: rng.unit(),
                });
            }
        }
        for (trial, _) in trials() {
            let ran = Duration::from_secs(60);
            events.push(Event::Ended { trial, attempt, end: AttemptEnd::Exited { code: 0 }, ran });
        }
    }
    let times = (1_794_745_805_000..).step_by(10).map(Timestamp::from_millis);
    events.into_iter().zip(times).map(|(event, at)| Record { at, event }).collect()
}
