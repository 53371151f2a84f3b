//! A CUDA program that computes 40 minutes on a T4.

use cudock_facts::services::AzureOffering;
use std::time::Duration;

use cudock_plan::{PartKind, Priority};

use crate::support::workloads::batch_job;
use crate::support::{code, embedded_plan, first, fixed_plan, named, of, parts, rejections, usd};

const T4: &str = "Standard_NC4as_T4_v3";

#[test]
fn forty_minutes_are_billed_as_42() {
    let workload = batch_job();
    let plan = fixed_plan(&workload);
    let best = first(&plan);
    // Serverless compute costs the same; a page names the size for clusters.
    assert_eq!(named(&best), (AzureOffering::MlCluster, T4, "eastus"));
    // 156.667 s of start + 2400 s = 2556.667 s = 42.6 min; 42 min x 0.526 / 60 min = 0.3682
    //   of which start: 156.667 s x 0.526 / 3600 s = 0.0228907894
    //   and work: 2363.333 s x 0.526 / 3600 s = 0.3453092106
    assert_eq!(
        parts(&best),
        [(PartKind::Compute, usd(0, 345_309_211)), (PartKind::ColdStart, usd(0, 22_890_789))]
    );
    assert_eq!(best.cost.total, usd(0, 368_200_000));
    assert_eq!(best.cost.total.rounded(), "0.37");
}

#[test]
fn virtual_machines_and_batch_pay_two_cents_for_the_disk() {
    let workload = batch_job();
    let plan = fixed_plan(&workload);
    // 316.667 + 2400 = 2716.667 s x 21.68 / 2,628,000 s = 0.0224114695
    let vm = of(&plan, AzureOffering::Vm, T4);
    assert_eq!(vm.cost.total, usd(0, 368_200_000) + usd(0, 22_411_470));
    // 486.667 + 2400 = 2886.667 s x 21.68 / 2,628,000 s = 0.0238139049
    let batch = of(&plan, AzureOffering::Batch, T4);
    assert_eq!(batch.cost.total, usd(0, 368_200_000) + usd(0, 23_813_905));
}

#[test]
fn serverless_containers_start_in_100_seconds_and_cost_three_times_as_much() {
    let workload = batch_job();
    let plan = fixed_plan(&workload);
    let apps = of(&plan, AzureOffering::ContainerApps, "Consumption-GPU-NC8as-T4");
    // 0.000433 a second: 2400 s = 1.0392, 60 s of start = 0.02598.
    assert_eq!(
        parts(&apps),
        [(PartKind::Compute, usd(1, 39_200_000)), (PartKind::ColdStart, usd(0, 25_980_000))]
    );
    assert_eq!(apps.times.total, Duration::from_secs(100 + 2400));
    let choices = plan.choices();
    assert_eq!(choices.fastest.map(|ranked| ranked.offer.service), Some(AzureOffering::ContainerApps));
    assert_eq!(choices.cheapest.map(|ranked| ranked.offer.service), Some(AzureOffering::MlCluster));
}

#[test]
fn container_instances_have_no_gpu_and_say_so_once() {
    let workload = batch_job();
    let plan = fixed_plan(&workload);
    let about = plan.rejected().iter().filter(|rejection| rejection.service == Some(AzureOffering::Aci));
    let [only] = about.collect::<Vec<_>>()[..] else { panic!("one word about Container Instances") };
    assert_eq!((only.code, only.size.as_deref()), ("CD0803", None));
    assert!(only.reason.contains("2025-07-14") && only.reason.contains("Container Apps"), "{}", only.reason);
}

#[test]
fn endpoints_do_not_run_jobs_and_other_gpus_are_not_allowed() {
    let workload = batch_job();
    let plan = fixed_plan(&workload);
    let endpoint =
        plan.rejected().iter().find(|rejection| rejection.service == Some(AzureOffering::MlEndpoint));
    assert_eq!(endpoint.map(|rejection| rejection.code), Some("CD0818"));
    assert_eq!(code(&plan, AzureOffering::Vm, "Standard_NC24ads_A100_v4"), "CD0817");
}

#[test]
fn a_budget_of_30_cents_is_too_little() {
    let mut workload = batch_job();
    workload.constraints.budget = Some(usd(0, 300_000_000));
    let plan = fixed_plan(&workload);
    assert!(plan.ranked().is_empty());
    let why = rejections(&plan, AzureOffering::Vm, T4);
    let regular = why.iter().find(|rejection| rejection.priority != Some(Priority::Spot));
    assert_eq!(regular.map(|rejection| rejection.code), Some("CD0901"), "{why:?}");
    // One billionth decides.
    workload.constraints.budget = Some(usd(0, 368_199_999));
    assert!(fixed_plan(&workload).ranked().is_empty());
    workload.constraints.budget = Some(usd(0, 368_200_000));
    assert_eq!(
        fixed_plan(&workload).ranked().first().map(|ranked| ranked.total),
        workload.constraints.budget
    );
}

#[test]
fn a_deadline_counts_from_the_order() {
    // 2400 s of work are within 2600 s everywhere; with its start a machine takes 2716.667 s, Container Apps 2500 s.
    let mut workload = batch_job();
    workload.constraints.deadline = Some(Duration::from_secs(2600));
    let plan = fixed_plan(&workload);
    assert!(plan.ranked().iter().all(|ranked| ranked.offer.service == AzureOffering::ContainerApps));
    assert_eq!(first(&plan).cost.total, usd(1, 65_180_000));
    let why = rejections(&plan, AzureOffering::Vm, T4);
    assert!(why.iter().any(|rejection| rejection.code == "CD0902"), "{why:?}");
    // A millisecond decides.
    workload.constraints.deadline = Some(Duration::from_millis(2_716_666));
    assert!(fixed_plan(&workload).find(AzureOffering::Vm, T4, None, None).is_none());
    workload.constraints.deadline = Some(Duration::from_millis(2_716_667));
    assert!(fixed_plan(&workload).find(AzureOffering::Vm, T4, None, None).is_some());
}

#[test]
fn the_tables_of_today_do_it_on_a_t4() {
    let workload = batch_job();
    let plan = embedded_plan(&workload);
    let best = first(&plan);
    assert_eq!(best.gpu, "T4");
    assert!(best.times.total > Duration::from_secs(2400));
    assert!(plan.considered() > plan.ranked().len());
    assert!(plan.rejected().iter().any(|rejection| rejection.code == "CD0803"));
}
