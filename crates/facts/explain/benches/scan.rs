//! How fast logs are scanned, beside one pass of `memchr` over the same bytes and the 500 MB/s we promise.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that fails panics"
)]
#![allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "figures for people, and made-up bytes"
)]

use std::hint::black_box;
use std::time::{Duration, Instant};

use cudock_explain::Catalog;
use cudock_facts::Facts;

const MEGABYTES: usize = 256;
const PROMISED: f64 = 500.0;

fn main() {
    let facts = Facts::embedded();
    let building = Instant::now();
    let messages = facts.messages();
    let decoded = building.elapsed();
    let catalog = Catalog::new(messages).expect("the catalog is sound");
    println!(
        "catalog of {} messages built in {:?}, of which decoding the table {decoded:?}",
        messages.message.len(),
        building.elapsed(),
    );
    let again = best(|| {
        black_box(Catalog::new(black_box(messages)).expect("the catalog is sound"));
    });
    println!("built again from the decoded table in {again:?}");

    let noise = include_str!("../tests/noise.txt");
    let clean = include_str!("../tests/clean/nvidia-smi-h200.log");
    // A program that logs its error in a loop, and one error after a hundred good lines.
    let error = "2026-11-14 10:00:00 ERROR worker: CUDA error: no kernel image is available for execution on the device\n";
    let variable = "2026-11-14 10:00:00 ERROR worker: The NVIDIA driver on your system is too old (found version 12080).\n";
    let some_errors = noise.split_inclusive('\n').enumerate().fold(String::new(), |log, (index, line)| {
        if index % 100 == 99 { log + line + error } else { log + line }
    });
    for (name, text) in [
        ("ordinary log lines", noise),
        ("nvidia-smi over and over", clean),
        ("an error each hundred lines", &some_errors),
        ("the same error on every line", error),
        ("an error with a number in it on every line", variable),
    ] {
        let mut log = String::new();
        while log.len() < MEGABYTES << 20 {
            log.push_str(text);
        }
        let limit = best(|| {
            black_box(memchr::memchr_iter(b'\n', black_box(log.as_bytes())).count());
        });
        let ours = best(|| {
            black_box(catalog.scan(black_box(log.as_bytes()), |_| ()).expect("it is text"));
        });
        let rate = |time: Duration| log.len() as f64 / 1e6 / time.as_secs_f64();
        println!(
            "{name}: {:.0} MB/s, {:.1} times the {PROMISED:.0} MB/s promised; memchr {:.0} MB/s (ratio {:.2})",
            rate(ours),
            rate(ours) / PROMISED,
            rate(limit),
            rate(ours) / rate(limit),
        );
    }
}

fn best(mut work: impl FnMut()) -> Duration {
    (0..5)
        .map(|_| {
            let start = Instant::now();
            work();
            start.elapsed()
        })
        .min()
        .expect("five runs")
}
