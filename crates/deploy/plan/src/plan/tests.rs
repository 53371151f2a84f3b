use std::time::Duration;

use cudock_base::{Arch, Usd};

use super::*;
use crate::catalog::belongs;
use crate::catalog::offer::{Offer, RegionId, SizeId};
use crate::curve::CostCurve;
use crate::testing::{T4, catalog, facts, job, per_second, spot};
use crate::workload::Spot;

fn planned<T>(workload: &Workload, inspect: impl FnOnce(&Plan) -> T) -> T {
    let verdicts = Verdicts::default();
    inspect(&plan(catalog(), facts(), workload, &verdicts))
}

/// The codes of the rejections of a size at the regular priority.
fn codes(plan: &Plan, size: &str) -> Vec<&'static str> {
    let of_size = plan.rejected().iter().filter(|rejection| {
        rejection.size.as_deref() == Some(size) && rejection.priority != Some(Priority::Spot)
    });
    let mut codes: Vec<&str> = of_size.map(|rejection| rejection.code).collect();
    codes.sort_unstable();
    codes.dedup();
    codes
}

#[test]
fn every_size_on_every_service_is_ranked_or_has_a_reason() {
    planned(&job(60), |plan| {
        for service in AzureOffering::ALL {
            if plan.rejected().iter().any(|one| one.service == Some(service) && one.size.is_none()) {
                continue;
            }
            let machine = |size: &SizeId| catalog().machine(*size).unwrap();
            for size in catalog().sizes().filter(|size| belongs(machine(size), service)) {
                let name = catalog().size_name(size);
                let ranked = plan.find(service, name, None, None).is_some();
                let rejections = plan.rejected().iter();
                let rejections = rejections
                    .filter(|one| one.service == Some(service) && one.size.as_deref() == Some(name));
                assert!(ranked || rejections.count() > 0, "{} {name}", service.id());
            }
        }
    });
}

#[test]
fn the_order_is_by_cost_and_the_same_every_time() {
    let workload = job(60);
    let order = planned(&workload, |plan| plan.ranked().to_vec());
    assert!(order.is_sorted_by(|a, b| a.total <= b.total || (a.tied && b.tied)));
    assert_eq!(order, planned(&workload, |plan| plan.ranked().to_vec()));
}

#[test]
fn the_order_of_offers_does_not_matter() {
    let mut offers = catalog().offers().to_vec();
    offers.reverse();
    let other = catalog().clone().with_offers(offers);
    let (workload, verdicts) = (job(60), Verdicts::default());
    let reversed = plan(&other, facts(), &workload, &verdicts);
    planned(&workload, |plan| assert_eq!(plan.ranked(), reversed.ranked()));
}

#[test]
fn a_placement_costs_what_it_was_ranked_by() {
    let mut workload = job(60);
    workload.spot = Some(spot(50));
    planned(&workload, |plan| {
        for entry in plan.best_regions() {
            let placement = plan.placement(entry);
            assert_eq!(placement.cost.total, entry.total);
            let parts: Usd = placement.cost.parts.iter().map(|part| part.money).sum();
            assert_eq!(parts, entry.total);
            assert!(placement.cost.parts.iter().all(|part| !part.arithmetic.is_empty()), "{placement:?}");
            assert_eq!(placement.times.total, entry.time);
        }
    });
}

#[test]
fn spot_is_out_unless_the_work_bears_eviction() {
    planned(&job(60), |plan| {
        assert!(plan.ranked().iter().all(|entry| entry.offer.priority == Priority::Regular));
        let mut rejections = plan.rejected().iter();
        assert!(rejections.any(|one| one.priority == Some(Priority::Spot) && one.code == "CD0817"));
    });
}

#[test]
fn required_spot_that_is_not_offered_is_rejected() {
    let mut workload = job(60);
    workload.spot = Some(spot(50));
    workload.constraints.priority = Some(Priority::Spot);
    planned(&workload, |plan| {
        assert!(plan.ranked().iter().all(|entry| entry.offer.priority == Priority::Spot));
        assert_eq!(codes(plan, "Consumption-GPU-NC8as-T4"), ["CD0817", "CD0821"]);
    });
}

#[test]
fn a_size_without_a_price_in_the_allowed_regions_is_rejected() {
    let mut workload = job(60);
    workload.constraints.regions = vec!["antarctica".into()];
    planned(&workload, |plan| {
        assert!(plan.ranked().is_empty());
        assert_eq!(codes(plan, T4), ["CD0811"]);
    });
}

#[test]
fn a_region_that_is_not_public_offers_nothing() {
    // NC6s_v3 ended on 2025-09-30; jioindiawest keeps it until 2027-06-30 and is not on the list of public regions.
    let mut workload = job(60);
    planned(&workload, |plan| {
        assert!(plan.find(AzureOffering::Vm, "Standard_NC6s_v3", None, None).is_none());
        assert_eq!(codes(plan, "Standard_NC6s_v3"), ["CD0801"]);
    });
    workload.constraints.regions = vec!["jioindiawest".into()];
    planned(&workload, |plan| {
        assert!(plan.find(AzureOffering::Vm, "Standard_NC6s_v3", None, None).is_none());
        assert!(codes(plan, "Standard_NC6s_v3").contains(&"CD0827"));
    });
}

#[test]
fn a_restricted_region_is_offered_to_who_names_it_and_after_all_others() {
    let (size, there) = ("Standard_ND96amsr_A100_v4", "germanynorth");
    let mut workload = job(60);
    workload.constraints.sizes = vec![size.into()];
    planned(&workload, |plan| {
        assert!(plan.find(AzureOffering::Vm, size, Some(there), None).is_none());
        assert!(codes(plan, size).contains(&"CD0826"));
    });
    workload.constraints.regions = vec![there.into(), "westeurope".into()];
    planned(&workload, |plan| {
        let region = |entry: &Ranked| catalog().region_name(entry.offer.region);
        let order: Vec<&str> = plan.ranked().iter().map(region).collect();
        let first = order.iter().position(|name| *name == there).unwrap();
        assert!(first > 0 && order.iter().skip(first).all(|name| *name == there), "{order:?}");
        let placement = plan.placement(plan.find(AzureOffering::Vm, size, Some(there), None).unwrap());
        assert!(placement.warnings.iter().any(|finding| finding.code == "CD0826"));
    });
}

#[test]
fn offers_above_the_budget_are_rejected_with_the_figure() {
    let mut workload = job(60);
    workload.constraints.sizes = vec![T4.into()];
    workload.constraints.services = vec!["vm".into()];
    workload.constraints.regions = vec!["westeurope".into()];
    let total = planned(&workload, |plan| plan.ranked()[0].total);
    workload.constraints.budget = Some(total);
    planned(&workload, |plan| assert_eq!(plan.ranked().len(), 1));
    workload.constraints.budget = Some(Usd::from_nanos(total.nanos() - 1));
    planned(&workload, |plan| {
        assert!(plan.ranked().is_empty());
        assert_eq!(codes(plan, T4), ["CD0901"]);
        assert_eq!(plan.nearest()[0].size.as_deref(), Some(T4));
    });
}

#[test]
fn the_nearest_to_the_impossible_is_the_largest() {
    let mut workload = job(60);
    workload.gpu.memory = 250_000_000_000;
    workload.machine.architecture = Some(Arch::X86_64.into());
    planned(&workload, |plan| {
        assert!(plan.ranked().is_empty());
        let nearest = plan.nearest();
        assert_eq!(nearest[0].size.as_deref(), Some("Standard_ND96isr_H200_v5"));
        assert_eq!(nearest[0].reason, "141 GB on each of 8 H200, 250 GB needed");
    });
}

#[test]
fn no_figure_is_too_large_or_too_small() {
    use crate::workload::{DataNeeds, DayLoad, Image, Work};
    use cudock_facts::tables::DataAccess;
    let times = [Duration::ZERO, Duration::from_nanos(1), Duration::MAX];
    let counts = [0, 1, u64::MAX];
    let mut works = Vec::new();
    for each in times {
        works.push(Work::Job { duration: each });
        for count in counts {
            let few = u32::try_from(count).unwrap_or(u32::MAX);
            works.push(Work::Items { items: count, each, at_once: None });
            works.push(Work::Items { items: u64::MAX, each, at_once: Some(few) });
            works.push(Work::Sweep { trials: few, at_once: few, each });
            works.push(Work::Sweep { trials: u32::MAX, at_once: few, each });
        }
    }
    for (load, replica) in counts.iter().flat_map(|load| counts.map(|replica| (*load, replica))) {
        for target_percent in [0, 1, u8::MAX] {
            let load = DayLoad { hours: [per_second(load); 24] };
            works.push(Work::Serve { load, replica_rate: per_second(replica), target_percent });
        }
    }
    for work in works {
        for large in counts {
            let mut workload = crate::testing::workload(work.clone());
            let long = Duration::from_secs(large);
            workload.gpu.instances = u32::try_from(large).unwrap_or(u32::MAX);
            workload.gpu.speeds.insert("T4".into(), large);
            workload.start.image = Some(Image { compressed: large, unpacked: large, ..Image::default() });
            workload.start.weights = large;
            (workload.start.ready, workload.start.jit) = (long, long);
            workload.spot = Some(Spot {
                evictions: per_second(large),
                checkpoint_every: Some(long),
                checkpoint_takes: long,
            });
            workload.data = Some(DataNeeds {
                bytes: large,
                storage: "blob-cool".into(),
                region: Some("northeurope".into()),
                access: DataAccess::Either,
                passes: u32::MAX,
                rate_per_gpu: Some(large),
                read_size: large,
                leaves: large,
            });
            workload.constraints.deadline = Some(long).filter(|_| large != 1);
            workload.constraints.cold_starts_allowed = large != 1;
            planned(&workload, |plan| {
                assert!(!plan.ranked().is_empty() || !plan.rejected().is_empty());
                for entry in plan.ranked().iter().take(20) {
                    assert_eq!(plan.placement(entry).cost.total, entry.total, "{workload:?}");
                }
                let (offer, verdicts) = (catalog().offers().first().unwrap(), Verdicts::default());
                let curve = CostCurve {
                    catalog: catalog(),
                    facts: facts(),
                    workload: &workload,
                    verdicts: &verdicts,
                };
                for scale in counts {
                    let _ = curve.cost(offer, scale);
                }
            });
        }
    }
}

#[test]
fn rules_are_reported_for_any_size() {
    planned(&job(60), |plan| {
        let rules = plan.rules(AzureOffering::Vm, T4);
        assert_eq!(rules.len(), SERVICE_RULES.len() + SIZE_RULES.len());
        assert!(rules.iter().all(|rule| rule.holds && !rule.text.is_empty()), "{rules:?}");
        let retired = plan.rules(AzureOffering::Vm, "Standard_NC6");
        assert!(retired.iter().any(|rule| !rule.holds && rule.code == "CD0801"));
        assert!(plan.rules(AzureOffering::Vm, "Standard_Nothing").is_empty());
    });
}

#[test]
fn offers_of_no_catalog_are_left_out() {
    let date = job(1).begins;
    let offer =
        |size, region| Offer::new(AzureOffering::Vm, size, region, Priority::Regular, Usd::ZERO, date);
    let other = catalog()
        .clone()
        .with_offers(vec![offer(SizeId(u16::MAX), RegionId(0)), offer(SizeId(0), RegionId(u16::MAX))]);
    assert!(other.offers().is_empty());
    let (workload, verdicts) = (job(60), Verdicts::default());
    assert!(plan(&other, facts(), &workload, &verdicts).ranked().is_empty());
}
