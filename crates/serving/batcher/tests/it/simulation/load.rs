//! Overload and latency targets.

use std::time::Duration;

use cudock_batcher::{Batcher, BatcherSettings};

use super::policy::FixedPolicy;
use super::server::{Costs, LoadPattern, MLP, SimulationResult, run};

/// Requests per second of full batches of 32.
fn peak() -> f64 {
    32.0 / MLP.time(32) * 1e6
}

fn loaded(settings: BatcherSettings, costs: Costs, load: LoadPattern) -> SimulationResult {
    run(&mut Batcher::new(settings), costs, load, 0.6, 5)
}

#[test]
fn five_times_the_load_costs_no_goodput_and_keeps_the_wait_bounded() {
    for lanes in [1, 2] {
        let max_queue_time = Duration::from_millis(20);
        let settings = BatcherSettings { lanes, max_queue_time, ..BatcherSettings::default() };
        let result = loaded(settings, MLP, LoadPattern::Open { rate: peak() * 5.0 });
        println!(
            "5x load, {lanes} lanes: {:.0}/s of {:.0}/s, p99 {:.0} us",
            result.throughput(),
            peak(),
            result.quantile(0.99)
        );
        assert!(result.throughput() > 0.95 * peak(), "{:.0}/s", result.throughput());
        assert!(result.quantile(0.99) < 22_000.0, "{:.0} us", result.quantile(0.99));
        assert!(result.rejected > 3 * result.completed);
    }
}

#[test]
fn the_queue_is_bounded_by_its_rows_before_the_first_measurement() {
    let settings = BatcherSettings {
        max_queued_rows: 64,
        max_queue_time: Duration::from_secs(3600),
        ..BatcherSettings::default()
    };
    let result = loaded(settings, MLP, LoadPattern::Open { rate: peak() * 5.0 });
    assert!(result.max_queued <= 64 + 32);
    assert!(result.throughput() > 0.95 * peak());
}

#[test]
fn below_saturation_nothing_is_rejected() {
    for share in [0.2, 0.5, 0.7, 0.9] {
        let result = loaded(BatcherSettings::default(), MLP, LoadPattern::Open { rate: peak() * share });
        assert_eq!(result.rejected, 0, "at {share}");
    }
}

#[test]
fn open_loop_latency_is_no_worse_than_running_at_once() {
    for share in [0.1, 0.3, 0.5, 0.7, 0.85] {
        let load = LoadPattern::Open { rate: peak() * share };
        let result = loaded(BatcherSettings::default(), MLP, load);
        let at_once = run(&mut FixedPolicy::new(1, 32, Duration::ZERO, 1), MLP, load, 0.6, 5);
        println!(
            "{share} of saturation: p50 {:.0} us, p99 {:.0} us; at once {:.0} us, {:.0} us",
            result.quantile(0.5),
            result.quantile(0.99),
            at_once.quantile(0.5),
            at_once.quantile(0.99)
        );
        assert!(result.quantile(0.5) < 1.05 * at_once.quantile(0.5), "at {share}");
        assert!(result.quantile(0.99) < 1.1 * at_once.quantile(0.99), "at {share}");
    }
}

/// Runs with a target of `micros`; returns also the rate of batches of which two in a row fit into it, because a
/// request that arrives just after a batch has started waits for that one and then for its own.
fn run_with_target(micros: u64, costs: Costs, load: LoadPattern, lanes: usize) -> (SimulationResult, f64) {
    let latency_target = Some(Duration::from_micros(micros));
    let settings = BatcherSettings { max_rows: 128, lanes, latency_target, ..BatcherSettings::default() };
    let result = loaded(settings, costs, load);
    let rows = ((micros as f64 / 2.0 - costs.fixed) / costs.row).min(128.0);
    let rate = rows / costs.time(rows as usize) * 1e6;
    (result, rate)
}

#[test]
fn a_latency_target_holds_and_costs_little_more_than_it_must() {
    let noisy = Costs { noise: 0.05, ..MLP };
    for (micros, lanes) in [(1000, 1), (1000, 2), (2000, 1), (2000, 2), (5000, 1)] {
        for load in [
            LoadPattern::Open { rate: peak() * 1.5 },
            LoadPattern::Open { rate: peak() * 5.0 },
            LoadPattern::Closed { clients: 192, think: Duration::ZERO },
        ] {
            let (result, attainable) = run_with_target(micros, noisy, load, lanes);
            let late = result.latency.iter().filter(|&&time| time > micros as f64).count();
            let within = 1.0 - late as f64 / result.completed as f64;
            println!(
                "target {micros} us, {lanes} lanes, {load:?}: {within:.4} within, {:.0}/s of {attainable:.0}/s, batch {:.1}",
                result.throughput(),
                result.mean_batch()
            );
            assert!(within >= 0.99, "{within:.4} within {micros} us for {load:?}");
            assert!(
                result.throughput() > 0.85 * attainable,
                "{:.0}/s of {attainable:.0}/s",
                result.throughput()
            );
        }
    }
}

#[test]
fn a_target_within_capacity_rejects_nothing() {
    let (result, _) = run_with_target(3000, MLP, LoadPattern::Open { rate: peak() * 0.6 }, 1);
    assert_eq!(result.rejected, 0);
    let (result, _) =
        run_with_target(3000, MLP, LoadPattern::Bursts { size: 40, every: Duration::from_millis(5) }, 1);
    assert_eq!(result.rejected, 0);
}
