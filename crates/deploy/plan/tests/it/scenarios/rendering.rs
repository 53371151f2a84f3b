//! 10,000 images in two hours, every night: six seconds each on a T4.

use cudock_facts::services::AzureOffering;
use std::time::Duration;

use cudock_plan::PartKind;

use crate::support::workloads::{hours, nightly_rendering};
use crate::support::{embedded_plan, first, fixed_plan, named, of, parts, rejections, usd};

const T4: &str = "Standard_NC4as_T4_v3";

#[test]
fn nine_machines_are_the_fewest_that_are_done_in_two_hours() {
    let workload = nightly_rendering();
    let plan = fixed_plan(&workload);
    let best = first(&plan);
    // 7200 s - 516.667 s of start leave 1113 images of 6 s: 10,000 / 1113 = 8.98, so 9 machines; with 8 it is
    // 1250 images and 8016.667 s.
    assert_eq!(named(&best), (AzureOffering::MlCluster, T4, "eastus"));
    assert_eq!(best.instances, 9);
    // 10,000 = 9 x 1111 + 1: one machine does 1112 images, 516.667 + 6672 s.
    assert_eq!(best.times.total, Duration::from_millis(516_667 + 6_672_000));
    // One: 156.667 + 6672 = 6828.667 s, eight: 156.667 + 6666 = 6822.667 s; 113 min = 6780 s are billed of
    // each. 9 x 6780 s x 0.526 / 3600 s = 8.9157
    //   of which start: 9 x 156.667 s x 0.526 / 3600 s = 0.206017105
    assert_eq!(
        parts(&best),
        [(PartKind::Compute, usd(8, 709_682_895)), (PartKind::ColdStart, usd(0, 206_017_105))]
    );
    assert_eq!(best.cost.total, usd(8, 915_700_000));
}

#[test]
fn a_slower_start_needs_one_machine_more() {
    let workload = nightly_rendering();
    let plan = fixed_plan(&workload);
    // Kubernetes: 450 s for a node, 26.667 s, 10000/150 = 66.667 s and 30 s: 573.334 s. 7200 s leave 1104
    // images; 9 machines would need 1112, 10 need 1000.
    let aks = of(&plan, AzureOffering::Aks, T4);
    assert_eq!(aks.instances, 10);
    assert_eq!(aks.times.total, Duration::from_millis(573_334 + 6_000_000));
}

#[test]
fn serverless_starts_first_and_costs_three_times_as_much() {
    let workload = nightly_rendering();
    let plan = fixed_plan(&workload);
    let apps = of(&plan, AzureOffering::ContainerApps, "Consumption-GPU-NC8as-T4");
    // A second: 8 vCPU x 0.000024 + 56 GiB x 0.000003 + a T4 at 0.000073 = 0.000433.
    // 9 replicas: 100 s of start, 60 s of them paid for. Work: 6672 + 8 x 6666 = 60,000 s x 0.000433 = 25.98.
    // Start: 9 x 60 s x 0.000433 = 0.23382.
    assert_eq!(apps.instances, 9);
    assert_eq!(
        parts(&apps),
        [(PartKind::Compute, usd(25, 980_000_000)), (PartKind::ColdStart, usd(0, 233_820_000))]
    );
    assert_eq!(
        (apps.times.start, apps.times.total),
        (Duration::from_secs(100), Duration::from_secs(100 + 6672))
    );
    // The tenth machine that Kubernetes needs for its slow start makes it the first to be done: 6573.334 s.
    let fastest = plan.choices().fastest.expect("something fits");
    assert_eq!((fastest.offer.service, fastest.time), (AzureOffering::Aks, Duration::from_millis(6_573_334)));
}

#[test]
fn more_time_means_fewer_machines_and_less_money() {
    let mut workload = nightly_rendering();
    workload.constraints.deadline = Some(hours(9));
    let plan = fixed_plan(&workload);
    let best = first(&plan);
    // 32,400 - 516.667 s leave 5313 images: two machines of 5000.
    assert_eq!(best.instances, 2);
    // Each: 156.667 + 30,000 = 30,156.667 s = 502 min = 30,120 s; 2 x 30,120 s x 0.526 / 3600 s = 8.80173333.
    assert_eq!(best.cost.total, usd(8, 801_733_334));
}

#[test]
fn a_deadline_before_the_first_image_is_refused() {
    let mut workload = nightly_rendering();
    workload.constraints.deadline = Some(Duration::from_secs(90));
    let plan = fixed_plan(&workload);
    assert!(plan.ranked().is_empty());
    let why = rejections(&plan, AzureOffering::Vm, T4);
    assert!(why.iter().any(|rejection| rejection.code == "CD0902"), "{why:?}");
}

#[test]
fn the_tables_of_today_are_done_in_time() {
    let workload = nightly_rendering();
    let plan = embedded_plan(&workload);
    let best = first(&plan);
    assert_eq!(best.gpu, "T4");
    assert!(plan.ranked().iter().all(|ranked| ranked.time <= hours(2)));
}
