//! Long files are linted by several threads; for short ones, starting a thread takes longer than linting.

use std::panic::resume_unwind;
use std::thread;

/// The size of a file from which threads save time, in bytes. A thread starts in about 50 µs, and 16 KiB take a millisecond.
const LONG: usize = 16 << 10;
/// Maximum number of threads: a few rules take most of the time, so more would be idle.
const MAX_THREADS: usize = 8;

/// The number of threads for a text.
pub(crate) fn count(text: &str) -> usize {
    if text.len() < LONG {
        return 1;
    }
    thread::available_parallelism().map_or(1, |cores| cores.get().min(MAX_THREADS))
}

/// Calls two functions; with more than one thread, at the same time.
pub(crate) fn both<A, B: Send>(
    threads: usize,
    first: impl FnOnce() -> A,
    second: impl FnOnce() -> B + Send,
) -> (A, B) {
    if threads == 1 {
        return (first(), second());
    }
    thread::scope(|scope| {
        let second = scope.spawn(second);
        (first(), second.join().unwrap_or_else(|panic| resume_unwind(panic)))
    })
}

/// Calls a function for each item and collects what it appends, in the order of the items.
pub(crate) fn flat_map<I: Sync, T: Send>(
    threads: usize,
    items: &[I],
    call: impl Fn(&I, &mut Vec<T>) + Sync,
) -> Vec<T> {
    let found = cudock_base::parallel(items, threads, |item| {
        let mut found = Vec::new();
        call(item, &mut found);
        found
    });
    found.into_iter().flatten().collect()
}
