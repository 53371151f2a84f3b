//! A program whose machine code is for compute capability 7.0 alone, without PTX: six hours of it.

use cudock_facts::services::AzureOffering;
use cudock_facts::version::Date;
use cudock_plan::Priority;

use crate::support::workloads::{GB, hours, volta_binary};
use crate::support::{code, embedded, embedded_plan, first, fixed, fixed_plan, named, of, rejections, usd};

const OLD: &str = "Standard_NC6s_v3";
const LARGE: &str = "Standard_ND40rs_v2";

#[test]
fn only_sizes_with_a_v100_are_left() {
    let workload = volta_binary();
    let plan = fixed_plan(&workload);
    let catalog = &fixed().1;
    assert!(!plan.ranked().is_empty());
    assert!(plan.ranked().iter().all(|ranked| catalog.gpu_of(ranked.offer.size) == Some("V100")));
    for size in ["Standard_NC4as_T4_v3", "Standard_NC24ads_A100_v4", "Standard_ND96isr_H100_v5"] {
        assert_eq!(code(&plan, AzureOffering::Vm, size), "CD0805", "{size}");
    }
}

#[test]
fn the_small_v100_is_left_where_it_ends_later_and_warns_of_its_end() {
    let workload = volta_binary();
    let plan = fixed_plan(&workload);
    let best = first(&plan);
    // It ended on 2025-09-30, in Jio India West it ends on 2027-06-30, which the fixed tables take for a public region.
    assert_eq!(named(&best), (AzureOffering::MlServerless, OLD, "jioindiawest"));
    // 156.667 + 21,600 = 21,756.667 s = 362 min x 4.234 / 60 min = 25.5451333
    assert_eq!(best.cost.total, usd(25, 545_133_334));
    let end = best.warnings.iter().find(|finding| finding.message.contains("2027-06-30"));
    assert!(end.is_some(), "{:?}", best.warnings);
    // Elsewhere it is refused, with the day.
    let why = rejections(&plan, AzureOffering::Vm, OLD);
    assert!(!why.is_empty() && why.iter().all(|rejection| rejection.code == "CD0801"), "{why:?}");
    assert!(why.iter().all(|rejection| rejection.reason.contains("2025-09-30")), "{why:?}");
}

#[test]
fn the_large_one_costs_five_times_as_much() {
    let workload = volta_binary();
    let plan = fixed_plan(&workload);
    // 362 min x 22.032 / 60 min = 132.9264
    assert_eq!(of(&plan, AzureOffering::MlServerless, LARGE).cost.total, usd(132, 926_400_000));
}

#[test]
fn work_that_outlives_the_size_is_refused_there() {
    let mut workload = volta_binary();
    workload.work = cudock_plan::Work::Job { duration: hours(5 * 24) };
    workload.begins = Date::new(2027, 6, 28).expect("a Monday");
    let plan = fixed_plan(&workload);
    // 28 June and five days are past 30 June.
    let why = rejections(&plan, AzureOffering::Vm, OLD);
    let there = why.iter().filter(|rejection| rejection.region.as_deref() == Some("jioindiawest"));
    assert_eq!(there.map(|rejection| rejection.code).collect::<Vec<_>>(), ["CD0813"], "{why:?}");
    assert_eq!(first(&plan).size, LARGE);
}

#[test]
fn the_same_code_runs_on_the_next_capability_of_its_generation() {
    // Machine code of 7.0 runs on 7.5: the T4. Nobody has to pay for a V100.
    let mut workload = volta_binary();
    workload.gpu.greatest_capability = "7.5".parse().ok();
    let plan = fixed_plan(&workload);
    let best = first(&plan);
    assert_eq!(named(&best), (AzureOffering::MlCluster, "Standard_NC4as_T4_v3", "eastus"));
    // 362 min x 0.526 / 60 min = 3.1735333
    assert_eq!(best.cost.total, usd(3, 173_533_334));
}

#[test]
fn more_than_16_gb_leave_the_large_v100_alone() {
    let mut workload = volta_binary();
    workload.gpu.memory = 24 * GB;
    workload.gpu.greatest_capability = "7.5".parse().ok();
    let plan = fixed_plan(&workload);
    let best = first(&plan);
    assert_eq!((best.size.as_str(), best.priority), (LARGE, Priority::Regular));
    assert_eq!(code(&plan, AzureOffering::Vm, "Standard_NC4as_T4_v3"), "CD0804");
}

#[test]
fn the_tables_of_today_offer_no_v100_outside_of_public_regions() {
    let workload = volta_binary();
    let plan = embedded_plan(&workload);
    assert!(!plan.ranked().is_empty());
    assert!(plan.ranked().iter().chain(plan.unlisted()).all(|ranked| {
        let catalog = &embedded().1;
        catalog.size_name(ranked.offer.size) == LARGE
            && !catalog.region_name(ranked.offer.region).contains("jio")
    }));
    let codes: Vec<&str> =
        rejections(&plan, AzureOffering::Vm, OLD).iter().map(|rejection| rejection.code).collect();
    assert!(!codes.is_empty() && codes.iter().all(|code| *code == "CD0801"), "{codes:?}");
}
