//! Time that passes, so that tests need not wait.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Interval of checks whether a pause was interrupted.
const SLICE: Duration = Duration::from_millis(100);

/// Measures and passes time. It has nothing to do with the time of day.
pub trait Clock: Sync {
    /// The time since some fixed moment.
    fn elapsed(&self) -> Duration;

    fn sleep(&self, time: Duration);
}

/// The clock of this machine.
#[derive(Debug)]
pub struct SystemClock {
    started: Instant,
}

impl SystemClock {
    pub fn start() -> Self {
        Self { started: Instant::now() }
    }
}

impl Clock for SystemClock {
    fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    fn sleep(&self, time: Duration) {
        thread::sleep(time);
    }
}

/// Sleeps until the time is over or the flag is set.
pub(crate) fn pause(clock: &dyn Clock, time: Duration, interrupted: &AtomicBool) {
    let end = clock.elapsed().saturating_add(time);
    while !interrupted.load(Ordering::Relaxed) {
        let left = end.saturating_sub(clock.elapsed());
        if left.is_zero() {
            return;
        }
        clock.sleep(left.min(SLICE));
    }
}
