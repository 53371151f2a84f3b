//! Three days of training on two machines with eight H100 each, joined by `InfiniBand`.

use cudock_facts::services::AzureOffering;
use std::time::Duration;

use cudock_plan::PartKind;

use crate::support::workloads::{GB, llm_training};
use crate::support::{code, embedded_plan, first, fixed_plan, named, of, parts, rejections, usd};

const H100: &str = "Standard_ND96isr_H100_v5";

#[test]
fn three_days_on_two_machines_cost_what_144_hours_and_two_starts_cost() {
    let workload = llm_training();
    let plan = fixed_plan(&workload);
    let best = first(&plan);
    assert_eq!(named(&best), (AzureOffering::MlCluster, H100, "eastus"));
    assert_eq!((best.instances, best.gpus_per_instance), (2, 8000));
    // Each machine: 156.667 s of start + 259,200 s of work = 259,356.667 s = 4322.6 min; 4322 min = 259,320 s
    // are billed. 2 x 259,320 s x 98.32 / 3600 s = 14,164.63466667
    //   of which start: 2 x 156.667 s x 98.32 / 3600 s = 8.5574996889
    //   and work: 2 x (259,320 - 156.667) s x 98.32 / 3600 s = 14,156.0771669778
    assert_eq!(
        parts(&best),
        [(PartKind::Compute, usd(14_156, 77_166_978)), (PartKind::ColdStart, usd(8, 557_499_689))]
    );
    assert_eq!(best.cost.total, usd(14_164, 634_666_667));
    // 516.667 s until both work, then three days.
    assert_eq!(best.times.total, Duration::from_millis(516_667 + 259_200_000));
}

#[test]
fn virtual_machines_start_sooner_and_pay_for_their_disks() {
    let workload = llm_training();
    let plan = fixed_plan(&workload);
    let vm = of(&plan, AzureOffering::Vm, H100);
    // Two disks for 316.667 + 259,200 s: 2 x 259,516.667 s x 21.68 / 2,628,000 s = 4.2818275045
    assert_eq!(parts(&vm).last(), Some(&(PartKind::Disk, usd(4, 281_827_505))));
    assert_eq!(vm.cost.total, usd(14_164, 634_666_667) + usd(4, 281_827_505));
    // 160 s until a machine is there against 360 s: nothing is done sooner.
    let fastest = plan.choices().fastest.expect("something fits");
    assert_eq!(fastest.offer.service, AzureOffering::Vm);
}

#[test]
fn an_h200_that_is_no_faster_is_cheaper_still() {
    let mut workload = llm_training();
    workload.gpu.models.push("H200".to_owned());
    workload.gpu.speeds.insert("H200".to_owned(), 1_000_000_000);
    let plan = fixed_plan(&workload);
    let best = first(&plan);
    assert_eq!(named(&best), (AzureOffering::MlCluster, "Standard_ND96isr_H200_v5", "westus3"));
    // The same 2 x 259,320 s at 84.80: 12,216.8533333, rounded up once.
    assert_eq!(best.cost.total, usd(12_216, 853_333_334));
}

#[test]
fn each_machine_that_cannot_do_it_says_why() {
    let mut workload = llm_training();
    workload.gpu.models.clear();
    let plan = fixed_plan(&workload);
    let on_vm = |size: &str| code(&plan, AzureOffering::Vm, size);
    // 4 GPUs of 8, arm64, AMD, 32 GB of 70 GB, retired.
    assert_eq!(on_vm("Standard_NC96ads_A100_v4"), "CD0806");
    assert_eq!(on_vm("Standard_ND128isr_NDR_GB200_v6"), "CD0809");
    assert_eq!(on_vm("Standard_ND96isr_MI300X_v5"), "CD0814");
    assert_eq!(on_vm("Standard_ND40rs_v2"), "CD0804");
    assert_eq!(on_vm("Standard_NC6"), "CD0801");
    // Two GPUs in a machine are there without InfiniBand.
    workload.gpu.per_instance = 2;
    let plan = fixed_plan(&workload);
    assert_eq!(code(&plan, AzureOffering::Vm, "Standard_NC80adis_H100_v5"), "CD0807");
    // Container Apps has one GPU in a replica, and replicas do not find each other.
    assert!(!rejections(&plan, AzureOffering::ContainerApps, "Consumption-GPU-NC24-A100").is_empty());
}

#[test]
fn two_hundred_gigabytes_on_one_t4_get_the_nearest_and_why_not() {
    let mut workload = llm_training();
    workload.gpu.models = vec!["T4".to_owned()];
    workload.gpu.memory = 200 * GB;
    let plan = fixed_plan(&workload);
    assert!(plan.ranked().is_empty());
    let nearest = plan.nearest();
    assert!(!nearest.is_empty());
    assert!(nearest.iter().all(|rejection| !rejection.reason.is_empty()));
}

#[test]
fn the_tables_of_today_have_a_machine_for_it() {
    let workload = llm_training();
    let plan = embedded_plan(&workload);
    let best = first(&plan);
    assert_eq!((best.gpu.as_str(), best.gpus_per_instance, best.instances), ("H100-SXM", 8000, 2));
    assert!(plan.ranked().iter().all(|ranked| ranked.offer.service != AzureOffering::ContainerApps));
    // Never fewer than 2 x 72 h of one machine's price.
    assert!(best.cost.total >= best.price_per_hour.times(144));
}
