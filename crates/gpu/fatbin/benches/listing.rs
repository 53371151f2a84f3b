//! Compares listing libraries, with all sections searched, to one pass of `memchr` over the same bytes on the same cores.
//! Usage: `CUDOCK_BENCH_LIBRARIES=DIR cargo bench -p cudock-fatbin`.
#![allow(
    clippy::expect_used,
    clippy::cast_precision_loss,
    reason = "a benchmark that cannot run should stop"
)]

use std::hint::black_box;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

fn main() {
    let Some(directory) = std::env::var_os("CUDOCK_BENCH_LIBRARIES").map(PathBuf::from) else {
        println!("skipped: CUDOCK_BENCH_LIBRARIES names no directory of libraries");
        return;
    };
    let files: Vec<PathBuf> = std::fs::read_dir(&directory)
        .expect("the directory can be read")
        .flatten()
        .map(|entry| entry.path())
        .collect();
    let maps: Vec<_> = files.iter().filter_map(|path| cudock_fatbin::map(path).ok()).collect();
    let bytes: usize = maps.iter().map(|map| map.len()).sum();
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    // Warm the page cache.
    memchr_all(&maps, cores);
    let anonymous = memory("RssAnon:");
    let most = AtomicU64::new(0);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                most.fetch_max(memory("RssAnon:"), Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        measure(&directory, &maps, bytes, cores);
        done.store(true, Ordering::Relaxed);
    });
    let more = most.load(Ordering::Relaxed).saturating_sub(anonymous);
    println!("memory beyond the mapping: {:.1} MB at most (64 is promised)", more as f64 / 1e3);
}

fn measure(
    directory: &PathBuf,
    maps: &[impl std::ops::Deref<Target = [u8]> + Sync],
    bytes: usize,
    cores: usize,
) {
    let mut best = (Duration::MAX, Duration::MAX);
    for _ in 0..5 {
        let start = Instant::now();
        memchr_all(maps, cores);
        best.0 = best.0.min(start.elapsed());
        let start = Instant::now();
        let (modules, trouble) = cudock_fatbin::inspect(std::slice::from_ref(directory), |file, _| {
            Some(file.binary.modules.len())
        });
        black_box(&modules);
        best.1 = best.1.min(start.elapsed());
        assert!(trouble.is_empty(), "{trouble:?}");
    }
    let gigabytes = bytes as f64 / 1e9;
    println!(
        "{} files, {gigabytes:.2} GB, {cores} cores: memchr {:.3} s, listing {:.3} s, ratio {:.2} (at most 2 is promised)",
        maps.len(),
        best.0.as_secs_f64(),
        best.1.as_secs_f64(),
        best.1.as_secs_f64() / best.0.as_secs_f64(),
    );
}

fn memchr_all(maps: &[impl std::ops::Deref<Target = [u8]> + Sync], cores: usize) {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                while let Some(map) = maps.get(next.fetch_add(1, Ordering::Relaxed)) {
                    black_box(memchr::memchr_iter(0xED, map).count());
                }
            });
        }
    });
}

/// A memory figure of this process in kilobytes.
fn memory(field: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap_or_default();
    line.split_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or(0)
}
