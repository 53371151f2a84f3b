//! Pseudorandom numbers and UUIDs that a seed determines.

use cudock_base::Rng;

#[derive(Debug, Clone)]
pub(crate) struct Random(Rng);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Rng::new(seed))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number below `limit`; 0 if that is 0.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0.below(limit)
    }

    /// A UUID of random bits.
    pub(crate) fn uuid(&mut self) -> String {
        uuid(self.next(), self.next())
    }
}

/// The UUID of 122 of these bits.
pub(crate) fn uuid(high: u64, low: u64) -> String {
    let text = format!("{high:016x}{low:016x}");
    format!("{}-{}-4{}-a{}-{}", &text[..8], &text[8..12], &text[13..16], &text[17..20], &text[20..])
}
