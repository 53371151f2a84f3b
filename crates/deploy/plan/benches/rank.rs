//! How long the whole catalog takes to rank, and how much memory: the promise is 20 ms and 50 MB.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a measurement that fails panics"
)]

use std::collections::BTreeSet;
use std::hint::black_box;
use std::time::{Duration, Instant};

use cudock_facts::Facts;
use cudock_plan::{Catalog, Offer, Priority, Verdicts, Workload, plan};

#[path = "../tests/it/support/workloads.rs"]
mod workloads;

const RUNS: usize = 200;
const PROMISED: Duration = Duration::from_millis(20);
const PROMISED_KIB: u64 = 50 * 1000 * 1000 / 1024;

fn main() {
    let facts = Facts::embedded();
    let catalog = Catalog::of(&facts);
    measure("as the tables have it", &catalog, &facts);
    println!("  tables decoded, catalog made, ranked once: {:.3} ms", millis(from_nothing()));

    let offers = everything_everywhere(&catalog);
    measure("every service and size priced in every region", &catalog.with_offers(offers), &facts);
}

fn measure(what: &str, catalog: &Catalog, facts: &Facts) {
    let offers = catalog.offers();
    let sizes: BTreeSet<_> = offers.iter().map(|offer| offer.size).collect();
    let regions: BTreeSet<_> = offers.iter().map(|offer| offer.region).collect();
    let services: BTreeSet<_> = offers.iter().map(|offer| offer.service).collect();
    println!(
        "\n{what}: {} offers, {} sizes and profiles x {} regions x {} services",
        offers.len(),
        sizes.len(),
        regions.len(),
        services.len()
    );
    let verdicts = Verdicts::default();
    let mut slowest = Duration::ZERO;
    let mut scenarios = workloads::all();
    let mut anything = workloads::job(workloads::hours(1));
    anything.gpu.memory = 0;
    anything.machine.architecture = None;
    anything.spot = workloads::spot_training().spot;
    scenarios.push(("one hour on anything, evicted or not", anything));
    for (name, workload) in &scenarios {
        let (fits, median) = median(catalog, facts, workload, &verdicts);
        slowest = slowest.max(median);
        println!("  {name:38} {:8.3} ms, {fits} fit", millis(median));
    }
    let peak = peak_kib();
    println!(
        "  slowest {:.3} ms of {} ms promised; peak memory of this process {:.1} MB of 50 MB: {}",
        millis(slowest),
        PROMISED.as_millis(),
        f64::from(u32::try_from(peak).unwrap_or(u32::MAX)) * 1024.0 / 1e6,
        if slowest < PROMISED && peak < PROMISED_KIB { "kept" } else { "NOT KEPT" }
    );
}

/// How many offers fit, and the time it takes to know: from the workload to the ranking and the reasons
/// against the rest.
fn median(catalog: &Catalog, facts: &Facts, workload: &Workload, verdicts: &Verdicts) -> (usize, Duration) {
    let mut fits = 0;
    let time = middle_of(RUNS, || {
        let plan = plan(black_box(catalog), facts, black_box(workload), verdicts);
        fits = plan.ranked().len();
        black_box(plan.rejected().len());
    });
    (fits, time)
}

/// What a command pays that asks once: nothing is decoded or made before.
fn from_nothing() -> Duration {
    let workload = workloads::sweep();
    let verdicts = Verdicts::default();
    middle_of(RUNS, || {
        let facts = Facts::embedded();
        let catalog = Catalog::of(&facts);
        black_box(plan(&catalog, &facts, &workload, &verdicts).ranked().len());
    })
}

fn middle_of(runs: usize, mut work: impl FnMut()) -> Duration {
    let mut times: Vec<Duration> = (0..runs)
        .map(|_| {
            let start = Instant::now();
            work();
            start.elapsed()
        })
        .collect();
    times.sort_unstable();
    times[runs / 2]
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Each offer of a service, size and priority in all regions, where it has none at the price of the first
/// that has.
fn everything_everywhere(catalog: &Catalog) -> Vec<Offer> {
    let regions: BTreeSet<_> = catalog.offers().iter().map(|offer| offer.region).collect();
    let kinds: std::collections::BTreeMap<_, Offer> = catalog
        .offers()
        .iter()
        .rev()
        .map(|offer| ((offer.service, offer.size, offer.priority == Priority::Spot), *offer))
        .collect();
    let held: std::collections::BTreeMap<_, Offer> = catalog
        .offers()
        .iter()
        .map(|offer| ((offer.service, offer.size, offer.priority == Priority::Spot, offer.region), *offer))
        .collect();
    kinds
        .iter()
        .flat_map(|(&(service, size, spot), offer)| {
            let held = &held;
            regions.iter().map(move |&region| {
                held.get(&(service, size, spot, region)).copied().unwrap_or(Offer { region, ..*offer })
            })
        })
        .collect()
}

/// The most memory the process ever had, from the kernel.
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).expect("VmHWM");
    line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).expect("a number of kB")
}
