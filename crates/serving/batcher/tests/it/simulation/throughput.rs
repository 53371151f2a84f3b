//! Throughput, compared with the best that a fixed size and delay can reach.

use std::time::Duration;

use cudock_batcher::{Batcher, BatcherSettings};

use super::policy::FixedPolicy;
use super::server::{Costs, LoadPattern, MLP, SimulationResult, run};

/// Requests take longer to read than to run.
const SLOW_TRANSPORT: Costs = Costs { read: 20.0, write: 8.0, client: 12.0, ..MLP };
/// Engine and transport share one core.
const ONE_CORE: Costs = Costs { shared_cores: true, ..SLOW_TRANSPORT };
/// A batch takes as long as its rows one by one.
const NO_GAIN: Costs = Costs { fixed: 2.0, row: 224.0, ..MLP };
/// A batch takes the same time whatever its size.
const FLAT: Costs = Costs { fixed: 1000.0, row: 1.0, ..MLP };
/// Rows are large, and copying them takes a third of the time of running them.
const LARGE_ROWS: Costs = Costs { fixed: 800.0, row: 130.0, copy: 40.0, ..SLOW_TRANSPORT };

/// Long enough for more than a hundred batches.
fn duration(costs: &Costs, clients: usize, max_rows: usize) -> f64 {
    (costs.time(clients.min(max_rows)) * 150.0 / 1e6).max(0.1)
}

fn run_batcher(costs: Costs, clients: usize, max_rows: usize, lanes: usize) -> SimulationResult {
    let load = LoadPattern::Closed { clients, think: Duration::ZERO };
    let settings =
        BatcherSettings { max_rows, lanes, shared_cores: costs.shared_cores, ..BatcherSettings::default() };
    run(&mut Batcher::new(settings), costs, load, duration(&costs, clients, max_rows), 3)
}

/// The best throughput of any fixed size and longest wait, and that size.
fn best_fixed(costs: Costs, clients: usize, max_rows: usize, lanes: usize) -> (f64, usize) {
    let load = LoadPattern::Closed { clients, think: Duration::ZERO };
    let mut sizes =
        [1, clients / 4, clients / 2, clients * 3 / 4, clients].map(|size| size.clamp(1, max_rows)).to_vec();
    sizes.dedup();
    let seconds = duration(&costs, clients, max_rows);
    let results = sizes.into_iter().flat_map(|size| {
        [100, 5000].map(|wait| {
            let mut fixed = FixedPolicy::new(size, max_rows, Duration::from_micros(wait), lanes);
            (run(&mut fixed, costs, load, seconds, 7).throughput(), size)
        })
    });
    results.max_by(|one, other| one.0.total_cmp(&other.0)).expect("there are sizes")
}

#[test]
fn closed_loop_throughput_is_within_five_percent_of_the_best_fixed_policy() {
    for (name, costs, lanes, max_rows, clients) in [
        ("mlp", MLP, 1, 32, 2),
        ("mlp", MLP, 1, 32, 8),
        ("mlp", MLP, 1, 32, 32),
        ("mlp", MLP, 2, 32, 32),
        ("mlp", MLP, 1, 32, 40),
        ("mlp", MLP, 1, 32, 128),
        ("mlp", MLP, 2, 128, 128),
        ("slow transport", SLOW_TRANSPORT, 1, 32, 32),
        ("slow transport", SLOW_TRANSPORT, 2, 32, 128),
        ("one core", ONE_CORE, 1, 32, 32),
        ("one core", ONE_CORE, 2, 32, 128),
        ("flat", FLAT, 1, 128, 128),
        ("flat", FLAT, 1, 32, 40),
        ("no gain", NO_GAIN, 1, 32, 32),
        ("large rows", LARGE_ROWS, 2, 32, 32),
        ("large rows", LARGE_ROWS, 2, 32, 128),
    ] {
        let result = run_batcher(costs, clients, max_rows, lanes);
        let (best, size) = best_fixed(costs, clients, max_rows, lanes);
        let ratio = result.throughput() / best;
        println!(
            "{name:15} {lanes} lanes, up to {max_rows:3}, {clients:3} clients: {:6.0}/s, batch {:5.1}, p99 {:6.0} us; \
             best fixed {best:6.0}/s at {size:3}; {ratio:.3}",
            result.throughput(),
            result.mean_batch(),
            result.quantile(0.99)
        );
        assert!(ratio > 0.95, "{name} with {clients} clients: {ratio:.3}");
    }
}

#[test]
fn one_client_never_waits() {
    let quiet = Costs { noise: 0.0, ..MLP };
    for lanes in [1, 2] {
        let result = run_batcher(quiet, 1, 32, lanes);
        let alone = quiet.time(1) + quiet.copy + 0.01;
        assert!(result.quantile(1.0) <= alone, "{} us instead of {alone}", result.quantile(1.0));
    }
}

#[test]
fn clients_that_benefit_from_sharing_are_kept_together() {
    let result = run_batcher(MLP, 32, 32, 1);
    assert!(result.mean_batch() > 31.0, "{}", result.mean_batch());
}

#[test]
fn nothing_waits_if_sharing_gains_nothing() {
    let result = run_batcher(NO_GAIN, 2, 32, 1);
    let busy = result.throughput() * NO_GAIN.time(1) / 1e6;
    assert!(busy > 0.98, "the device is busy for {busy:.3} of the time");
}
