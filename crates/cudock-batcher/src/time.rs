//! The clock, as it is passed in.

use std::time::Duration;

/// Nanoseconds since an instant of the caller's choice. Whoever drives a [`crate::Batcher`] reads the clock; times
/// that go backwards are taken for the latest one seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u64);

impl Time {
    /// The instant from which time is counted.
    pub const ZERO: Self = Self(0);

    /// The time so long after that instant; the last one there is, if it lies beyond it.
    pub fn after_start(elapsed: Duration) -> Self {
        Self(nanos(elapsed))
    }

    /// This time and so much more.
    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(nanos(duration)))
    }

    /// How long it is since `earlier`; nothing, if that is later.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// A duration in nanoseconds, at most what 64 bits hold: 584 years.
pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
