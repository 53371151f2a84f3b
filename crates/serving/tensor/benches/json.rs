//! Speed of parsing and writing rows of numbers, compared with `serde_json` and a plain copy.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "a benchmark that cannot run should stop, and its figures are for people"
)]

use std::hint::black_box;
use std::time::{Duration, Instant};

use cudock_tensor::json::{Cursor, write};
use cudock_tensor::{DType, RequestLimits};

const ROW: usize = 512;
const ROWS: usize = 32;
/// Many short rounds, so that the best of them was not interrupted.
const ROUNDS: usize = 300;

fn main() {
    // Tests of all targets start this, too, and have no use for figures of an unoptimized build.
    if !std::env::args().any(|argument| argument == "--bench") {
        println!("skipped: not started by `cargo bench`");
        return;
    }
    let mut random = Random(7);
    for (name, dtype, text) in [
        (
            "f32 as Python widens it, 17 digits",
            DType::F32,
            rows(|| f64::from(random.normal()).to_string(), ", "),
        ),
        ("f32, shortest digits", DType::F32, rows(|| random.normal().to_string(), ",")),
        ("f32, three digits after the point", DType::F32, rows(|| format!("{:.3}", random.normal()), ", ")),
        ("f32, pixels less their mean", DType::F32, rows(|| format!("{:.3}", random.normal() * 80.0), ", ")),
        ("f32, pixels as whole numbers", DType::F32, rows(|| (random.next() % 256).to_string(), ", ")),
        ("f32, 17 digits and an exponent", DType::F32, rows(|| format!("{:.16e}", random.normal()), ", ")),
        ("f64, 17 digits", DType::F64, rows(|| f64::from(random.normal()).to_string(), ", ")),
        ("f16 from 17 digits", DType::F16, rows(|| f64::from(random.normal()).to_string(), ", ")),
        ("i64, tokens", DType::I64, rows(|| (random.next() % 50_000).to_string(), ", ")),
        ("u8, pixels", DType::U8, rows(|| (random.next() % 256).to_string(), ",")),
    ] {
        measure(name, dtype, &text);
    }
}

fn measure(name: &str, dtype: DType, text: &[u8]) {
    let limits = RequestLimits::default();
    let read = || Cursor::new(black_box(text)).tensor(dtype, ROW, &limits, &"input").expect("it is sound");
    let ours = best(|| drop(black_box(read())));
    let typed = best(|| drop(black_box(serde_json::from_slice::<Vec<Vec<f32>>>(black_box(text)).unwrap())));
    let tree =
        best(|| drop(black_box(serde_json::from_slice::<serde_json::Value>(black_box(text)).unwrap())));
    let copy = best(|| drop(black_box(black_box(text).to_vec())));
    let tensor = read();
    let mut out = Vec::new();
    let written = best(|| {
        out.clear();
        write::nested(&tensor, tensor.shape(), &mut out).expect("numbers are text");
        black_box(&out);
    });
    let rate = |bytes: usize, time: Duration| bytes as f64 / 1e6 / time.as_secs_f64();
    println!(
        "{name}: read {:.0} MB/s, {:.1} ns a number; serde_json into Vec<Vec<f32>> takes {:.1} times as long, into a \
         tree {:.1} times, memcpy {:.3} times; written {:.0} MB/s",
        rate(text.len(), ours),
        ours.as_secs_f64() * 1e9 / (ROW * ROWS) as f64,
        typed.as_secs_f64() / ours.as_secs_f64(),
        tree.as_secs_f64() / ours.as_secs_f64(),
        copy.as_secs_f64() / ours.as_secs_f64(),
        rate(out.len(), written),
    );
}

fn rows(mut number: impl FnMut() -> String, separator: &str) -> Vec<u8> {
    let rows: Vec<String> = (0..ROWS)
        .map(|_| format!("[{}]", (0..ROW).map(|_| number()).collect::<Vec<_>>().join(separator)))
        .collect();
    format!("[{}]", rows.join(separator)).into_bytes()
}

fn best(mut work: impl FnMut()) -> Duration {
    (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            work();
            start.elapsed()
        })
        .min()
        .expect("several rounds")
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Near enough to a normal distribution.
    fn normal(&mut self) -> f32 {
        let sum: f64 = (0..12).map(|_| (self.next() >> 11) as f64 / (1_u64 << 53) as f64).sum();
        (sum - 6.0) as f32
    }
}
