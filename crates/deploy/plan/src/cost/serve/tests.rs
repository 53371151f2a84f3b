use std::time::Duration;

use cudock_base::Rate;
use cudock_testkit::random::{Random, cases, seed};

use super::MILLION;
use crate::cost::Unfit;
use crate::cost::usage::MONTH;
use crate::testing::{HOUR, SECOND, T4, parts_at_a_dollar, per_second, spot, used, workload};
use crate::workload::{DayLoad, Priority, Work, Workload};
use cudock_facts::services::AzureOffering;

const PROFILE: &str = "Consumption-GPU-NC8as-T4";

/// A rate in thousandths per second for a number of hours from eight o'clock, and none in the
/// others; an instance serves ten per second and is kept half full.
fn serve(millis: u64, hours: usize) -> Workload {
    let mut load = DayLoad { hours: [Rate::ZERO; 24] };
    for hour in 8..8 + hours {
        load.hours[hour % 24] = per_second(millis);
    }
    let mut workload = workload(Work::Serve { load, replica_rate: per_second(10_000), target_percent: 50 });
    workload.constraints.cold_starts_allowed = true;
    workload
}

#[test]
fn a_virtual_machine_is_up_all_month_for_the_peak() {
    // 12 a second at 5 for each instance are 3 instances, through 730 hours.
    let usage = used(&serve(12_000, 10), AzureOffering::Vm, T4, Priority::Regular).unwrap();
    assert_eq!((usage.machines, usage.total), (3, 0));
    assert_eq!(usage.bill.work + usage.bill.idle, 3 * MONTH);
    // Busy: 12/10 of an instance in 10 of 24 hours.
    assert_eq!(usage.bill.work, MONTH * 12 / 10 * 10 / 24);
}

#[test]
fn a_node_pool_goes_to_zero_at_night_where_a_cold_start_is_allowed() {
    let mut workload = serve(12_000, 10);
    let usage = used(&workload, AzureOffering::Aks, T4, Priority::Regular).unwrap();
    // Three starts a day for 730/24 days: 450 s to a node are not billed, 20 + 40 + 5 s are; 600 s idle before
    // a node is given back.
    let days = |time: u128| (3 * time * 730).div_ceil(24);
    assert_eq!(usage.bill.start, days(65 * SECOND));
    assert_eq!(usage.bill.work + usage.bill.idle, 3 * MONTH * 10 / 24 + days(600 * SECOND));
    assert_eq!(usage.total, (450 + 20 + 40 + 5) * SECOND);
    workload.constraints.cold_starts_allowed = false;
    let usage = used(&workload, AzureOffering::Aks, T4, Priority::Regular).unwrap();
    assert_eq!(usage.total, 0, "one node stays up");
    let days = |time: u128| (2 * time * 730).div_ceil(24);
    assert_eq!(usage.bill.work + usage.bill.idle, MONTH * (3 * 10 + 14) / 24 + days(600 * SECOND));
}

#[test]
fn an_endpoint_never_goes_below_one_instance() {
    let usage = used(&serve(12_000, 10), AzureOffering::MlEndpoint, T4, Priority::Regular).unwrap();
    let starts = (2_u128 * 300 * SECOND * 730).div_ceil(24);
    assert_eq!(usage.bill.work + usage.bill.idle, MONTH * (3 * 10 + 14) / 24 + starts);
    assert_eq!(usage.total, 0);
}

#[test]
fn a_replica_that_scales_to_zero_is_up_after_recent_requests() {
    // One request in 1000 s, all day. A cold start takes 66 s and sleep comes after 300 s: up for
    // 1 - e^-0.366 = 30.65 % of the month, and e^-0.366 x 2628 = 1822.5 requests find it asleep.
    let usage = used(&serve(1, 24), AzureOffering::ContainerApps, PROFILE, Priority::Regular).unwrap();
    assert_eq!(usage.starts.div_ceil(MILLION), 1823);
    let starts = usage.starts;
    let up = usage.bill.start + usage.bill.work + usage.bill.idle + starts * 40 / 1000;
    #[allow(clippy::cast_precision_loss, reason = "a share of a month")]
    let share = up as f64 / MONTH as f64;
    assert!((share - (1.0 - (-0.366_f64).exp())).abs() < 1e-6, "{share}");
    assert_eq!(usage.total, 66 * SECOND);
    // Half a second for each start, as parts of a second count whole.
    assert_eq!(usage.bill.rounding, (starts * 500).div_ceil(MILLION));
}

#[test]
fn nothing_scales_to_zero_if_no_request_may_wait() {
    let mut workload = serve(1, 24);
    workload.constraints.cold_starts_allowed = false;
    let usage = used(&workload, AzureOffering::ContainerApps, PROFILE, Priority::Regular).unwrap();
    assert_eq!(usage.bill.work + usage.bill.idle, MONTH);
    assert_eq!((usage.bill.start, usage.total), (0, 0));
}

#[test]
fn a_busy_replica_never_scales_to_zero() {
    // Four a second: e^-1464 is nothing.
    let usage = used(&serve(4000, 24), AzureOffering::ContainerApps, PROFILE, Priority::Regular).unwrap();
    assert_eq!(usage.bill.work + usage.bill.idle, MONTH);
    assert_eq!(usage.bill.start, 0);
}

#[test]
fn restarts_after_evictions_are_paid_for() {
    let mut workload = serve(4000, 24);
    workload.spot = Some(spot(100));
    let usage = used(&workload, AzureOffering::Vm, T4, Priority::Spot).unwrap();
    // 730 h x 0.1 = 73 evictions, of whose start 85 s are billed.
    assert_eq!(usage.bill.lost, 73 * 85 * SECOND);
}

#[test]
fn a_load_that_no_number_of_instances_meets_is_refused() {
    let unfit = used(&serve(u64::MAX, 24), AzureOffering::Vm, T4, Priority::Regular);
    assert!(matches!(unfit, Err(Unfit::Instances { .. })), "{unfit:?}");
}

#[test]
fn requests_are_counted_for_730_hours() {
    let usage = used(&serve(1000, 12), AzureOffering::Vm, T4, Priority::Regular).unwrap();
    // One a second for half of 730 hours, in millionths.
    assert_eq!(usage.requests, 365 * HOUR * 1000);
}

/// The cost of a month on a service at a dollar per instance hour; an instance is kept half full.
fn monthly(service: AzureOffering, size: &str, rate: Rate, replica_rate: Rate) -> u128 {
    let load = DayLoad { hours: [rate; 24] };
    let mut workload = workload(Work::Serve { load, replica_rate, target_percent: 50 });
    workload.constraints.cold_starts_allowed = true;
    parts_at_a_dollar(&workload, service, size).total().nanos()
}

/// A random rate from once a year to a million times a second, uniform on a logarithmic scale.
fn any_rate(random: &mut Random) -> Rate {
    const YEAR: Duration = Duration::from_secs(365 * 86_400);
    let scales = (1e6 * YEAR.as_secs_f64()).log10();
    Rate::nearest(10_f64.powf(random.fraction() * scales), YEAR).unwrap()
}

#[test]
fn more_requests_never_cost_less_and_twice_as_many_never_more_than_twice() {
    // Times are rounded up to milliseconds, in each of the 24 hours. A second machine needs a balancer at 0.025 an hour.
    const ROUNDED: u128 = 30_000;
    const BALANCER: u128 = 730 * 25_000_000;
    let mut random = Random::new(seed());
    for _ in 0..cases(300) {
        let rate = any_rate(&mut random);
        // One instance serves all of it, or several hundred do.
        let few = if rate < per_second(1_000_000) { 10_000 } else { 1_000_000_000 };
        for replica_rate in [few, 4_000_000_000].map(per_second) {
            for (service, size) in
                [(AzureOffering::ContainerApps, PROFILE), (AzureOffering::Vm, T4), (AzureOffering::Aks, T4)]
            {
                let [one, two] =
                    [1, 2].map(|times| monthly(service, size, rate.share(times, 1), replica_rate));
                assert!(one <= two, "{service:?} at {rate}: {one}, at twice that {two}");
                let more = if service == AzureOffering::Vm { BALANCER } else { ROUNDED };
                assert!(two <= 2 * one + more, "{service:?} at {rate}: {one}, at twice that {two}");
            }
        }
    }
}

#[test]
fn what_scales_to_zero_costs_in_proportion_to_rare_requests() {
    // An instance stays for 366 s, so up to one request in a day hardly any two share one.
    let yearly = |count: u64| {
        let rate = Rate::from_nanos_per_day(2_739_726 * u128::from(count));
        monthly(AzureOffering::ContainerApps, PROFILE, rate, per_second(10_000))
    };
    let once = yearly(1);
    for count in 2..=365 {
        let (cost, exact) = (yearly(count), once * u128::from(count));
        assert!(cost.abs_diff(exact) * 200 <= exact, "{count} requests a year: {cost} instead of {exact}");
    }
    // Of each start of 66 s, 26 s are billed, and then 300 s until it is gone: 326 s on each of 730 / 24 days.
    let day = 326_u128 * 730 * 1_000_000_000 / (24 * 3600);
    assert!(yearly(365).abs_diff(day) * 100 < day, "{} instead of {day}", yearly(365));
}
