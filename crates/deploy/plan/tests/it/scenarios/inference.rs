//! A service that gets requests by day and not by night: serverless below a rate, a machine of one's own above it.
//!
//! On a T4 that answers ten a second, kept 70 % full. A month has 730 h, so each hour of the day lasts
//! 109,500 s of it, and the twelve from 8 to 20 o'clock 365 h.

use cudock_facts::services::AzureOffering;
use std::time::Duration;

use cudock_base::Usd;
use cudock_plan::{Offer, PartKind, Priority, Workload};

use crate::support::workloads::{daytime_inference, per_second};
use crate::support::{curve_of, embedded, embedded_plan, first, fixed, fixed_plan, named, of, parts, usd};

const T4: &str = "Standard_NC4as_T4_v3";
const SERVERLESS: &str = "Consumption-GPU-NC8as-T4";

/// The two the question is about, so many thousandths of a request a second by day.
fn either(millis: u64) -> Workload {
    let mut workload = daytime_inference(millis);
    workload.constraints.services = vec!["vm".to_owned(), "container-apps".to_owned()];
    workload.constraints.regions = vec!["eastus".to_owned()];
    workload
}

fn offer(service: AzureOffering, size: &str) -> Offer {
    let catalog = &fixed().1;
    let (size, region) = (catalog.size(size), catalog.region("eastus"));
    let wanted = |offer: &&Offer| {
        (Some(offer.size), Some(offer.region)) == (size, region)
            && (offer.service, offer.priority) == (service, Priority::Regular)
    };
    *catalog.offers().iter().find(wanted).expect("it is on offer")
}

#[test]
fn at_five_requests_per_second_a_virtual_machine_is_cheaper() {
    let workload = either(5000);
    let plan = fixed_plan(&workload);
    let best = first(&plan);
    assert_eq!(named(&best), (AzureOffering::Vm, T4, "eastus"));
    assert_eq!(best.instances, 1);
    // 730 h x 0.526 = 383.98, a disk 21.68, an address 730 h x 0.005 = 3.65.
    assert_eq!(best.cost.total, usd(409, 310_000_000));
    // Five of ten a second: half of the day's 365 h it works, 182.5 h x 0.526 = 95.995; the other 547.5 h it
    // waits.
    assert!(parts(&best).contains(&(PartKind::Compute, usd(95, 995_000_000))), "{:?}", best.cost.parts);
    assert!(parts(&best).contains(&(PartKind::Idle, usd(287, 985_000_000))), "{:?}", best.cost.parts);
    // 5 a second x 365 h = 6.57 million requests: 409.31 / 6.57 = 62.30 a million.
    let per_million = best.per_million.expect("it serves");
    assert_eq!(per_million.rounded(), "62.30");

    // Serverless: 0.000433 a second = 1.5588 an hour x 365 h = 568.962, and 6.57 million requests x 0.40 =
    // 2.628.
    let apps = of(&plan, AzureOffering::ContainerApps, SERVERLESS);
    assert_eq!(apps.cost.total, usd(571, 590_000_000));
    assert!(parts(&apps).contains(&(PartKind::Fee, usd(2, 628_000_000))), "{:?}", apps.cost.parts);
}

#[test]
fn serverless_wins_below_the_crossover_and_the_machine_above() {
    let (facts, catalog) = fixed();
    // From a thousandth of 0.05 a second up to 5 a second.
    let base = either(50);
    let (machine, serverless) =
        (offer(AzureOffering::Vm, T4), offer(AzureOffering::ContainerApps, SERVERLESS));
    let crosses = |a, b| curve_of(catalog, facts, &base).crossover(a, b, 1, 100_000);
    let found = crosses(&serverless, &machine).expect("they cross");
    assert_eq!(crosses(&machine, &serverless), Some(found), "in either order");

    let costs = |scale: u64| {
        let of = |offer| curve_of(catalog, facts, &base).cost(offer, scale).expect("it can be done");
        (of(&serverless), of(&machine))
    };
    let (below, above) = (costs(found - 1), costs(found));
    assert!(below.0 < below.1, "serverless is cheaper below: {below:?}");
    assert!(above.0 > above.1, "the machine is cheaper above: {above:?}");
    assert_eq!(below.1, above.1, "a machine that is always up costs the same");

    // By hand. A replica stays up 100 s of start + 300 s = 400 s after a request. At r a second it is up
    // 1 - e^(-400 r) of the day and starts r e^(-400 r) times a second; 40 s of each start are not paid for.
    //   0.00350: 75.34 % of 365 h = 274.99 h, less 1134 starts x 40 s = 12.60 h: 262.39 h x 1.5588 = 409.01
    //   0.00355: 75.83 % of 365 h = 276.77 h, less 1128 starts x 40 s = 12.53 h: 264.24 h x 1.5588 = 411.91
    // with half a second of rounding a start and the requests 409.26 and 412.15; the machine is at 409.31. So it
    // turns between 70 and 71 thousandths of 0.05 a second: at 12.6 requests an hour.
    assert_eq!(found, 71);
    assert_eq!([below.0, above.0, above.1].map(cudock_base::Usd::rounded), ["409.26", "412.15", "409.31"]);
}

#[test]
fn the_ranking_turns_where_the_curves_cross() {
    for (millis, cheapest) in [
        (1, AzureOffering::ContainerApps),
        (3, AzureOffering::ContainerApps),
        (4, AzureOffering::Vm),
        (100, AzureOffering::Vm),
        (5000, AzureOffering::Vm),
    ] {
        let workload = either(millis);
        assert_eq!(first(&fixed_plan(&workload)).service, cheapest, "at {millis} thousandths a second");
    }
}

#[test]
fn a_month_without_requests_costs_nothing_where_nothing_is_up() {
    let workload = either(0);
    let plan = fixed_plan(&workload);
    assert_eq!(of(&plan, AzureOffering::ContainerApps, SERVERLESS).cost.total, Usd::ZERO);
    assert_eq!(of(&plan, AzureOffering::Vm, T4).cost.total, usd(409, 310_000_000));
}

#[test]
fn replicas_come_by_the_hour_and_machines_by_the_peak() {
    // 50 a second at noon, 5 else: 50 / 7 = 7.1, so 8 at the peak.
    let mut workload = either(5000);
    if let cudock_plan::Work::Serve { load, .. } = &mut workload.work {
        load.hours[12] = per_second(50_000);
    }
    let plan = fixed_plan(&workload);
    let machines = of(&plan, AzureOffering::Vm, T4);
    assert_eq!(machines.instances, 8);
    // 8 x 730 h x 0.526 = 3071.84, 8 disks x 21.68 = 173.44, an address 3.65; a balancer 730 h x 0.025 =
    // 18.25.
    assert_eq!(
        machines.cost.total,
        usd(3071, 840_000_000) + usd(173, 440_000_000) + usd(3, 650_000_000) + usd(18, 250_000_000)
    );
    // Serverless, at 0.000433 a second: 11 h of the day one replica and one hour eight, 19 x 109,500 s =
    // 900.8565. Seven start for noon, 7 x 730 / 24 = 212.917 times a month: 60 s each = 5.531575, 300 s until
    // they sleep = 27.657875, and half a second each that rounding adds = 0.046096747. Requests: 105 a second
    // x 109,500 s = 11.4975 million x 0.40 = 4.599.
    let apps = of(&plan, AzureOffering::ContainerApps, SERVERLESS);
    assert_eq!(apps.instances, 8);
    assert_eq!(apps.cost.total, usd(938, 691_046_747));
    assert_eq!(first(&plan).service, AzureOffering::ContainerApps);
}

#[test]
fn who_may_not_wait_keeps_one_replica_up_all_day() {
    let mut workload = either(1);
    workload.constraints.cold_starts_allowed = false;
    let plan = fixed_plan(&workload);
    let apps = of(&plan, AzureOffering::ContainerApps, SERVERLESS);
    assert_eq!(apps.times.total, Duration::ZERO);
    // 730 h x 1.5588 = 1137.924.
    assert!(apps.cost.total >= usd(1137, 924_000_000), "{}", apps.cost.total);
    assert_eq!(first(&plan).service, AzureOffering::Vm);
    // Who may wait, waits 100 s at worst.
    let patient = either(1);
    assert_eq!(
        fixed_plan(&patient).ranked().first().map(|ranked| ranked.time),
        Some(Duration::from_secs(100))
    );
}

#[test]
fn the_tables_of_today_cross_as_well() {
    let mut workload = daytime_inference(50);
    workload.constraints.services = vec!["vm".to_owned(), "container-apps".to_owned()];
    let plan = embedded_plan(&workload);
    let (facts, catalog) = embedded();
    let best =
        |service| plan.ranked().iter().find(|ranked| ranked.offer.service == service).expect("it fits").offer;
    let (machine, serverless) = (best(AzureOffering::Vm), best(AzureOffering::ContainerApps));
    let found = curve_of(catalog, facts, &workload).crossover(&serverless, &machine, 1, 100_000);
    let found = found.expect("nobody keeps a machine for four requests an hour");
    let at = |scale| {
        let cost = |offer| curve_of(catalog, facts, &workload).cost(offer, scale).expect("it can be done");
        cost(&serverless) <= cost(&machine)
    };
    assert!(at(found - 1) && !at(found));
}
