//! More load than there is room for, and latency targets.

use std::time::Duration;

use cudock_batcher::{Batcher, Settings};

use super::policy::Fixed;
use super::world::{Costs, MLP, Outcome, Source, run};

/// Requests a second that full batches of 32 can do.
fn peak() -> f64 {
    32.0 / MLP.time(32) * 1e6
}

fn loaded(settings: Settings, costs: Costs, source: Source) -> Outcome {
    run(&mut Batcher::new(settings), costs, source, 0.6, 5)
}

#[test]
fn five_times_the_load_costs_no_goodput_and_keeps_the_wait_bounded() {
    for lanes in [1, 2] {
        let queue_time = Duration::from_millis(20);
        let settings = Settings { lanes, queue_time, ..Settings::default() };
        let outcome = loaded(settings, MLP, Source::Open { rate: peak() * 5.0 });
        println!(
            "5x load, {lanes} lanes: {:.0}/s of {:.0}/s, p99 {:.0} us",
            outcome.throughput(),
            peak(),
            outcome.quantile(0.99)
        );
        assert!(outcome.throughput() > 0.95 * peak(), "{:.0}/s", outcome.throughput());
        assert!(outcome.quantile(0.99) < 22_000.0, "{:.0} us", outcome.quantile(0.99));
        assert!(outcome.refused > 3 * outcome.answered);
    }
}

#[test]
fn a_queue_without_knowledge_is_bounded_by_its_rows() {
    let settings = Settings { queue_rows: 64, queue_time: Duration::from_secs(3600), ..Settings::default() };
    let outcome = loaded(settings, MLP, Source::Open { rate: peak() * 5.0 });
    assert!(outcome.most_queued <= 64 + 32);
    assert!(outcome.throughput() > 0.95 * peak());
}

#[test]
fn below_saturation_nobody_is_refused() {
    for share in [0.2, 0.5, 0.7, 0.9] {
        let outcome = loaded(Settings::default(), MLP, Source::Open { rate: peak() * share });
        assert_eq!(outcome.refused, 0, "at {share}");
    }
}

#[test]
fn in_open_loop_latency_is_no_worse_than_running_at_once() {
    for share in [0.1, 0.3, 0.5, 0.7, 0.85] {
        let source = Source::Open { rate: peak() * share };
        let outcome = loaded(Settings::default(), MLP, source);
        let at_once = run(&mut Fixed::new(1, 32, Duration::ZERO, 1), MLP, source, 0.6, 5);
        println!(
            "{share} of saturation: p50 {:.0} us, p99 {:.0} us; at once {:.0} us, {:.0} us",
            outcome.quantile(0.5),
            outcome.quantile(0.99),
            at_once.quantile(0.5),
            at_once.quantile(0.99)
        );
        assert!(outcome.quantile(0.5) < 1.05 * at_once.quantile(0.5), "at {share}");
        assert!(outcome.quantile(0.99) < 1.1 * at_once.quantile(0.99), "at {share}");
    }
}

/// A target of `micros`, and the rate that batches can have of which two follow each other within it: who arrives just
/// after one has started waits for it and then for its own.
fn held(micros: u64, costs: Costs, source: Source, lanes: usize) -> (Outcome, f64) {
    let latency_target = Some(Duration::from_micros(micros));
    let settings = Settings { max_rows: 128, lanes, latency_target, ..Settings::default() };
    let outcome = loaded(settings, costs, source);
    let rows = ((micros as f64 / 2.0 - costs.fixed) / costs.row).min(128.0);
    let rate = rows / costs.time(rows as usize) * 1e6;
    (outcome, rate)
}

#[test]
fn a_latency_target_holds_and_costs_little_more_than_it_must() {
    let noisy = Costs { noise: 0.05, ..MLP };
    for (micros, lanes) in [(1000, 1), (1000, 2), (2000, 1), (2000, 2), (5000, 1)] {
        for source in [
            Source::Open { rate: peak() * 1.5 },
            Source::Open { rate: peak() * 5.0 },
            Source::Closed { clients: 192, think: Duration::ZERO },
        ] {
            let (outcome, attainable) = held(micros, noisy, source, lanes);
            let late = outcome.latency.iter().filter(|&&time| time > micros as f64).count();
            let within = 1.0 - late as f64 / outcome.answered as f64;
            println!(
                "target {micros} us, {lanes} lanes, {source:?}: {within:.4} within, {:.0}/s of {attainable:.0}/s, batch {:.1}",
                outcome.throughput(),
                outcome.mean_batch()
            );
            assert!(within >= 0.99, "{within:.4} within {micros} us for {source:?}");
            assert!(
                outcome.throughput() > 0.85 * attainable,
                "{:.0}/s of {attainable:.0}/s",
                outcome.throughput()
            );
        }
    }
}

#[test]
fn a_target_that_load_does_not_strain_refuses_nobody() {
    let (outcome, _) = held(3000, MLP, Source::Open { rate: peak() * 0.6 }, 1);
    assert_eq!(outcome.refused, 0);
    let (outcome, _) = held(3000, MLP, Source::Bursts { size: 40, every: Duration::from_millis(5) }, 1);
    assert_eq!(outcome.refused, 0);
}
