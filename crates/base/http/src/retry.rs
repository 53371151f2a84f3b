//! When to try again, and after how long.

use std::fmt::Display;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::transfer::progress::Progress;

/// How often and after which delay a failed request is repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// How many attempts may follow the first without progress.
    pub max_retries: u32,
    /// The delay before the first of them; it doubles from one to the next.
    pub initial_delay: Duration,
    /// Maximum delay, including those that a server requests.
    pub max_delay: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { max_retries: 5, initial_delay: Duration::from_millis(500), max_delay: Duration::from_secs(60) }
    }
}

/// Whether to try again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// Another attempt would fail the same way.
    Never,
    /// Retry after the policy's delay, or after the one that the server requests.
    After(Option<Duration>),
}

/// An error that knows whether another attempt may succeed.
pub trait Retryable: Display {
    /// Whether to try again.
    fn retry(&self) -> Retry;
}

impl RetryPolicy {
    /// The delay before retry `attempt`, counted from 0: the server's, or else one that doubles
    /// each time, less up to half of it at random, so that many clients do not return at once.
    pub fn delay(&self, attempt: u32, requested: Option<Duration>) -> Duration {
        if let Some(requested) = requested {
            return requested.min(self.max_delay);
        }
        let full = self.initial_delay.saturating_mul(2_u32.saturating_pow(attempt)).min(self.max_delay);
        // A new RandomState has a new seed; no cryptography is needed here.
        let random = RandomState::new().hash_one(attempt) % 1024;
        let random = u32::try_from(random).unwrap_or_default();
        full / 2 + (full / 2 / 1024).saturating_mul(random)
    }

    /// Repeats an attempt until it succeeds, no retry is left, or none can help.
    pub fn run<T, E: Retryable>(
        &self,
        progress: &dyn Progress,
        what: &str,
        mut attempt: impl FnMut() -> Result<T, E>,
    ) -> Result<T, E> {
        let mut failures = 0;
        loop {
            match attempt() {
                Ok(value) => return Ok(value),
                Err(error) => self.pause(progress, what, &mut failures, error)?,
            }
        }
    }

    /// Waits until the next attempt; or returns the error if there is none.
    pub(crate) fn pause<E: Retryable>(
        &self,
        progress: &dyn Progress,
        what: &str,
        failures: &mut u32,
        error: E,
    ) -> Result<(), E> {
        match error.retry() {
            Retry::After(requested) if *failures < self.max_retries => {
                let delay = self.delay(*failures, requested);
                progress.retrying(what, &error.to_string(), delay);
                thread::sleep(delay);
                *failures += 1;
                Ok(())
            }
            _ => Err(error),
        }
    }

    /// The policy for a mirror: at most one retry, since the next source is as good as another
    /// attempt.
    #[must_use]
    pub fn for_mirror(self) -> Self {
        Self { max_retries: self.max_retries.min(1), ..self }
    }
}

/// Maximum time until a canceled wait returns.
const SLICE: Duration = Duration::from_millis(20);

/// Waits for a time; false if it was canceled before or meanwhile.
pub fn sleep_unless(canceled: &AtomicBool, time: Duration) -> bool {
    let end = Instant::now() + time;
    while !canceled.load(Ordering::Relaxed) {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return true;
        }
        thread::sleep(left.min(SLICE));
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{HttpError, HttpErrorKind};
    use crate::transfer::progress::NoProgress;

    const POLICY: RetryPolicy = RetryPolicy {
        max_retries: 5,
        initial_delay: Duration::from_millis(512),
        max_delay: Duration::from_secs(8),
    };

    #[test]
    fn delays_double_up_to_the_maximum_and_never_fall_below_half() {
        for (attempt, full) in [(0, 512), (1, 1024), (2, 2048), (4, 8000), (31, 8000), (u32::MAX, 8000)] {
            let full = Duration::from_millis(full);
            let delay = POLICY.delay(attempt, None);
            assert!(delay >= full / 2 && delay <= full, "{attempt}: {delay:?}");
        }
    }

    #[test]
    fn a_server_s_delay_is_kept_within_the_maximum() {
        assert_eq!(POLICY.delay(0, Some(Duration::from_secs(3))), Duration::from_secs(3));
        assert_eq!(POLICY.delay(0, Some(Duration::from_secs(86400))), Duration::from_secs(8));
    }

    #[test]
    fn a_canceled_wait_ends_at_once() {
        assert!(sleep_unless(&AtomicBool::new(false), Duration::from_millis(1)));
        assert!(!sleep_unless(&AtomicBool::new(true), Duration::from_secs(3600)));
    }

    #[test]
    fn only_transient_errors_are_retried() {
        let quick = RetryPolicy { initial_delay: Duration::ZERO, ..POLICY };
        for (kind, attempts) in [
            (HttpErrorKind::Transient, 6),
            (HttpErrorKind::Status(503), 6),
            (HttpErrorKind::Status(429), 6),
            (HttpErrorKind::Status(404), 1),
            (HttpErrorKind::Status(501), 1),
            (HttpErrorKind::Permanent, 1),
            (HttpErrorKind::Refused, 1),
        ] {
            let mut count = 0;
            let result: Result<(), HttpError> = quick.run(&NoProgress, "x", || {
                count += 1;
                Err(HttpError::new(kind, "failed"))
            });
            assert_eq!((result.unwrap_err().kind, count), (kind, attempts));
        }
    }
}
