use std::time::Duration;

use crate::cost::billing::BilledTime;
use crate::cost::{Unfit, Usage};
use crate::testing::{HOUR, MINUTE, SECOND, T4, job, spot, used, workload};
use crate::workload::{Priority, Work, Workload};
use cudock_facts::services::AzureOffering;

/// The usage of a workload on T4 machines.
fn on_vm(workload: &Workload) -> Result<Usage, Unfit> {
    used(workload, AzureOffering::Vm, T4, Priority::Regular)
}

fn items(items: u64, seconds: u64, at_once: Option<u32>, deadline: Option<u64>) -> Workload {
    let mut workload = workload(Work::Items { items, each: Duration::from_secs(seconds), at_once });
    workload.constraints.deadline = deadline.map(Duration::from_secs);
    workload
}

/// The usage of trials of twenty minutes on a cluster, three at a time.
fn sweep(trials: u32) -> Usage {
    let each = Duration::from_secs(20 * 60);
    let sweep = workload(Work::Sweep { trials, at_once: 3, each });
    used(&sweep, AzureOffering::MlCluster, T4, Priority::Regular).unwrap()
}

#[test]
fn forty_minutes_on_a_machine_are_a_start_and_forty_minutes_cut_to_whole_minutes() {
    // 160 s to a machine (not billed), 3 GB at 150 MB/s = 20 s, 6 GB at 100 MB/s = 60 s, 5 s to be ready: 245 s.
    // Billed: 85 s + 2400 s = 2485 s = 41 min 25 s, of which 25 s do not count and are taken off the work.
    let usage = on_vm(&job(40)).unwrap();
    assert_eq!(usage.total, 245 * SECOND + 40 * MINUTE);
    assert_eq!(usage.work, 40 * MINUTE);
    let bill = BilledTime { start: 85 * SECOND, work: 2375 * SECOND, ..BilledTime::default() };
    assert_eq!((usage.bill, usage.machines), (bill, 1));
}

#[test]
fn container_apps_bill_by_the_second_from_the_pull_on() {
    // 40 s of platform (not billed), 3 GB at 200 MB/s = 15 s, 6 GB at 1 GB/s = 6 s, 5 s to be ready.
    let usage = used(&job(40), AzureOffering::ContainerApps, "Consumption-GPU-NC8as-T4", Priority::Regular);
    let usage = usage.unwrap();
    assert_eq!(usage.total, 66 * SECOND + 40 * MINUTE);
    assert_eq!(usage.bill, BilledTime { start: 26 * SECOND, work: 40 * MINUTE, ..BilledTime::default() });
}

#[test]
fn instances_that_work_together_are_all_paid_for() {
    let mut workload = job(60);
    workload.gpu.instances = 4;
    let alone = on_vm(&job(60)).unwrap();
    let usage = on_vm(&workload).unwrap();
    assert_eq!((usage.machines, usage.total), (4, alone.total));
    assert_eq!(usage.bill.work, 4 * alone.bill.work);
    assert_eq!(usage.disks, 4 * usage.total);
}

#[test]
fn a_given_speed_shortens_the_work() {
    let mut workload = job(60);
    workload.gpu.speeds.insert("A100-80".into(), 4_000_000_000);
    let usage = used(&workload, AzureOffering::Vm, "Standard_NC24ads_A100_v4", Priority::Regular).unwrap();
    assert_eq!(usage.work, 15 * MINUTE);
}

#[test]
fn a_share_of_a_gpu_does_its_share_of_the_work() {
    let mut workload = job(60);
    workload.gpu.measured_on = Some("A10".into());
    let whole = used(&workload, AzureOffering::Vm, "Standard_NV36ads_A10_v5", Priority::Regular).unwrap();
    let half = used(&workload, AzureOffering::Vm, "Standard_NV18ads_A10_v5", Priority::Regular).unwrap();
    assert_eq!((whole.work, half.work), (HOUR, 2 * HOUR));
}

#[test]
fn a_speed_of_zero_never_ends() {
    let mut workload = job(60);
    workload.gpu.speeds.insert("T4".into(), 0);
    assert_eq!(on_vm(&workload), Err(Unfit::ZeroSpeed));
}

#[test]
fn a_missed_deadline_says_how_long_it_takes() {
    let mut workload = job(60);
    workload.constraints.deadline = Some(Duration::from_secs(3600));
    let unfit = on_vm(&workload);
    assert_eq!(unfit, Err(Unfit::Deadline(HOUR + 245 * SECOND)));
}

#[test]
fn machine_learning_ends_a_job_after_21_days_and_on_spot_after_7() {
    let mut workload = job(10 * 24 * 60);
    workload.spot = Some(spot(0));
    assert!(used(&workload, AzureOffering::MlCluster, T4, Priority::Regular).is_ok());
    let unfit = used(&workload, AzureOffering::MlCluster, T4, Priority::Spot);
    assert!(matches!(unfit, Err(Unfit::Lifetime { most, .. }) if most == 7 * 24 * HOUR), "{unfit:?}");
}

#[test]
fn only_spot_is_evicted() {
    let mut workload = job(60);
    workload.spot = Some(spot(100));
    let regular = on_vm(&workload).unwrap();
    let spot = used(&workload, AzureOffering::Vm, T4, Priority::Spot).unwrap();
    assert_eq!(regular.lost, 0);
    // e^0.1 - 1 = 0.105171 evictions, each a start of 245 s, and 0.105171 / 0.1 h of work in place of 1 h:
    // 25.767 + 186.153 = 211.92 s.
    assert_eq!(spot.lost.div_ceil(SECOND), 212);
    assert!(spot.bill.lost < spot.lost, "the wait for a machine is not billed");
}

#[test]
fn ten_thousand_images_in_two_hours_take_nine_machines() {
    // A start takes 245 s (160 + 20 + 60 + 5), which leaves 6955 s: 1159 images of 6 s. 10,000 / 1159 = 8.63, so 9.
    let usage = on_vm(&items(10_000, 6, None, Some(7200))).unwrap();
    assert_eq!(usage.machines, 9);
    // Each does at most 1112: 6672 s after the start.
    assert_eq!(usage.total, (245 + 6672) * SECOND);
    // One does 1112, eight do 1111: 85 + 6672 = 6757 s are 112 min, 85 + 6666 = 6751 s are 112 min.
    assert_eq!(usage.bill.work + usage.bill.start, 9 * 112 * MINUTE);
}

#[test]
fn without_a_deadline_one_machine_is_cheapest() {
    let usage = on_vm(&items(100, 60, None, None)).unwrap();
    assert_eq!((usage.machines, usage.work), (1, 100 * MINUTE));
}

#[test]
fn as_many_as_wanted_are_taken_and_never_more_than_there_are_items() {
    let machines = |count, at_once| on_vm(&items(count, 60, Some(at_once), None)).unwrap().machines;
    assert_eq!(machines(100, 8), 8);
    assert_eq!(machines(3, 8), 3);
}

#[test]
fn a_deadline_that_more_machines_cannot_meet_is_missed() {
    let late = on_vm(&items(10_000, 6, Some(4), Some(7200)));
    assert_eq!(late, Err(Unfit::Deadline((245 + 15_000) * SECOND)));
    let shorter_than_a_start = on_vm(&items(10, 6, None, Some(200)));
    assert_eq!(shorter_than_a_start, Err(Unfit::Deadline(251 * SECOND)));
}

#[test]
fn no_items_cost_nothing() {
    let usage = on_vm(&items(0, 6, None, Some(7200))).unwrap();
    assert_eq!((usage.machines, usage.total, usage.bill.work, usage.disks), (0, 0, 0, 0));
}

#[test]
fn more_items_than_machines_are_rejected() {
    let unfit = on_vm(&items(u64::MAX, 60, None, Some(600)));
    assert!(matches!(unfit, Err(Unfit::Instances { .. })), "{unfit:?}");
}

#[test]
fn twenty_seven_trials_three_at_a_time_are_nine_waves() {
    let usage = sweep(27);
    // 360 s to a node, 20 s pull, 60 s unpack, 5 s ready; then 9 x 20 min.
    assert_eq!(usage.machines, 3);
    assert_eq!(usage.total, 445 * SECOND + 180 * MINUTE);
    // Billed each: 85 s + 180 min = 181 min 25 s, cut to 181 min.
    assert_eq!(usage.bill.start, 3 * 85 * SECOND);
    assert_eq!(usage.bill.work, 3 * (181 * 60 - 85) * SECOND);
}

#[test]
fn a_machine_is_released_when_no_trial_is_left_for_it() {
    // Seven trials, three at a time: one machine does three, two do two. 85 s + 60 min and 85 s + 40 min.
    let usage = sweep(7);
    assert_eq!(usage.work, 60 * MINUTE);
    assert_eq!(usage.bill.start + usage.bill.work, (61 + 2 * 41) * MINUTE);
}
