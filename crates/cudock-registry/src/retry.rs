//! When to try again, and after how long.

use std::hash::{BuildHasher, RandomState};
use std::thread;
use std::time::Duration;

use crate::error::RegistryError;
use crate::progress::Progress;

/// How often and how patiently a failed request is repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retries {
    /// How many attempts may follow the first without progress.
    pub most: u32,
    /// The wait before the first of them; it doubles from one to the next.
    pub first_wait: Duration,
    /// No wait is longer, not even one that a registry asks for.
    pub longest_wait: Duration,
}

impl Default for Retries {
    fn default() -> Self {
        Self { most: 5, first_wait: Duration::from_millis(500), longest_wait: Duration::from_secs(60) }
    }
}

impl Retries {
    /// The wait before attempt `attempt` (0 is the first repetition): what the registry asks for, else twice as long
    /// each time, less up to half of it at random, so that many clients do not come back at once.
    pub(crate) fn wait(&self, attempt: u32, asked_for: Option<Duration>) -> Duration {
        if let Some(asked_for) = asked_for {
            return asked_for.min(self.longest_wait);
        }
        let full = self.first_wait.saturating_mul(2_u32.saturating_pow(attempt)).min(self.longest_wait);
        // A fresh RandomState is seeded anew; no cryptography is needed here.
        let random = RandomState::new().hash_one(attempt) % 1024;
        let random = u32::try_from(random).unwrap_or_default();
        full / 2 + (full / 2 / 1024).saturating_mul(random)
    }

    /// Attempts until it is done, or no attempt is left, or none can help.
    pub fn repeated<T>(
        &self,
        progress: &dyn Progress,
        what: &str,
        mut attempt: impl FnMut() -> Result<T, Failure>,
    ) -> Result<T, RegistryError> {
        let mut failed = 0;
        loop {
            match attempt() {
                Ok(done) => return Ok(done),
                Err(Failure { error, again: Again::After(after) }) if failed < self.most => {
                    self.pause(progress, failed, after, what, &error);
                    failed += 1;
                }
                Err(Failure { error, .. }) => return Err(error),
            }
        }
    }

    /// Says that another attempt follows, and waits until then.
    pub(crate) fn pause(
        &self,
        progress: &dyn Progress,
        failed: u32,
        after: Option<Duration>,
        what: &str,
        error: &RegistryError,
    ) {
        let wait = self.wait(failed, after);
        progress.retrying(what, &error.to_string(), wait);
        thread::sleep(wait);
    }

    /// For a mirror: the next place is as good as another attempt.
    #[must_use]
    pub fn for_mirror(self) -> Self {
        Self { most: self.most.min(1), ..self }
    }
}

/// An error, and whether the same request may yet succeed.
#[derive(Debug)]
pub struct Failure {
    /// What happened.
    pub error: RegistryError,
    /// Whether to try again.
    pub again: Again,
}

/// Whether to try again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Again {
    /// It would come out the same.
    Never,
    /// After the usual wait, or after the one the registry asks for.
    After(Option<Duration>),
}

impl From<RegistryError> for Failure {
    fn from(error: RegistryError) -> Self {
        Self { error, again: Again::Never }
    }
}

/// Reads `Retry-After` in seconds. Dates are passed over: clocks differ, and the usual wait serves.
pub fn retry_after(header: Option<&str>) -> Option<Duration> {
    header?.trim().parse().ok().map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RETRIES: Retries =
        Retries { most: 5, first_wait: Duration::from_millis(512), longest_wait: Duration::from_secs(8) };

    #[test]
    fn waits_double_up_to_the_longest_and_never_fall_below_half() {
        for (attempt, full) in [(0, 512), (1, 1024), (2, 2048), (4, 8000), (31, 8000), (u32::MAX, 8000)] {
            let full = Duration::from_millis(full);
            let wait = RETRIES.wait(attempt, None);
            assert!(wait >= full / 2 && wait <= full, "{attempt}: {wait:?}");
        }
    }

    #[test]
    fn a_registry_s_wish_is_granted_within_reason() {
        assert_eq!(RETRIES.wait(0, Some(Duration::from_secs(3))), Duration::from_secs(3));
        assert_eq!(RETRIES.wait(0, Some(Duration::from_secs(86400))), Duration::from_secs(8));
        assert_eq!(retry_after(Some(" 7 ")), Some(Duration::from_secs(7)));
        assert_eq!(retry_after(Some("Wed, 21 Oct 2026 07:28:00 GMT")), None);
    }
}
