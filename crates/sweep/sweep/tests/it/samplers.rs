//! Samplers: they are determined by the seed, stay within bounds, and find what they are for.

use cudock_sweep::sampler::Tpe;
use cudock_sweep::{
    Assignment, Condition, Distribution, Event, Goal, Parameter, ParameterValue, SOBOL_DIMENSIONS,
    SamplerKind, Space, Sweep, SweepAction, SweepPlan, TrialId,
};
use proptest::prelude::*;

use crate::support::{at, created, ended, objective, plan, record, reported, text, uniform};

/// Runs trials one after the other, and returns the parameters and the value of each.
fn run(plan: SweepPlan, value: impl Fn(&Assignment) -> f64) -> Vec<(Assignment, f64)> {
    let mut sweep = Sweep::replay(&[record(0, created(plan, 1))]).unwrap();
    let mut results = Vec::new();
    for second in 0.. {
        for action in sweep.next(at(second)) {
            for event in action.events() {
                sweep.apply(&record(second, event)).unwrap();
            }
            let SweepAction::Start { trial: TrialId(trial), parameters, .. } = action else { return results };
            let value = value(&parameters);
            sweep.apply(&record(second, reported(trial, 1, "score", 1, value))).unwrap();
            sweep.apply(&record(second, ended(trial, 1, 0, 1))).unwrap();
            results.push((parameters, value));
        }
    }
    unreachable!("a sweep ends")
}

fn number(assignment: &Assignment, name: &str) -> f64 {
    match assignment[name] {
        ParameterValue::Float(value) => value,
        ParameterValue::Int(value) => value as f64,
        ref other => panic!("{other:?}"),
    }
}

#[test]
fn the_seed_determines_every_trial() {
    for sampler in [SamplerKind::Random, SamplerKind::Sobol, SamplerKind::Tpe(Tpe { startup_trials: 4 })] {
        let parameters = |seed| {
            let results = run(SweepPlan { sampler, seed, ..plan(20) }, |assignment| number(assignment, "x"));
            results.into_iter().map(|(parameters, _)| parameters).collect::<Vec<_>>()
        };
        assert_eq!(parameters(1), parameters(1), "{sampler:?}");
        assert_ne!(parameters(1), parameters(2), "{sampler:?}");
    }
}

#[test]
fn a_grid_tries_every_combination_once_and_ends() {
    let choice = Distribution::Choice(vec![text("a"), text("b"), text("c")]);
    let randint = Distribution::RandInt { start: 0, end: 9 };
    let parameter =
        |name: &str, distribution| Parameter { name: name.to_owned(), distribution, conditions: vec![] };
    let space = Space { parameters: vec![parameter("kind", choice), parameter("size", randint)] };
    let mut grid = SweepPlan { sampler: SamplerKind::Grid, space, ..plan(1) };
    grid.limits.trials = None;
    let mut seen: Vec<String> =
        run(grid.clone(), |_| 0.0).iter().map(|(one, _)| format!("{one:?}")).collect();
    assert_eq!(seen.len(), 27);
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 27);
    grid.limits.trials = Some(5);
    assert_eq!(run(grid, |_| 0.0).len(), 5);
}

#[test]
fn sobol_points_are_more_even_than_random_ones() {
    // The largest gap between neighbors in each of several dimensions.
    let largest_gap = |sampler| {
        let parameters = (0..SOBOL_DIMENSIONS).map(|index| uniform(&format!("x{index:02}"))).collect();
        let results = run(SweepPlan { sampler, space: Space { parameters }, ..plan(64) }, |_| 0.0);
        let gaps = (0..SOBOL_DIMENSIONS).map(|index| {
            let name = format!("x{index:02}");
            let mut values: Vec<f64> = results.iter().map(|(one, _)| number(one, &name)).collect();
            values.sort_by(f64::total_cmp);
            values.windows(2).map(|pair| pair[1] - pair[0]).fold(0.0, f64::max)
        });
        gaps.fold(0.0, f64::max)
    };
    // One point in each 64th: a gap is below two of them.
    assert!(largest_gap(SamplerKind::Sobol) < 2.0 / 64.0);
    assert!(largest_gap(SamplerKind::Random) > 4.0 / 64.0);
}

#[test]
fn tpe_finds_better_parameters_than_random_search() {
    let space = Space {
        parameters: vec![
            Parameter {
                name: "lr".to_owned(),
                distribution: Distribution::LogUniform { min: 1e-5, max: 1.0 },
                conditions: vec![],
            },
            Parameter {
                name: "optimizer".to_owned(),
                distribution: Distribution::Choice(vec![text("adam"), text("lbfgs"), text("sgd")]),
                conditions: vec![],
            },
            Parameter {
                name: "momentum".to_owned(),
                distribution: Distribution::Uniform { min: 0.0, max: 1.0 },
                conditions: vec![Condition { parent: "optimizer".to_owned(), values: vec![text("sgd")] }],
            },
        ],
    };
    // The minimum is at lr = 1e-3 with sgd and a momentum of 0.9.
    let loss = |one: &Assignment| {
        let lr = (number(one, "lr").log10() + 3.0).powi(2);
        let momentum = one.get("momentum").map_or(1.0, |_| (number(one, "momentum") - 0.9).powi(2));
        lr + momentum
    };
    let mean_best = |sampler| {
        let best = |seed| {
            let objectives = vec![objective("score", Goal::Minimize)];
            let plan = SweepPlan { sampler, seed, space: space.clone(), objectives, ..plan(60) };
            run(plan, loss).into_iter().map(|(_, loss)| loss).fold(f64::INFINITY, f64::min)
        };
        (0..10).map(best).sum::<f64>() / 10.0
    };
    let (tpe, random) =
        (mean_best(SamplerKind::Tpe(Tpe { startup_trials: 10 })), mean_best(SamplerKind::Random));
    assert!(tpe < random / 2.0, "tpe {tpe}, random {random}");
}

#[test]
fn a_parameter_exists_if_and_only_if_its_condition_holds() {
    let conditional = |name: &str, parent: &str, values: Vec<ParameterValue>| Parameter {
        conditions: vec![Condition { parent: parent.to_owned(), values }],
        ..uniform(name)
    };
    let choice = |name: &str, values: &[&str]| Parameter {
        name: name.to_owned(),
        distribution: Distribution::Choice(values.iter().map(|value| text(value)).collect()),
        conditions: vec![],
    };
    let parameters = vec![
        choice("optimizer", &["adam", "sgd"]),
        conditional("beta", "optimizer", vec![text("adam")]),
        Parameter {
            conditions: vec![Condition { parent: "optimizer".to_owned(), values: vec![text("sgd")] }],
            ..choice("schedule", &["cosine", "step"])
        },
        // Its parent exists only under a condition itself.
        conditional("gamma", "schedule", vec![text("step")]),
    ];
    for sampler in [SamplerKind::Random, SamplerKind::Sobol, SamplerKind::Tpe(Tpe { startup_trials: 5 })] {
        let space = Space { parameters: parameters.clone() };
        let results = run(SweepPlan { sampler, space, ..plan(60) }, |one| one.len() as f64);
        for (one, _) in &results {
            let is = |name: &str, value: &str| one.get(name) == Some(&text(value));
            assert_eq!(one.contains_key("beta"), is("optimizer", "adam"), "{one:?}");
            assert_eq!(one.contains_key("schedule"), is("optimizer", "sgd"), "{one:?}");
            assert_eq!(one.contains_key("gamma"), is("schedule", "step"), "{one:?}");
        }
        assert!(results.iter().any(|(one, _)| one.contains_key("gamma")), "{sampler:?}");
    }
}

fn distribution() -> impl Strategy<Value = Distribution> {
    let range = (-100.0..100.0, 0.0..50.0).prop_map(|(min, size)| (min, min + size));
    let positive = (1e-6..10.0, 1.0..1e4).prop_map(|(min, factor)| (min, min * factor));
    prop_oneof![
        range.clone().prop_map(|(min, max)| Distribution::Uniform { min, max }),
        positive.clone().prop_map(|(min, max)| Distribution::LogUniform { min, max }),
        (range, 1.0..3.0).prop_map(|((min, max), step)| Distribution::QUniform {
            min,
            max: max + step,
            step
        }),
        positive.prop_map(|(min, max)| Distribution::QLogUniform { min, max: max + 1.0, step: 1.0 }),
        (-1000_i64..1000, 1_i64..50)
            .prop_map(|(start, count)| Distribution::RandInt { start, end: start + count }),
    ]
}

proptest! {
    #[test]
    fn values_stay_within_bounds(distribution in distribution(), seed in any::<u64>(), sampler in 0_usize..3) {
        let (low, high) = match distribution {
            Distribution::Uniform { min, max }
            | Distribution::LogUniform { min, max }
            | Distribution::QUniform { min, max, .. }
            | Distribution::QLogUniform { min, max, .. } => (min, max),
            Distribution::RandInt { start, end } => (start as f64, end as f64 - 1.0),
            ref other => panic!("{other:?}"),
        };
        let sampler = [SamplerKind::Random, SamplerKind::Sobol, SamplerKind::Tpe(Tpe { startup_trials: 3 })][sampler];
        let parameters = vec![Parameter { distribution, ..uniform("x") }];
        let plan = SweepPlan { sampler, seed, space: Space { parameters }, ..plan(12) };
        for (one, _) in run(plan, |one| number(one, "x")) {
            let value = number(&one, "x");
            let slack = 1e-9 * low.abs().max(high.abs());
            prop_assert!((low - slack..=high + slack).contains(&value), "{value} is not in {low}..={high}");
        }
    }
}

#[test]
fn proposals_are_journaled_so_a_sampler_is_called_once() {
    let mut sweep = Sweep::replay(&[record(0, created(plan(3), 3))]).unwrap();
    let actions = sweep.next(at(1));
    assert_eq!(actions.len(), 3);
    let [SweepAction::Start { parameters: first, .. }, ..] = actions.as_slice() else {
        panic!("{actions:?}")
    };
    let events = actions[0].events();
    assert!(matches!(&events[0], Event::Proposed { parameters, .. } if parameters == first));
    sweep.apply(&record(1, events[0].clone())).unwrap();
    // Killed before it was started: the same parameters, and no second proposal.
    let again = sweep.next(at(2));
    assert!(
        matches!(&again[0], SweepAction::Start { parameters, is_new: false, attempt: 1, .. } if parameters == first)
    );
}
