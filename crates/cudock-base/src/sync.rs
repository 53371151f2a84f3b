//! A mutex helper.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex, poisoned or not. For data that every holder changes with a single move, so that it is consistent even
/// if a holder panicked.
pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
