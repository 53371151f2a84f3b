//! The time that is billed.

use cudock_base::Timestamp;

/// When billing began and ended, as far as that is known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BilledTime {
    pub from: Option<Timestamp>,
    pub until: Option<Timestamp>,
    /// Whether less may have been billed.
    pub is_at_most: bool,
}

impl BilledTime {
    /// The times that a service reports.
    pub(crate) const fn seen(from: Option<Timestamp>, until: Option<Timestamp>) -> Self {
        Self { from, until, is_at_most: false }
    }

    /// Whether it will not change anymore.
    pub(crate) fn is_final(self) -> bool {
        self.from.is_some() && self.until.is_some()
    }
}
