//! Time as the caller passes it in.

use std::time::Duration;

/// Nanoseconds since an epoch of the caller's choice. A time before the latest one seen counts as the latest one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u64);

/// Converts a duration to nanoseconds, saturating at 584 years.
pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
