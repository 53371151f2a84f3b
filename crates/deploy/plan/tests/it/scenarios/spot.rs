//! A day on an A100, on demand and on Spot, with a checkpoint every half hour that takes 30 s.

use cudock_facts::services::AzureOffering;
use std::time::Duration;

use cudock_plan::{PartKind, Priority, Spot, Workload};

use crate::support::workloads::{hours, minutes, per_hour, spot_training};
use crate::support::{at, embedded_plan, first, fixed_plan, named, of, parts, rejections, usd};

const A100: &str = "Standard_NC24ads_A100_v4";

/// The day, evicted so many times in a thousand hours.
fn evicted(evictions_per_hour: u64, checkpoint_every: Option<Duration>) -> Workload {
    let mut workload = spot_training();
    let takes = Duration::from_secs(if checkpoint_every.is_some() { 30 } else { 0 });
    let evictions = per_hour(evictions_per_hour);
    workload.spot = Some(Spot { evictions, checkpoint_every, checkpoint_takes: takes });
    workload
}

/// The mean time in milliseconds that work and checkpoints take beyond the work itself, as a sum of its own:
/// segments that start over when evicted, each eviction followed by a start.
fn lost_by_hand(per_hour: f64, segments: &[f64], work: f64, start: f64) -> f64 {
    let rate = per_hour / 3_600_000.0;
    segments.iter().map(|length| ((rate * length).exp() - 1.0) * (1.0 / rate + start)).sum::<f64>() - work
}

#[test]
fn two_evictions_in_a_hundred_hours_cost_half_an_hour_of_the_day() {
    let workload = spot_training();
    let plan = fixed_plan(&workload);
    // A machine of one's own costs the same within a twentieth, and a page names it.
    assert_eq!(named(&first(&plan)), (AzureOffering::Vm, A100, "eastus"));
    let spot = plan.find(AzureOffering::MlServerless, A100, None, Some(Priority::Spot)).expect("it fits");
    let best = plan.placement(spot);
    assert_eq!(best.region, "eastus");
    // 24 h in half hours: 47 segments of 1800 + 30 s, and the last of 1800 s without a checkpoint. A start is
    // 516.667 s, of which 156.667 s are paid for.
    let mut segments = vec![1_830_000.0; 47];
    segments.push(1_800_000.0);
    let wall = lost_by_hand(0.02, &segments, 86_400_000.0, 516_667.0);
    let paid = lost_by_hand(0.02, &segments, 86_400_000.0, 156_667.0);
    // That is 2111.066 s, 1410 s of them the 47 checkpoints; 1934.550 s are paid for.
    assert!((wall - 2_111_065.576).abs() < 0.1 && (paid - 1_934_550.110).abs() < 0.1, "{wall} {paid}");
    assert_eq!(best.times.lost, Duration::from_millis(2_111_066));
    // 156.667 + 86,400 + 1934.551 = 88,491.218 s = 1474 min = 88,440 s are billed, at 0.746721 an hour:
    // 51.218 s off the work.
    //   work: 86,348.782 s x 0.746721 / 3600 s = 17.9106802346
    //   start: 156.667 s = 0.0324962608; lost: 1934.551 s = 0.4012694046
    assert_eq!(
        parts(&best),
        [
            (PartKind::Compute, usd(17, 910_680_235)),
            (PartKind::ColdStart, usd(0, 32_496_261)),
            (PartKind::Evictions, usd(0, 401_269_404)),
        ]
    );
    assert_eq!(best.cost.total, usd(18, 344_445_900));
}

#[test]
fn on_demand_costs_five_times_as_much_and_is_done_sooner() {
    let workload = spot_training();
    let plan = fixed_plan(&workload);
    let regular = of(&plan, AzureOffering::MlServerless, A100);
    // 156.667 + 86,400 = 86,556.667 s = 1442 min: 86,520 s x 3.673 / 3600 s = 88.2744333
    assert_eq!(regular.cost.total, usd(88, 274_433_334));
    assert_eq!(regular.times.lost, Duration::ZERO);
    let spot = at(&plan, AzureOffering::MlServerless, A100, Priority::Spot);
    assert!(regular.times.total < spot.times.total);
}

#[test]
fn without_checkpoints_the_same_evictions_turn_the_choice_around() {
    // 12 evictions in a hundred hours. Without checkpoints the day starts over: (e^2.88 - 1) / 2.88 = 5.84
    // times as long, and Spot is 3.673 / 0.746721 = 4.92 times cheaper. With them it is 3 % longer, and a few
    // starts.
    let bare = evicted(120, None);
    assert_eq!(first(&fixed_plan(&bare)).priority, Priority::Regular);
    let saved = evicted(120, Some(minutes(30)));
    assert_eq!(first(&fixed_plan(&saved)).priority, Priority::Spot);
    // At 10 in a hundred hours it is (e^2.4 - 1) / 2.4 = 4.18 times as long: Spot is still cheaper.
    assert_eq!(first(&fixed_plan(&evicted(100, None))).priority, Priority::Spot);
}

#[test]
fn work_that_takes_ten_times_its_length_is_refused() {
    // (e^(24 x 0.16) - 1) / 3.84 = 11.9 days for a day.
    let workload = evicted(160, None);
    let plan = fixed_plan(&workload);
    assert!(plan.ranked().iter().all(|ranked| ranked.offer.priority == Priority::Regular));
    let why = rejections(&plan, AzureOffering::Vm, A100);
    assert!(why.iter().any(|no| no.code == "CD0905" && no.priority == Some(Priority::Spot)), "{why:?}");
}

#[test]
fn who_bears_no_eviction_gets_no_spot() {
    let mut workload = spot_training();
    workload.spot = None;
    let plan = fixed_plan(&workload);
    assert!(plan.ranked().iter().all(|ranked| ranked.offer.priority == Priority::Regular));
}

#[test]
fn two_machines_that_work_together_are_evicted_twice_as_often() {
    let mut together = spot_training();
    together.gpu.instances = 2;
    let plan = fixed_plan(&together);
    let two = at(&plan, AzureOffering::Vm, A100, Priority::Spot);
    let twice = evicted(40, Some(minutes(30)));
    let plan = fixed_plan(&twice);
    let one = at(&plan, AzureOffering::Vm, A100, Priority::Spot);
    assert_eq!(two.times.lost, one.times.lost);
    assert_eq!(two.times.total, one.times.total);
}

#[test]
fn spot_that_costs_the_same_is_named() {
    let mut workload = spot_training();
    workload.gpu.models = vec!["H200".to_owned()];
    workload.gpu.measured_on = Some("H200".to_owned());
    let plan = fixed_plan(&workload);
    let best = first(&plan);
    assert_eq!(best.priority, Priority::Regular);
    let spot = plan.find(AzureOffering::Vm, "Standard_ND96isr_H200_v5", None, Some(Priority::Spot));
    let warned = spot
        .is_some_and(|ranked| plan.placement(ranked).warnings.iter().any(|finding| finding.code == "CD0821"));
    let why = rejections(&plan, AzureOffering::Vm, "Standard_ND96isr_H200_v5");
    assert!(warned || why.iter().any(|rejection| rejection.code == "CD0821"), "{why:?}");
}

#[test]
fn the_tables_of_today_save_with_spot() {
    let workload = spot_training();
    let plan = embedded_plan(&workload);
    let best = first(&plan);
    assert_eq!((best.priority, best.gpu.as_str()), (Priority::Spot, "A100-80"));
    assert!(best.times.lost > Duration::ZERO && best.times.work >= hours(24));
}
