//! What an expert would choose, on the tables the program carries: for each question the first choice, what must not be
//! among the first three, and the documented fact that decides.
//!
//! Prices move, so a choice is a set of sizes where several are equally good; what is refused is refused whatever it costs.

mod cases;

use cudock_facts::services::AzureOffering;
use cudock_facts::tables::SupportValue::{Documented, InUse};
use cudock_plan::{Offer, Placement, Plan, Proof, Workload};
use proptest::prelude::*;

use crate::support::arbitrary::{disturbed_workload, sensible_workload};
use crate::support::{embedded, embedded_plan};

/// One question.
struct Case {
    name: &'static str,
    workload: Workload,
    /// Sizes of which the first choice is one; empty if nothing may be offered at all.
    first: &'static [&'static str],
    /// Services of which the first choice is one; empty if any will do.
    services: &'static [AzureOffering],
    /// Regions of which the first choice is one; empty if any will do.
    regions: &'static [&'static str],
    /// Whether a placement must not be among the first three.
    forbidden: fn(&Placement) -> bool,
    /// The documented fact that decides.
    why: &'static str,
}

fn top_three(plan: &Plan<'_>) -> Vec<Placement> {
    plan.best_regions().into_iter().take(3).map(|ranked| plan.placement(ranked)).collect()
}

#[test]
fn the_first_choice_is_an_experts_and_nothing_forbidden_is_among_the_first_three() {
    let cases = cases::all();
    assert!(cases.len() >= 25, "{}", cases.len());
    let mut wrong = Vec::new();
    for case in &cases {
        let plan = embedded_plan(&case.workload);
        let top = top_three(&plan);
        let shown: Vec<String> = top
            .iter()
            .map(|one| format!("{} {} {} ${}", one.service.id(), one.size, one.region, one.cost.total))
            .collect();
        let good = match top.first() {
            None => case.first.is_empty(),
            Some(best) => {
                case.first.contains(&best.size.as_str())
                    && (case.services.is_empty() || case.services.contains(&best.service))
                    && (case.regions.is_empty() || case.regions.contains(&best.region.as_str()))
            }
        };
        if !good || top.iter().any(case.forbidden) {
            wrong.push(format!("{}: {shown:?}; {}", case.name, case.why));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

/// Whether the tables prove that a service has a size in a region: found in them row by row and not by the planner.
fn is_proven(workload: &Workload, offer: &Offer) -> bool {
    let (facts, catalog) = embedded();
    let services = facts.services();
    let (name, region) = (catalog.size_name(offer.size), catalog.region_name(offer.region));
    let Some(row) = services.region(region) else { return false };
    let named = workload.constraints.regions.iter().any(|wanted| wanted == region);
    if !row.listed || (row.restricted && !named) {
        return false;
    }
    if let Some(profile) = services.profile.iter().find(|profile| profile.name == name) {
        return profile.regions.iter().any(|offered| offered == region);
    }
    let Some(series) = facts.sizes().find(name).one().and_then(|size| size.series.as_deref()) else {
        return false;
    };
    let sold =
        services.regions_of_series(series).is_none_or(|row| row.regions.iter().any(|name| name == region));
    let support = services.support_of(offer.service.id(), series);
    sold && support.is_some_and(|row| matches!(row.value, Documented | InUse))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_offer_of_the_first_three_is_without_proof_in_its_service_and_region(
        workload in prop_oneof![sensible_workload(), disturbed_workload()],
    ) {
        let plan = embedded_plan(&workload);
        let first = plan.ranked().iter().take(3).chain(plan.best_regions().into_iter().take(3));
        for ranked in first {
            prop_assert!(is_proven(&workload, &ranked.offer), "{:?}", plan.placement(ranked));
        }
        for ranked in plan.unlisted() {
            prop_assert_eq!(ranked.proof, Proof::NotListed);
            prop_assert!(!is_proven(&workload, &ranked.offer), "{:?}", plan.placement(ranked));
        }
    }
}

#[test]
fn what_no_source_lists_carries_the_finding_that_says_so() {
    let mut workload = crate::support::workloads::job(std::time::Duration::from_secs(3600));
    workload.gpu.models = vec!["A10".to_owned()];
    workload.constraints.services = vec!["ml".to_owned()];
    let plan = embedded_plan(&workload);
    assert!(plan.ranked().is_empty(), "Microsoft's table of Machine Learning sizes has no A10");
    let unlisted = plan.placement(&plan.unlisted()[0]);
    let finding = unlisted.warnings.iter().find(|finding| finding.code == "CD0825").expect("the finding");
    assert!(finding.fix.contains("az ml compute list-sizes"), "{finding:?}");
    assert!(finding.evidence.iter().any(|seen| seen.detail.contains("2025-11")), "{finding:?}");
}
