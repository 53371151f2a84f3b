//! What holds for every plan, whatever the request.

use std::time::Duration;

use cudock_base::Usd;
use cudock_plan::{Offer, Plan, Proof, Ranked, Work, Workload, plan};
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use crate::support::arbitrary::{disturbed_workload, sensible_workload, workload};
use crate::support::{curve_of, fixed, fixed_plan, no_verdicts};

const NOTHING_FITS: Usd = Usd::from_nanos(u128::MAX);

/// The least money it can be had for; too much for any purse where nothing fits.
fn best(plan: &Plan<'_>) -> Usd {
    plan.ranked().iter().map(|ranked| ranked.total).min().unwrap_or(NOTHING_FITS)
}

/// The ranking on some offers.
fn ranking(offers: &[Offer], workload: &Workload) -> Vec<(Offer, Usd, Duration)> {
    let (facts, catalog) = fixed();
    let catalog = catalog.clone().with_offers(offers.to_vec());
    let plan = plan(&catalog, facts, workload, no_verdicts());
    plan.ranked().iter().map(|ranked| (ranked.offer, ranked.total, ranked.time)).collect()
}

fn any_workload() -> BoxedStrategy<Workload> {
    prop_oneof![1 => workload(), 2 => sensible_workload(), 2 => disturbed_workload()].boxed()
}

/// Numbers of all lengths.
fn millis() -> impl Strategy<Value = u64> {
    (any::<u64>(), 0_u32..64).prop_map(|(millis, shift)| millis >> shift)
}

/// Looks at everything a plan has to say, so that whatever can go wrong does.
fn look_at_all(plan: &Plan<'_>) -> Result<(), TestCaseError> {
    let in_order = |a: &Ranked, b: &Ranked| a.total <= b.total || (a.tied && b.tied);
    prop_assert!(plan.ranked().is_sorted_by(in_order), "the cheapest first, but for what is assumed");
    prop_assert!(plan.ranked().iter().all(|ranked| ranked.proof != Proof::NotListed));
    prop_assert!(plan.unlisted().iter().all(|ranked| ranked.proof == Proof::NotListed));
    for ranked in plan.best_regions() {
        let placement = plan.placement(ranked);
        let sum: Usd = placement.cost.parts.iter().map(|part| part.money).sum();
        prop_assert_eq!(sum, placement.cost.total, "the parts of {} add up", placement.size);
        prop_assert_eq!(ranked.total, placement.cost.total);
        prop_assert!(placement.cost.parts.iter().all(|part| part.money > Usd::ZERO), "no empty parts");
        prop_assert!(!placement.size.is_empty() && !placement.region.is_empty());
        let parts = placement.cost.parts.iter().map(|part| &part.arithmetic);
        let warnings = placement.warnings.iter().map(|finding| &finding.message);
        for text in placement.reasons.iter().chain(parts).chain(warnings) {
            prop_assert!(!text.is_empty() && !text.contains("NaN") && !text.contains("$-"), "{}", text);
        }
    }
    for rejection in plan.rejected() {
        prop_assert!(rejection.code.starts_with("CD0") && rejection.code.len() == 6, "{}", rejection.code);
        prop_assert!(
            !rejection.reason.is_empty() && !rejection.reason.contains("NaN"),
            "{}",
            rejection.reason
        );
    }
    if plan.ranked().is_empty() {
        prop_assert!(!plan.rejected().is_empty(), "nothing is left out without a reason");
    }
    let choices = plan.choices();
    prop_assert_eq!(
        choices.cheapest.map(|ranked| ranked.total),
        plan.ranked().iter().map(|ranked| ranked.total).min()
    );
    let soonest = plan.ranked().iter().map(|ranked| ranked.time).min();
    if !plan.compares_published() {
        prop_assert_eq!(choices.fastest.map(|ranked| ranked.time), soonest);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 384, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_workload_brings_a_plan_down(workload in workload()) {
        look_at_all(&fixed_plan(&workload))?;
    }

    #[test]
    fn no_part_of_a_workload_brings_a_plan_down(workload in disturbed_workload()) {
        look_at_all(&fixed_plan(&workload))?;
    }

    #[test]
    fn the_parts_of_a_cost_are_its_total(workload in sensible_workload()) {
        look_at_all(&fixed_plan(&workload))?;
    }

    #[test]
    fn no_scale_makes_a_curve_panic(
        workload in any_workload(),
        a in any::<Index>(),
        b in any::<Index>(),
        low in millis(),
        high in millis(),
    ) {
        let (facts, catalog) = fixed();
        let (a, b) = (a.get(catalog.offers()), b.get(catalog.offers()));
        let curve = curve_of(catalog, facts, &workload);
        // Neither offer may panic at either end, whether it can do the work or not.
        for (offer, scale) in [(a, low), (a, high), (b, low), (b, high)] {
            let _ = curve.cost(offer, scale);
        }
        let found = curve.crossover(a, b, low, high);
        prop_assert!(found.is_none_or(|found| low < found && found <= high), "{:?}", found);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn more_gpu_memory_is_never_cheaper(workload in any_workload(), more in millis()) {
        let mut larger = workload.clone();
        larger.gpu.memory = workload.gpu.memory.saturating_add(more);
        prop_assert!(best(&fixed_plan(&larger)) >= best(&fixed_plan(&workload)));
    }

    #[test]
    fn fewer_regions_are_never_cheaper(workload in any_workload()) {
        let mut here = workload.clone();
        if here.constraints.regions.is_empty() {
            here.constraints.regions = vec!["westeurope".to_owned()];
        } else {
            here.constraints.regions.truncate(1);
        }
        prop_assert!(best(&fixed_plan(&here)) >= best(&fixed_plan(&workload)));
    }

    #[test]
    fn another_offer_never_makes_the_best_plan_more_expensive(
        workload in any_workload(),
        some in prop::collection::vec(any::<Index>(), 0..40),
        another in any::<Index>(),
    ) {
        let offers = fixed().1.offers();
        let mut held: Vec<Offer> = some.iter().map(|index| *index.get(offers)).collect();
        let cheapest = |offers: &[Offer]| {
            ranking(offers, &workload).iter().map(|(_, total, _)| *total).min().unwrap_or(NOTHING_FITS)
        };
        let before = cheapest(&held);
        held.push(*another.get(offers));
        prop_assert!(cheapest(&held) <= before);
    }

    #[test]
    fn longer_work_is_never_cheaper(workload in any_workload(), short in millis(), more in millis()) {
        let of = |millis: u64| {
            let duration = Duration::from_millis(millis);
            Workload { work: Work::Job { duration }, ..workload.clone() }
        };
        let (short, long) = (of(short), of(short.saturating_add(more)));
        prop_assert!(best(&fixed_plan(&long)) >= best(&fixed_plan(&short)));
    }

    #[test]
    fn more_work_is_never_cheaper_on_the_same_offer(
        workload in sensible_workload(), index in any::<Index>(), low in 1_u64..20_000, more in 0_u64..20_000,
    ) {
        let (facts, catalog) = fixed();
        let offer = index.get(catalog.offers());
        let costs = [low, low + more].map(|scale| curve_of(catalog, facts, &workload).cost(offer, scale));
        if let [Some(less), Some(more)] = costs {
            prop_assert!(less <= more, "{} {}", less, more);
        }
    }

    #[test]
    fn the_same_workload_has_the_same_plan(workload in any_workload()) {
        let offers = fixed().1.offers();
        prop_assert_eq!(ranking(offers, &workload), ranking(offers, &workload));
    }

    #[test]
    fn the_order_of_the_offers_does_not_matter(
        workload in any_workload(), offers in Just(fixed().1.offers().to_vec()).prop_shuffle(),
    ) {
        prop_assert_eq!(ranking(fixed().1.offers(), &workload), ranking(&offers, &workload));
    }
}

/// Properties of plans that hold nothing would hold for nothing.
#[test]
fn most_workloads_of_these_tests_fit_somewhere() {
    let mut runner = TestRunner::deterministic();
    let mut fits = |strategy: &BoxedStrategy<Workload>| {
        let drawn = (0..200).map(|_| strategy.new_tree(&mut runner).expect("a workload").current());
        drawn.filter(|workload| !fixed_plan(workload).ranked().is_empty()).count()
    };
    let (sensible, disturbed) = (fits(&sensible_workload()), fits(&disturbed_workload()));
    assert!(sensible > 100 && disturbed > 20, "{sensible} and {disturbed} of 200");
}
