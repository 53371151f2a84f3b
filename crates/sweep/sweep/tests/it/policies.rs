//! Early termination: documented examples, edge cases, and fairness.

use cudock_sweep::policy::{Asha, Bandit, EvaluationSchedule, History, Hyperband, Median, Slack, Truncation};
use cudock_sweep::{Comparison, Decision, Goal, TerminationPolicy, TrialId};
use proptest::prelude::*;

const EVERY: EvaluationSchedule = EvaluationSchedule { interval: 1, delay: 0 };

/// A history of curves, reported step by step, so that all trials of a step come before the next one.
fn history(goal: Goal, curves: &[&[f64]]) -> History {
    let mut history = History::new(goal);
    let steps = curves.iter().map(|curve| curve.len()).max().unwrap_or(0);
    for step in 0..steps {
        for (trial, curve) in (0..).zip(curves) {
            if let Some(value) = curve.get(step) {
                history.report(TrialId(trial), *value);
            }
        }
    }
    history
}

fn judge(policy: TerminationPolicy, goal: Goal, curves: &[&[f64]], trial: u32) -> Option<Decision> {
    policy.evaluate(&history(goal, curves), TrialId(trial))
}

fn stops(policy: TerminationPolicy, goal: Goal, curves: &[&[f64]], trial: u32) -> bool {
    judge(policy, goal, curves, trial).is_some_and(|decision| decision.is_stop())
}

fn bandit(slack: Slack) -> TerminationPolicy {
    TerminationPolicy::Bandit(Bandit { slack, schedule: EVERY })
}

/// Azure ML's example: with the best at 0.8 and a factor of 0.2, the line is 0.8 / 1.2 = 0.667; with an amount, 0.6.
#[test]
fn the_bandit_policy_draws_azure_mls_line() {
    for (slack, value, stop) in [
        (Slack::Factor(0.2), 0.67, false),
        (Slack::Factor(0.2), 0.666, true),
        (Slack::Factor(0.2), 0.8, false),
        (Slack::Amount(0.2), 0.61, false),
        (Slack::Amount(0.2), 0.59, true),
    ] {
        assert_eq!(stops(bandit(slack), Goal::Maximize, &[&[0.8], &[value]], 1), stop, "{slack:?} {value}");
        assert!(!stops(bandit(slack), Goal::Maximize, &[&[0.8], &[value]], 0), "{slack:?}");
    }
    for (slack, value, stop) in [
        (Slack::Factor(0.2), 1.19, false),
        (Slack::Factor(0.2), 1.21, true),
        (Slack::Amount(0.5), 1.49, false),
        (Slack::Amount(0.5), 1.51, true),
    ] {
        assert_eq!(stops(bandit(slack), Goal::Minimize, &[&[1.0], &[value]], 1), stop, "{slack:?} {value}");
    }
}

#[test]
fn a_trial_is_judged_by_its_best_value_so_far_against_the_same_step_of_others() {
    let policy = bandit(Slack::Factor(0.2));
    // It was good at first, and its best counts.
    assert!(!stops(policy, Goal::Maximize, &[&[0.5, 0.8], &[0.75, 0.1]], 1));
    // The other one is ahead by two steps, which do not count yet.
    assert!(!stops(policy, Goal::Maximize, &[&[0.5, 0.8, 0.9], &[0.45]], 1));
}

#[test]
fn policies_look_at_multiples_of_the_interval_from_the_delay_on() {
    let schedule = EvaluationSchedule { interval: 2, delay: 5 };
    let policy = TerminationPolicy::Bandit(Bandit { slack: Slack::Factor(0.1), schedule });
    let judged: Vec<usize> = (1..=10)
        .filter(|steps| stops(policy, Goal::Maximize, &[&vec![0.9; *steps], &vec![0.1; *steps]], 1))
        .collect();
    assert_eq!(judged, [6, 8, 10]);
}

#[test]
fn a_slack_factor_stops_nobody_while_the_best_is_not_positive() {
    for (goal, best, worst) in
        [(Goal::Maximize, -1.0, -100.0), (Goal::Minimize, -5.0, 10.0), (Goal::Maximize, 0.0, -1.0)]
    {
        let decision = judge(bandit(Slack::Factor(0.1)), goal, &[&[best], &[worst]], 1).unwrap();
        assert!(!decision.is_stop() && decision.to_string().contains("use slack_amount"), "{decision}");
        assert!(stops(bandit(Slack::Amount(0.5)), goal, &[&[best], &[worst]], 1));
    }
}

/// "At interval 5, a trial is stopped if its best value is worse than the median of the running averages over 1:5."
#[test]
fn median_stopping_compares_the_best_value_with_the_median_of_averages() {
    let policy = TerminationPolicy::Median(Median { schedule: EvaluationSchedule { interval: 1, delay: 5 } });
    let good: &[f64] = &[0.1, 0.3, 0.5, 0.7, 0.9]; // averages 0.5
    let fair: &[f64] = &[0.4, 0.4, 0.4, 0.4, 0.4];
    let poor: &[f64] = &[0.1, 0.2, 0.3, 0.3, 0.39];
    let decision = judge(policy, Goal::Maximize, &[good, fair, poor], 2).unwrap();
    assert_eq!(decision.comparison, Comparison::Median { value: Some(0.39), median: 0.4, trials: 3 });
    assert_eq!(decision.to_string(), "0.39 < 0.4, the median of the averages of 3 trials");
    assert!(!stops(policy, Goal::Maximize, &[good, fair, poor], 1));
    assert_eq!(judge(policy, Goal::Maximize, &[&good[..4], &fair[..4], &poor[..4]], 2), None);
}

#[test]
fn truncation_stops_the_worst_percentage() {
    let policy = TerminationPolicy::Truncation(Truncation {
        percentage: 20.0,
        exclude_finished: false,
        schedule: EVERY,
    });
    let values: Vec<Vec<f64>> = (0..10).map(|trial| vec![f64::from(trial) / 10.0]).collect();
    let curves: Vec<&[f64]> = values.iter().map(Vec::as_slice).collect();
    let stopped: Vec<u32> = (0..10).filter(|trial| stops(policy, Goal::Maximize, &curves, *trial)).collect();
    assert_eq!(stopped, [0, 1]);
    let stopped: Vec<u32> = (0..10).filter(|trial| stops(policy, Goal::Minimize, &curves, *trial)).collect();
    assert_eq!(stopped, [8, 9]);
    assert_eq!(
        judge(policy, Goal::Maximize, &curves, 1).unwrap().to_string(),
        "0.1 is among the worst 2 of 10 trials (20 %)"
    );
    // Equal trials are not stopped for the order in which they came, and four are too few for a fifth.
    assert!((0..5).all(|trial| !stops(policy, Goal::Maximize, &[[0.5].as_slice(); 5], trial)));
    assert!((0..4).all(|trial| !stops(policy, Goal::Maximize, &curves[..4], trial)));
}

#[test]
fn truncation_can_leave_out_trials_that_have_ended() {
    let mut history = history(Goal::Maximize, &[&[0.1], &[0.2], &[0.3], &[0.4], &[0.15]]);
    history.end(TrialId(0));
    let policy = |exclude_finished| {
        TerminationPolicy::Truncation(Truncation { percentage: 25.0, exclude_finished, schedule: EVERY })
    };
    assert!(!policy(false).evaluate(&history, TrialId(4)).unwrap().is_stop());
    assert!(policy(true).evaluate(&history, TrialId(4)).unwrap().is_stop());
}

/// The example in the source of Ray Tune's scheduler: with a factor of 2, 2 and 4 make a cutoff of 3.
#[test]
fn asha_decides_as_ray_tune_does() {
    let policy = TerminationPolicy::Asha(Asha { min_steps: 1, max_steps: Some(10), reduction: 2 });
    assert_eq!(judge(policy, Goal::Maximize, &[&[2.0]], 0), None);
    assert!(!stops(policy, Goal::Maximize, &[&[2.0], &[4.0]], 1));
    let decision = judge(policy, Goal::Maximize, &[&[2.0], &[4.0], &[1.0]], 2).unwrap();
    assert_eq!(
        decision.comparison,
        Comparison::Rung { value: Some(1.0), cutoff: 3.0, trials: 2, reduction: 2 }
    );
    assert!(decision.is_stop());
    // Step 3 is not a rung, and 10 is the end.
    assert_eq!(judge(policy, Goal::Maximize, &[&[2.0; 3], &[0.0; 3]], 1), None);
    assert!(stops(policy, Goal::Maximize, &[&[2.0; 10]], 0));
}

#[test]
fn hyperband_compares_within_a_bracket() {
    let policy = TerminationPolicy::Hyperband(Hyperband { min_steps: 1, max_steps: 9, reduction: 3 });
    let values: Vec<Vec<f64>> = (0..60).map(|trial| vec![f64::from(60 - trial)]).collect();
    let curves: Vec<&[f64]> = values.iter().map(Vec::as_slice).collect();
    // Each trial is worse than all before it; only those of the first bracket are looked at after one step.
    let stopped =
        (0..60).filter(|trial| stops(policy, Goal::Maximize, &curves[..=*trial as usize], *trial)).count();
    assert!((25..45).contains(&stopped), "{stopped}");
}

#[test]
fn what_is_not_a_number_is_worse_than_any_number_and_harmless_alone() {
    let nan = f64::NAN;
    for policy in [
        bandit(Slack::Factor(10.0)),
        bandit(Slack::Amount(1e9)),
        TerminationPolicy::Median(Median { schedule: EVERY }),
        TerminationPolicy::Asha(Asha { min_steps: 1, max_steps: None, reduction: 2 }),
        TerminationPolicy::Truncation(Truncation {
            percentage: 50.0,
            exclude_finished: false,
            schedule: EVERY,
        }),
    ] {
        for value in [nan, f64::INFINITY, f64::NEG_INFINITY] {
            assert!(stops(policy, Goal::Maximize, &[&[0.5], &[value]], 1), "{policy:?} {value}");
            assert!(!stops(policy, Goal::Maximize, &[&[nan], &[value]], 1), "{policy:?} {value}");
            assert!(!stops(policy, Goal::Maximize, &[&[value], &[0.5]], 1), "{policy:?} {value}");
        }
    }
    // A good value before it counts on.
    assert!(!stops(bandit(Slack::Amount(0.1)), Goal::Maximize, &[&[0.5, 0.5], &[0.5, nan]], 1));
    let decision = judge(bandit(Slack::Factor(0.2)), Goal::Maximize, &[&[0.8], &[nan]], 1).unwrap();
    assert_eq!(decision.to_string(), "no finite value so far, and trial 0 has 0.8");
}

#[test]
fn a_trial_that_starts_over_is_forgotten() {
    let mut history = history(Goal::Maximize, &[&[0.9, 0.9], &[0.5, 0.5]]);
    history.restart(TrialId(0));
    assert_eq!(history.reports(TrialId(0)), 0);
    assert!(!bandit(Slack::Amount(0.1)).evaluate(&history, TrialId(1)).unwrap().is_stop());
}

#[test]
fn the_arithmetic_is_shown_as_a_comparison() {
    let text = |slack, goal, curves: &[&[f64]]| judge(bandit(slack), goal, curves, 1).unwrap().to_string();
    let maximize = |slack| text(slack, Goal::Maximize, &[&[0.8], &[0.61]]);
    assert_eq!(maximize(Slack::Factor(0.2)), "0.61 < 0.8 / (1 + 0.2) = 0.667");
    assert_eq!(maximize(Slack::Amount(0.1)), "0.61 < 0.8 - 0.1 = 0.7");
    assert_eq!(text(Slack::Factor(0.5), Goal::Minimize, &[&[2.0], &[3.5]]), "3.5 > 2 * (1 + 0.5) = 3");
    assert_eq!(text(Slack::Amount(0.5), Goal::Minimize, &[&[2.0], &[2.25]]), "2.25 <= 2 + 0.5 = 2.5");
}

fn policy() -> impl Strategy<Value = TerminationPolicy> {
    let schedule = (1_u64..3, 0_u64..3).prop_map(|(interval, delay)| EvaluationSchedule { interval, delay });
    let slack = prop_oneof![(0.01..1.0).prop_map(Slack::Factor), (0.01..1.0).prop_map(Slack::Amount)];
    prop_oneof![
        (slack, schedule.clone())
            .prop_map(|(slack, schedule)| TerminationPolicy::Bandit(Bandit { slack, schedule })),
        schedule.clone().prop_map(|schedule| TerminationPolicy::Median(Median { schedule })),
        (1.0..99.0, any::<bool>(), schedule).prop_map(|(percentage, exclude_finished, schedule)| {
            TerminationPolicy::Truncation(Truncation { percentage, exclude_finished, schedule })
        }),
        (1_u64..3, 2_u32..4).prop_map(|(min_steps, reduction)| TerminationPolicy::Asha(Asha {
            min_steps,
            max_steps: None,
            reduction
        })),
    ]
}

fn value() -> impl Strategy<Value = f64> {
    prop_oneof![8 => -1.0..1.0, 2 => prop::sample::select(vec![0.0, 0.5, f64::NAN, f64::INFINITY, -1e300, 1e300])]
}

/// What a policy compares: the last value at a rung, the best so far otherwise. Higher is better.
fn compared(policy: TerminationPolicy, goal: Goal, curve: &[f64]) -> f64 {
    let score = |value: &f64| match goal {
        _ if !value.is_finite() => f64::NEG_INFINITY,
        Goal::Maximize => *value,
        Goal::Minimize => -*value,
    };
    match policy {
        TerminationPolicy::Asha(_) | TerminationPolicy::Hyperband(_) => score(curve.last().unwrap()),
        _ => curve.iter().map(score).fold(f64::NEG_INFINITY, f64::max),
    }
}

proptest! {
    /// All trials have come to the same step, and each is judged by the same history.
    #[test]
    fn a_better_trial_is_never_stopped_before_a_worse_one(
        policy in policy(),
        maximize in any::<bool>(),
        curves in (1_usize..6).prop_flat_map(|steps| prop::collection::vec(prop::collection::vec(value(), steps), 2..9)),
        ended in any::<u8>(),
    ) {
        let goal = if maximize { Goal::Maximize } else { Goal::Minimize };
        let slices: Vec<&[f64]> = curves.iter().map(Vec::as_slice).collect();
        let mut history = history(goal, &slices);
        // Only trials that run are judged.
        let is_ended = |trial: u32| trial >= 2 && ended >> trial & 1 == 1;
        (0..slices.len() as u32).filter(|trial| is_ended(*trial)).for_each(|trial| history.end(TrialId(trial)));
        let running: Vec<(f64, bool)> = (0..slices.len() as u32)
            .filter(|trial| !is_ended(*trial))
            .map(|trial| {
                let stop = policy.evaluate(&history, TrialId(trial)).is_some_and(|decision| decision.is_stop());
                (compared(policy, goal, slices[trial as usize]), stop)
            })
            .collect();
        for (better, better_stops) in &running {
            for (worse, worse_stops) in &running {
                prop_assert!(!(better > worse && *better_stops && !*worse_stops), "{better} {worse} {curves:?}");
            }
        }
        // Somebody always goes on, unless there is nothing to compare.
        let best = running.iter().map(|(score, _)| *score).fold(f64::NEG_INFINITY, f64::max);
        if best.is_finite() && !(0..8).any(is_ended) {
            prop_assert!(running.iter().any(|(_, stop)| !stop), "{curves:?}");
        }
    }
}

#[test]
fn the_average_of_equal_values_is_not_better_than_they_are() {
    let policy = TerminationPolicy::Median(Median { schedule: EVERY });
    let curve = [0.104_444; 40];
    for steps in 1..=curve.len() {
        assert!(!stops(policy, Goal::Maximize, &[&curve[..steps]], 0), "{steps} steps");
    }
}
