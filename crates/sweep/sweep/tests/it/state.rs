//! The state machine: retries, stops, pauses, results, and events that do not fit.

use std::time::Duration;

use cudock_base::Usd;
use cudock_sweep::policy::{Bandit, EvaluationSchedule, Slack};
use cudock_sweep::{
    ApplyError, AttemptEnd, Distribution, Event, Goal, MachineSlots, Parameter, SamplerKind, Space,
    StopReason, Sweep, SweepAction, SweepEnd, SweepPlan, TerminationPolicy, TrialId, TrialStatus,
};

use crate::support::{at, created, ended, objective, plan, record, reported, started, text};

fn sweep(plan: SweepPlan, slots: u32) -> Sweep {
    Sweep::replay(&[record(0, created(plan, slots))]).unwrap()
}

fn apply(sweep: &mut Sweep, second: u64, events: Vec<Event>) {
    for event in events {
        sweep.apply(&record(second, event)).unwrap();
    }
}

/// Records what is to be done and returns it.
fn step(sweep: &mut Sweep, second: u64) -> Vec<SweepAction> {
    let actions = sweep.next(at(second));
    for action in &actions {
        apply(sweep, second, action.events());
    }
    actions
}

fn status(sweep: &Sweep, trial: u32) -> TrialStatus {
    sweep.trial(TrialId(trial)).unwrap().status
}

fn ending(sweep: &Sweep, trial: u32) -> String {
    sweep.trial(TrialId(trial)).unwrap().ending(&sweep.plan().objectives).unwrap()
}

#[test]
fn trials_run_until_the_limit_and_the_best_is_reported() {
    let mut sweep = sweep(plan(3), 2);
    assert_eq!(step(&mut sweep, 1).len(), 2);
    assert!(step(&mut sweep, 1).is_empty(), "both slots are in use");
    apply(
        &mut sweep,
        2,
        vec![started(0, 1), reported(0, 1, "score", 1, 0.4), reported(0, 1, "score", 2, 0.3)],
    );
    apply(&mut sweep, 3, vec![ended(0, 1, 0, 2)]);
    let actions = step(&mut sweep, 3);
    assert!(matches!(
        actions.as_slice(),
        [SweepAction::Start { trial: TrialId(2), slot: 0, attempt: 1, .. }]
    ));
    apply(&mut sweep, 4, vec![reported(1, 1, "score", 1, 0.9), ended(1, 1, 0, 3)]);
    apply(&mut sweep, 5, vec![reported(2, 1, "score", 1, 0.5), ended(2, 1, 0, 2)]);
    assert_eq!(step(&mut sweep, 5), [SweepAction::Finish { end: SweepEnd::Trials }]);
    assert!(step(&mut sweep, 6).is_empty());
    let ranked: Vec<u32> = sweep.ranked().iter().map(|trial| trial.id.0).collect();
    assert_eq!(ranked, [1, 2, 0]);
    assert_eq!(sweep.best().unwrap().result, Some(vec![0.9]));
    assert_eq!(sweep.trials()[0].result, Some(vec![0.4]), "the best value counts");
    apply(&mut sweep, 7, vec![Event::TrialsAdded { count: 1 }]);
    assert_eq!(step(&mut sweep, 7).len(), 1);
}

#[test]
fn a_failed_attempt_is_retried_with_the_same_parameters_and_an_empty_curve() {
    let mut sweep = sweep(SweepPlan { retries: 1, ..plan(1) }, 1);
    step(&mut sweep, 1);
    let parameters = sweep.trials()[0].parameters.clone();
    apply(&mut sweep, 2, vec![started(0, 1), reported(0, 1, "score", 1, 0.9)]);
    let lost =
        Event::Ended { trial: TrialId(0), attempt: 1, end: AttemptEnd::Lost, ran: Duration::from_secs(1) };
    apply(&mut sweep, 3, vec![lost.clone()]);
    assert_eq!(status(&sweep, 0), TrialStatus::Waiting);
    assert_eq!(sweep.apply(&record(3, lost)), Err(ApplyError::NotRunning { trial: TrialId(0), attempt: 1 }));
    let actions = step(&mut sweep, 4);
    let [SweepAction::Start { attempt: 2, is_new: false, parameters: again, .. }] = actions.as_slice() else {
        panic!("{actions:?}")
    };
    assert_eq!(again, &parameters);
    assert_eq!(sweep.trials()[0].attempt().unwrap().reports("score"), 0);
    apply(&mut sweep, 5, vec![started(0, 2), reported(0, 2, "score", 1, 0.2), ended(0, 2, 0, 1)]);
    assert_eq!(sweep.trials()[0].result, Some(vec![0.2]), "only the last attempt counts");
    assert_eq!(sweep.trials()[0].attempts.len(), 2);
    assert_eq!(step(&mut sweep, 6), [SweepAction::Finish { end: SweepEnd::Trials }]);
}

#[test]
fn attempts_that_ended_with_the_sweep_are_not_retries() {
    let mut sweep = sweep(SweepPlan { retries: 1, ..plan(1) }, 1);
    let end = |attempt, end| Event::Ended { trial: TrialId(0), attempt, end, ran: Duration::from_secs(1) };
    for attempt in 1..=5 {
        step(&mut sweep, 1);
        apply(&mut sweep, 2, vec![started(0, attempt), end(attempt, AttemptEnd::Interrupted)]);
        assert_eq!(status(&sweep, 0), TrialStatus::Waiting);
    }
    for (attempt, expected) in [(6, TrialStatus::Waiting), (7, TrialStatus::Failed)] {
        step(&mut sweep, 3);
        apply(&mut sweep, 4, vec![started(0, attempt), end(attempt, AttemptEnd::Lost)]);
        assert_eq!(status(&sweep, 0), expected);
    }
}

#[test]
fn failures_without_retries_are_explained() {
    let mut sweep = sweep(plan(4), 4);
    step(&mut sweep, 1);
    apply(&mut sweep, 2, vec![ended(0, 1, 3, 1), ended(1, 1, 0, 1)]);
    apply(&mut sweep, 2, vec![reported(2, 1, "score", 1, f64::NAN), ended(2, 1, 0, 1)]);
    let end = AttemptEnd::FailedToStart { message: "no such file".to_owned() };
    apply(&mut sweep, 2, vec![Event::Ended { trial: TrialId(3), attempt: 1, end, ran: Duration::ZERO }]);
    assert!((0..4).all(|trial| status(&sweep, trial) == TrialStatus::Failed));
    assert_eq!(ending(&sweep, 0), "trial 0 failed: exit code 3");
    assert_eq!(ending(&sweep, 1), "trial 1 failed: metric `score` was never reported");
    assert_eq!(ending(&sweep, 2), "trial 2 failed: metric `score` has no finite value");
    assert_eq!(ending(&sweep, 3), "trial 3 failed: failed to start: no such file");
    assert!(sweep.best().is_none());
}

#[test]
fn the_policy_stops_a_trial_once_with_its_arithmetic() {
    let schedule = EvaluationSchedule { interval: 1, delay: 4 };
    let policy = Some(TerminationPolicy::Bandit(Bandit { slack: Slack::Factor(0.2), schedule }));
    let mut sweep = sweep(SweepPlan { policy, retries: 3, ..plan(2) }, 2);
    step(&mut sweep, 1);
    for interval in 1..=4 {
        apply(
            &mut sweep,
            2,
            vec![reported(0, 1, "score", interval, 0.8), reported(1, 1, "score", interval, 0.61)],
        );
    }
    // Other metrics are not looked at, and a repeated report changes nothing.
    apply(&mut sweep, 2, vec![reported(0, 1, "loss", 1, -9.0), reported(1, 1, "score", 4, 0.9)]);
    let actions = step(&mut sweep, 3);
    let [SweepAction::Stop { trial: TrialId(1), attempt: 1, reason: StopReason::Policy(_) }] =
        actions.as_slice()
    else {
        panic!("{actions:?}")
    };
    assert_eq!(status(&sweep, 1), TrialStatus::Stopping);
    assert!(step(&mut sweep, 4).is_empty());
    let killed = AttemptEnd::Signaled { signal: 15 };
    let ran = Duration::from_secs(4);
    apply(&mut sweep, 5, vec![Event::Ended { trial: TrialId(1), attempt: 1, end: killed, ran }]);
    assert_eq!(status(&sweep, 1), TrialStatus::Stopped, "it is not retried");
    assert_eq!(ending(&sweep, 1), "trial 1 stopped at step 4: 0.61 < 0.8 / (1 + 0.2) = 0.667");
    assert_eq!(sweep.trials()[1].result, Some(vec![0.61]));
}

#[test]
fn limits_of_time_stop_trials_and_the_sweep() {
    let mut plan = plan(9);
    plan.limits.trial_timeout = Some(Duration::from_secs(100));
    plan.limits.timeout = Some(Duration::from_secs(150));
    let mut sweep = sweep(plan, 1);
    step(&mut sweep, 1);
    assert_eq!(sweep.wake_at(at(5)), Some(at(101)));
    assert!(step(&mut sweep, 100).is_empty());
    assert_eq!(step(&mut sweep, 101).len(), 1);
    apply(&mut sweep, 102, vec![ended(0, 1, 1, 101)]);
    assert_eq!(ending(&sweep, 0), "trial 0 stopped: trial_timeout of 1 min 40 s exceeded");
    assert_eq!(step(&mut sweep, 102).len(), 1);
    assert_eq!(sweep.wake_at(at(110)), Some(at(150)));
    let actions = step(&mut sweep, 150);
    assert!(matches!(
        actions.as_slice(),
        [SweepAction::Stop { reason: StopReason::SweepTimeout { .. }, .. }]
    ));
    apply(&mut sweep, 151, vec![ended(1, 1, 1, 49)]);
    assert_eq!(step(&mut sweep, 151), [SweepAction::Finish { end: SweepEnd::Timeout }]);
}

#[test]
fn time_while_paused_or_killed_is_not_counted() {
    let mut sweep = sweep(plan(9), 1);
    apply(&mut sweep, 100, vec![Event::Paused]);
    assert!(step(&mut sweep, 500).is_empty(), "nothing starts, and nothing ends, during a pause");
    let resumed = Event::Resumed { slots: 2, price_per_hour: None };
    apply(&mut sweep, 1000, vec![resumed.clone()]);
    assert_eq!(sweep.active_time(at(1010)), Duration::from_secs(110));
    assert_eq!(step(&mut sweep, 1010).len(), 2, "the new number of slots counts");
    // Killed after its last event at 1010, and resumed later.
    apply(&mut sweep, 5000, vec![resumed]);
    assert_eq!(sweep.active_time(at(5001)), Duration::from_secs(111));
}

#[test]
fn a_budget_stops_trials_before_it_is_exceeded() {
    let mut plan = plan(9);
    // A dollar pays for 1,000 s at 3.60 an hour.
    plan.limits.dollars = Some(Usd::from_cents(100));
    let price_per_hour = Some(Usd::from_cents(360));
    let event = Event::Created { plan: Box::new(plan), slots: 2, price_per_hour };
    let mut sweep = Sweep::replay(&[record(0, event)]).unwrap();
    assert_eq!(step(&mut sweep, 0).len(), 2);
    // Two slots spend it in 500 s, and ten seconds are kept to stop them.
    assert_eq!(sweep.wake_at(at(100)), Some(at(490)));
    assert!(step(&mut sweep, 489).is_empty());
    let actions = step(&mut sweep, 490);
    assert!(matches!(
        &actions[..],
        [SweepAction::Stop { reason: StopReason::Budget { .. }, .. }, SweepAction::Stop { .. }]
    ));
    assert_eq!(sweep.trial(TrialId(0)).unwrap().stop.as_ref().unwrap().to_string(), "$0.98 of $1.00 spent");
    apply(&mut sweep, 499, vec![ended(0, 1, 1, 499), ended(1, 1, 1, 499)]);
    assert_eq!(sweep.cost(at(9999)), Usd::from_micros(998_000));
    assert_eq!(step(&mut sweep, 500), [SweepAction::Finish { end: SweepEnd::Budget }]);
}

#[test]
fn a_trial_that_the_budget_cannot_finish_is_not_started() {
    let mut plan = plan(9);
    plan.limits.dollars = Some(Usd::from_cents(100));
    let event = Event::Created { plan: Box::new(plan), slots: 1, price_per_hour: Some(Usd::from_cents(360)) };
    let mut sweep = Sweep::replay(&[record(0, event)]).unwrap();
    step(&mut sweep, 0);
    apply(&mut sweep, 600, vec![reported(0, 1, "score", 1, 0.5), ended(0, 1, 0, 600)]);
    // 400 s are left, and a trial takes 600.
    assert_eq!(step(&mut sweep, 600), [SweepAction::Finish { end: SweepEnd::Budget }]);
}

#[test]
fn nothing_is_started_once_the_budget_is_spent() {
    let mut plan = plan(9);
    // A dollar pays for 1,000 s at 3.60 an hour: two slots spend it in 500 s, but for ten seconds each.
    plan.limits.dollars = Some(Usd::from_cents(100));
    let event = Event::Created { plan: Box::new(plan), slots: 2, price_per_hour: Some(Usd::from_cents(360)) };
    let mut sweep = Sweep::replay(&[record(0, event)]).unwrap();
    assert_eq!(step(&mut sweep, 0).len(), 2);
    assert_eq!(step(&mut sweep, 490).len(), 2);
    // Both are gone at once, so that 20 s are left: enough for another trial to be stopped after ten.
    apply(&mut sweep, 490, vec![ended(0, 1, 1, 490), ended(1, 1, 1, 490)]);
    assert_eq!(step(&mut sweep, 490), [SweepAction::Finish { end: SweepEnd::Budget }]);
}

#[test]
fn failures_tell_how_long_a_trial_takes_while_none_has_succeeded() {
    let mut plan = SweepPlan { retries: 0, ..plan(9) };
    plan.limits.dollars = Some(Usd::from_cents(100));
    let event = Event::Created { plan: Box::new(plan), slots: 1, price_per_hour: Some(Usd::from_cents(360)) };
    let mut sweep = Sweep::replay(&[record(0, event)]).unwrap();
    step(&mut sweep, 0);
    apply(&mut sweep, 600, vec![ended(0, 1, 1, 600)]);
    // 400 s are left, and the trial that failed took 600.
    assert_eq!(step(&mut sweep, 600), [SweepAction::Finish { end: SweepEnd::Budget }]);
}

/// A grid of two values on two sizes: one slot of `small` at 1.00 an hour, two of `large` at 3.60.
fn sized(dollars: Option<Usd>) -> Sweep {
    let choice = |name: &str, values: [&str; 2]| Parameter {
        name: name.to_owned(),
        distribution: Distribution::Choice(values.map(text).to_vec()),
        conditions: Vec::new(),
    };
    let parameters = vec![choice("x", ["a", "b"]), choice("node", ["small", "large"])];
    let mut plan = SweepPlan { sampler: SamplerKind::Grid, space: Space { parameters }, ..plan(4) };
    plan.machine = Some("node".to_owned());
    plan.limits.dollars = dollars;
    plan.objectives[0].target = Some(0.8);
    let price_per_hour = Some(Usd::from_cents(360));
    let event = Event::Created { plan: Box::new(plan), slots: 3, price_per_hour };
    let mut sweep = Sweep::replay(&[record(0, event)]).unwrap();
    let machines = [("small", 1, 100), ("large", 2, 360)].map(|(size, slots, cents)| MachineSlots {
        size: size.to_owned(),
        slots,
        price_per_hour: Usd::from_cents(cents),
    });
    apply(&mut sweep, 0, vec![Event::MachinesPriced { machines: machines.to_vec() }]);
    sweep
}

/// Trials and slots that are started.
fn starts(actions: &[SweepAction]) -> Vec<(u32, u32)> {
    let start = |action: &SweepAction| match action {
        SweepAction::Start { trial, slot, .. } => Some((trial.0, *slot)),
        _ => None,
    };
    actions.iter().filter_map(start).collect()
}

#[test]
fn a_trial_runs_in_a_slot_of_its_size_at_its_price() {
    let mut sweep = sized(None);
    // Trials 0 and 2 are small, and 2 waits while 3 begins.
    assert_eq!(starts(&step(&mut sweep, 0)), [(0, 0), (1, 1), (3, 2)]);
    assert!(step(&mut sweep, 0).is_empty());
    assert_eq!(status(&sweep, 2), TrialStatus::Waiting);
    apply(&mut sweep, 1800, vec![reported(1, 1, "score", 1, 0.7), reported(0, 1, "score", 1, 0.8)]);
    apply(
        &mut sweep,
        3600,
        vec![reported(1, 1, "score", 2, 0.9), ended(1, 1, 0, 3600), ended(3, 1, 1, 3600)],
    );
    assert!(step(&mut sweep, 3600).is_empty(), "slots of another size are free");
    apply(&mut sweep, 3600, vec![ended(0, 1, 0, 3600)]);
    assert_eq!(starts(&step(&mut sweep, 3600)), [(2, 0)]);
    assert_eq!(sweep.cost(at(3600)), Usd::from_cents(100 + 2 * 360));
    let cheapest = sweep.cheapest();
    let cheapest: Vec<_> = cheapest.iter().map(|one| (one.trial.id.0, one.size.unwrap(), one.cost)).collect();
    assert_eq!(cheapest, [(0, "small", Usd::from_cents(50)), (1, "large", Usd::from_cents(360))]);
}

#[test]
fn a_budget_counts_each_size_at_its_price() {
    // Ten seconds of a small slot and of one large slot, and not of another.
    let seconds = |count: u64| Usd::from_cents(100).share(u128::from(count), 3600);
    let large = |count: u64| Usd::from_cents(360).share(u128::from(count), 3600);
    let mut sweep = sized(Some(seconds(10) + large(10) + large(5)));
    assert_eq!(starts(&step(&mut sweep, 0)), [(0, 0), (1, 1)]);
}

#[test]
fn sizes_without_a_parameter_or_with_other_slots_do_not_fit() {
    let machines = vec![MachineSlots { size: "a".to_owned(), slots: 1, price_per_hour: Usd::ZERO }];
    let event = record(1, Event::MachinesPriced { machines });
    assert_eq!(sweep(plan(1), 1).apply(&event), Err(ApplyError::WrongMachines));
    assert_eq!(sized(None).apply(&event), Err(ApplyError::WrongMachines));
}

#[test]
fn a_canceled_sweep_stops_everything_and_ends() {
    let mut sweep = sweep(SweepPlan { retries: 5, ..plan(9) }, 2);
    step(&mut sweep, 1);
    apply(&mut sweep, 2, vec![ended(0, 1, 1, 1), Event::Canceled]);
    let actions = step(&mut sweep, 3);
    assert!(matches!(
        actions.as_slice(),
        [SweepAction::Stop { trial: TrialId(1), reason: StopReason::Canceled, .. }]
    ));
    apply(&mut sweep, 4, vec![ended(1, 1, 0, 3)]);
    assert_eq!(step(&mut sweep, 4), [SweepAction::Finish { end: SweepEnd::Canceled }]);
    assert!(sweep.trials().iter().all(|trial| trial.status.is_ended()));
}

#[test]
fn one_trial_can_be_stopped_by_the_user() {
    let mut sweep = sweep(SweepPlan { retries: 5, ..plan(2) }, 1);
    step(&mut sweep, 1);
    let (trial, attempt) = (TrialId(0), 1);
    apply(&mut sweep, 2, vec![Event::StopDecided { trial, attempt, reason: StopReason::User }]);
    apply(&mut sweep, 3, vec![ended(0, 1, 1, 1)]);
    assert_eq!(ending(&sweep, 0), "trial 0 stopped: stopped by the user");
    assert!(matches!(step(&mut sweep, 3).as_slice(), [SweepAction::Start { trial: TrialId(1), .. }]));
}

#[test]
fn several_objectives_have_a_front() {
    let objectives = vec![objective("accuracy", Goal::Maximize), objective("latency", Goal::Minimize)];
    let mut sweep = sweep(SweepPlan { objectives, ..plan(4) }, 4);
    step(&mut sweep, 1);
    for (trial, accuracy, latency) in [(0, 0.8, 9.0), (1, 0.9, 9.0), (2, 0.7, 3.0)] {
        // The last values count, because the best of each may not belong together.
        apply(
            &mut sweep,
            2,
            vec![reported(trial, 1, "accuracy", 1, 0.99), reported(trial, 1, "accuracy", 2, accuracy)],
        );
        apply(&mut sweep, 2, vec![reported(trial, 1, "latency", 1, latency), ended(trial, 1, 0, 1)]);
    }
    apply(&mut sweep, 2, vec![reported(3, 1, "accuracy", 1, 0.5), ended(3, 1, 0, 1)]);
    assert_eq!(ending(&sweep, 3), "trial 3 failed: metric `latency` was never reported");
    let ids = |trials: Vec<&cudock_sweep::Trial>| trials.iter().map(|trial| trial.id.0).collect::<Vec<_>>();
    assert_eq!(ids(sweep.front()), [1, 2]);
    assert_eq!(ids(sweep.ranked()), [1, 2, 0]);
    assert!(sweep.best().is_none());
}

#[test]
fn events_that_do_not_fit_change_nothing() {
    let mut sweep = sweep(plan(1), 1);
    step(&mut sweep, 1);
    let trial = TrialId(0);
    for (event, expected) in [
        (created(plan(1), 1), ApplyError::AlreadyCreated),
        (Event::Proposed { trial, parameters: [].into() }, ApplyError::OutOfOrder { trial }),
        (
            Event::Proposed { trial: TrialId(1), parameters: [].into() },
            ApplyError::TooManyTrials { trial: TrialId(1) },
        ),
        (Event::Starting { trial, attempt: 2, slot: 1 }, ApplyError::CannotStart { trial, attempt: 2 }),
        (Event::Starting { trial, attempt: 2, slot: 0 }, ApplyError::SlotInUse { slot: 0 }),
        (started(0, 2), ApplyError::NotRunning { trial, attempt: 2 }),
        (started(5, 1), ApplyError::UnknownTrial { trial: TrialId(5) }),
        (
            reported(0, 1, "score", 2, 1.0),
            ApplyError::MissingReport { trial, metric: "score".to_owned(), interval: 2 },
        ),
        (Event::Finished { end: SweepEnd::Trials }, ApplyError::StillRunning),
        (Event::Resumed { slots: 0, price_per_hour: None }, ApplyError::NoSlots),
    ] {
        let before = format!("{sweep:?}");
        assert_eq!(sweep.apply(&record(2, event)), Err(expected));
        assert_eq!(format!("{sweep:?}"), before);
    }
    apply(&mut sweep, 3, vec![ended(0, 1, 1, 1)]);
    step(&mut sweep, 3);
    assert_eq!(sweep.apply(&record(4, Event::Paused)), Err(ApplyError::Finished));
}
