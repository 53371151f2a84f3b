//! A sweep of 27 trials of 20 minutes, three at a time.

use cudock_facts::services::AzureOffering;
use std::time::Duration;

use cudock_plan::{PartKind, Work};

use crate::support::workloads::{minutes, sweep};
use crate::support::{embedded_plan, first, fixed_plan, named, of, parts, usd};

const T4: &str = "Standard_NC4as_T4_v3";

#[test]
fn nine_waves_of_three_are_nine_trials_each_on_three_machines() {
    let workload = sweep();
    let plan = fixed_plan(&workload);
    let best = first(&plan);
    assert_eq!(named(&best), (AzureOffering::MlCluster, T4, "eastus"));
    assert_eq!(best.instances, 3);
    // 27 / 3 = 9 waves x 20 min = 180 min = 10,800 s, after one start of 516.667 s.
    assert_eq!(best.times.total, Duration::from_millis(516_667 + 10_800_000));
    assert_eq!(best.times.work, Duration::from_secs(10_800));
    // Each machine: 156.667 + 10,800 = 10,956.667 s = 182.6 min; 182 min = 10,920 s are billed.
    // 3 x 10,920 s = 9.1 h x 0.526 = 4.7866
    //   of which start: 3 x 156.667 s x 0.526 / 3600 s = 0.0686723683.
    assert_eq!(
        parts(&best),
        [(PartKind::Compute, usd(4, 717_927_632)), (PartKind::ColdStart, usd(0, 68_672_368))]
    );
    assert_eq!(best.cost.total, usd(4, 786_600_000));
}

#[test]
fn a_28th_trial_costs_one_machine_20_minutes_and_the_sweep_a_wave() {
    let mut workload = sweep();
    workload.work = Work::Sweep { trials: 28, at_once: 3, each: minutes(20) };
    let plan = fixed_plan(&workload);
    let best = first(&plan);
    // One machine does ten trials, two do nine and are given back: 156.667 + 12,000 = 12,156.667 s = 202 min,
    // and 2 x 182 min. (202 + 2 x 182) min = 566 min x 0.526 / 60 min = 4.9619333333
    assert_eq!(best.cost.total, usd(4, 961_933_334));
    // 28 / 3 = 9.33: ten waves.
    assert_eq!(best.times.work, Duration::from_secs(12_000));
    assert_eq!(best.times.total, Duration::from_millis(516_667 + 12_000_000));
}

#[test]
fn all_at_once_takes_one_wave_and_27_starts() {
    let mut workload = sweep();
    workload.work = Work::Sweep { trials: 27, at_once: 27, each: minutes(20) };
    let plan = fixed_plan(&workload);
    let best = of(&plan, AzureOffering::MlServerless, T4);
    assert_eq!(best.instances, 27);
    assert_eq!(best.times.total, Duration::from_millis(516_667 + 1_200_000));
    // Each: 156.667 + 1200 = 1356.667 s = 22 min; 27 x 22 min = 594 min x 0.526 / 60 min = 5.2074: 0.42 more
    // than in waves.
    assert_eq!(best.cost.total, usd(5, 207_400_000));
}

#[test]
fn the_tables_of_today_run_it_three_at_a_time() {
    let workload = sweep();
    let plan = embedded_plan(&workload);
    let best = first(&plan);
    assert_eq!(best.instances, 3);
    // Whatever GPU it is, a share of one takes longer: three hours is the least.
    assert!(best.times.work >= Duration::from_secs(10_800));
    assert!(plan.ranked().iter().all(|ranked| ranked.offer.service != AzureOffering::MlEndpoint));
}
