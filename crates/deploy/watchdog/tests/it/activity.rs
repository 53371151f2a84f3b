//! When a deployment is idle, and when its budget is used up.

use std::time::Duration;

use cudock_base::Usd;
use cudock_watchdog::{ActivitySample, ActivityWatch, Budget, EndReason, GpuReading};
use proptest::prelude::*;

use crate::simulation::{INTERVAL, dollars, gpu, limits, load, sample, seconds, with_output, with_requests};

const IDLE: u64 = 900;
const WARM_UP: u64 = 600;

/// A sample for each index.
type Samples = Box<dyn Fn(u64) -> ActivitySample>;

/// When a watch of samples ten seconds apart ends, in seconds.
fn end(samples: impl IntoIterator<Item = ActivitySample>) -> Option<u64> {
    let mut watch = ActivityWatch::new(limits(Some(IDLE), None));
    let mut now = Duration::ZERO;
    for sample in samples {
        if watch.observe(now, &sample).is_some() {
            return Some(now.as_secs());
        }
        now += INTERVAL;
    }
    None
}

/// A day of samples that repeat.
fn day(sample: impl Fn(u64) -> ActivitySample) -> impl Iterator<Item = ActivitySample> {
    (0..8640).map(sample)
}

#[test]
fn a_workload_is_idle_when_all_is_quiet_after_the_warm_up() {
    let quiet_from = |from: u64| move |index: u64| sample(gpu(if index < from { 80 } else { 4 }));
    let unknown = || GpuReading::Gpus(vec![load(None, None, 0)]);
    let mig = |processes, memory| GpuReading::Gpus(vec![load(None, Some(processes), memory)]);
    let two =
        |first, second| GpuReading::Gpus(vec![load(Some(first), Some(1), 1), load(Some(second), Some(1), 1)]);
    let cases: Vec<(&str, Option<u64>, Samples)> = vec![
        ("never busy", Some(WARM_UP + IDLE), Box::new(quiet_from(0))),
        ("busy in the warm-up only", Some(WARM_UP + IDLE), Box::new(quiet_from(30))),
        ("busy for two hours", Some(7200 + IDLE), Box::new(quiet_from(720))),
        ("always busy", None, Box::new(|_| sample(gpu(5)))),
        ("one of two GPUs is busy", None, Box::new(move |_| sample(two(0, 90)))),
        ("no GPU and nothing else to see", Some(WARM_UP + IDLE), Box::new(|_| sample(GpuReading::None))),
        ("the driver does not answer", None, Box::new(|_| sample(GpuReading::Unreadable))),
        ("MIG with a process", None, Box::new(move |_| sample(mig(1, 0)))),
        ("MIG without a process", Some(WARM_UP + IDLE), Box::new(move |_| sample(mig(0, 1)))),
        ("MIG with a hidden process", None, Box::new(move |_| sample(mig(0, 40)))),
        ("MIG that does not tell", None, Box::new(move |_| sample(unknown()))),
        ("requests are served", None, Box::new(|index| with_requests(gpu(0), index / 60))),
        (
            "requests end after an hour",
            Some(3610 + IDLE),
            Box::new(|index| with_requests(gpu(0), index.min(360))),
        ),
        ("output grows", None, Box::new(|index| with_output(gpu(0), index / 60, 0))),
        ("a checkpoint is rewritten", None, Box::new(|index| with_output(gpu(0), 5, index / 60))),
        ("output stays", Some(WARM_UP + IDLE), Box::new(|_| with_output(gpu(0), 5, 5))),
        (
            "a blip every ten minutes",
            None,
            Box::new(|index| sample(gpu(if index % 60 == 0 { 50 } else { 0 }))),
        ),
    ];
    for (name, expected, samples) in cases {
        assert_eq!(end(day(samples)), expected, "{name}");
    }
}

#[test]
fn a_server_that_stops_answering_is_not_activity() {
    let ends = |requests: fn(u64) -> Option<u64>| {
        end(day(|index| ActivitySample { requests: requests(index), ..sample(gpu(0)) }))
    };
    assert_eq!(ends(|index| (index < 100).then_some(7)), Some(WARM_UP + IDLE));
    assert_eq!(ends(|index| Some(if index < 100 { 7 } else { 0 })), Some(1010 + IDLE), "a restart is");
}

#[test]
fn a_time_without_samples_does_not_count_as_quiet() {
    let mut watch = ActivityWatch::new(limits(Some(IDLE), None));
    let quiet = sample(gpu(0));
    assert_eq!(watch.observe(seconds(0), &quiet), None);
    assert_eq!(watch.observe(seconds(5000), &quiet), None, "the machine was suspended");
    let mut now = 5000;
    let ended = loop {
        now += 10;
        if let Some(reason) = watch.observe(seconds(now), &quiet) {
            break reason;
        }
    };
    assert_eq!((now, ended), (5000 + IDLE, EndReason::Idle(seconds(IDLE))));
}

#[test]
fn a_budget_ends_even_busy_work_before_it_is_exceeded() {
    for (budget, expected) in [
        (dollars(2, 4), 1800),
        (dollars(0, 4), 0),
        (Budget { billed_before: seconds(900), ..dollars(2, 4) }, 900),
        (Budget { billed_before: seconds(9000), ..dollars(2, 4) }, 0),
    ] {
        let mut watch = ActivityWatch::new(limits(None, Some(budget)));
        let mut now = Duration::ZERO;
        let reason = loop {
            if let Some(reason) = watch.observe(now, &sample(gpu(100))) {
                break reason;
            }
            now += INTERVAL;
        };
        let EndReason::Budget(spent) = reason else { panic!("{reason:?}") };
        assert_eq!(now.as_secs(), expected, "{budget:?}");
        let was_over_before = budget.billed_before >= seconds(9000);
        assert!(spent <= budget.limit || was_over_before, "{spent} of {}", budget.limit);
    }
}

#[test]
fn without_a_price_the_watch_never_ends_by_money() {
    let free = Budget { limit: Usd::from_cents(1), per_hour: Usd::ZERO, billed_before: seconds(1_000_000) };
    let mut watch = ActivityWatch::new(limits(None, Some(free)));
    assert_eq!(watch.observe(seconds(10_000_000), &sample(gpu(0))), None);
}

proptest! {
    #[test]
    fn nothing_is_deleted_within_the_idle_time_of_work(
        busy in prop::collection::vec(any::<bool>(), 1..2000),
        percent in 5_u32..=100,
    ) {
        let mut watch = ActivityWatch::new(limits(Some(IDLE), None));
        let mut last_busy: Option<Duration> = None;
        let mut now = Duration::ZERO;
        for is_busy in busy {
            if is_busy {
                last_busy = Some(now);
            }
            let ended = watch.observe(now, &sample(gpu(if is_busy { percent } else { 0 })));
            if ended.is_some() {
                prop_assert!(!is_busy);
                prop_assert!(now >= seconds(WARM_UP + IDLE));
                prop_assert!(last_busy.is_none_or(|last| now >= last + seconds(IDLE)));
                break;
            }
            now += INTERVAL;
        }
    }

    #[test]
    fn idleness_is_noticed_within_one_sample(
        busy in 0_usize..300,
        idle in 10_u64..2000,
        jitter in prop::collection::vec(1_u64..30, 1..50),
    ) {
        let mut watch = ActivityWatch::new(limits(Some(idle), None));
        let mut now = Duration::ZERO;
        for _ in 0..busy {
            prop_assert_eq!(watch.observe(now, &sample(gpu(50))), None);
            now += INTERVAL;
        }
        let quiet_from = now.max(seconds(WARM_UP));
        let mut steps = jitter.iter().cycle();
        let ended = loop {
            if watch.observe(now, &sample(gpu(0))).is_some() {
                break now;
            }
            now += seconds(*steps.next().unwrap());
            prop_assert!(now <= quiet_from + seconds(idle) + seconds(30), "not noticed");
        };
        prop_assert!(ended <= quiet_from + seconds(idle) + seconds(30));
    }
}
