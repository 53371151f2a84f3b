//! Helpers for threads.

use std::convert::Infallible;
use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex, poisoned or not. For data that every holder changes with a single move, so that it is consistent even
/// if a holder panicked.
pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs a function on every item, on up to `workers` threads, and returns the results in the order of the items. After
/// an error no further item is begun; the error of the first item that failed is returned.
pub fn try_parallel<T: Sync, R: Send, E: Send>(
    items: &[T],
    workers: usize,
    run: impl Fn(&T) -> Result<R, E> + Sync,
) -> Result<Vec<R>, E> {
    if workers <= 1 || items.len() <= 1 {
        return items.iter().map(run).collect();
    }
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::with_capacity(items.len()));
    std::thread::scope(|scope| {
        for _ in 0..workers.min(items.len()) {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(index) else { return };
                    let result = run(item);
                    if result.is_err() {
                        next.store(items.len(), Ordering::Relaxed);
                    }
                    lock(&results).push((index, result));
                }
            });
        }
    });
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

/// Runs a function on every item, on up to `workers` threads, and returns the results in the order of the items.
pub fn parallel<T: Sync, R: Send>(items: &[T], workers: usize, run: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let results = try_parallel(items, workers, |item| Ok::<R, Infallible>(run(item)));
    results.unwrap_or_else(|never| match never {})
}

/// The processors that this process may use.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, NonZero::get)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_the_order_of_the_items_and_an_error_stops_the_rest() {
        let items: Vec<u32> = (0..100).collect();
        assert_eq!(try_parallel(&items, 4, |item| Ok::<_, ()>(item * 2)).unwrap().last(), Some(&198));
        assert_eq!(parallel(&items, 4, |item| item * 2).len(), 100);
        assert_eq!(try_parallel(&[], 4, |item: &u32| Err::<(), u32>(*item)), Ok(Vec::new()));
        let begun = AtomicUsize::new(0);
        let failed = try_parallel(&items, 1, |item| {
            begun.fetch_add(1, Ordering::Relaxed);
            if *item == 3 { Err(*item) } else { Ok(()) }
        });
        assert_eq!((failed, begun.into_inner()), (Err(3), 4));
    }
}
