//! The memory budget: how much requests and responses may hold at once.
//!
//! Bytes are reserved as they arrive or grow, never because a client announced them. The larger a request already is,
//! the more of the budget it must leave free, so that a few huge requests cannot lock out all others.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;

use crate::request::rejection::HttpRejection;

/// Smallest reservation once a request has arrived in several chunks.
const STEP: usize = 64 << 10;
/// Largest request that `/ready` promises to accept.
const SMALL: usize = 64 << 10;
/// Bodies up to this size are reserved once, including everything made from them.
pub const SMALL_BODY: usize = 64 << 10;

/// The limit, and the number of reserved bytes.
#[derive(Debug)]
pub struct Budget {
    limit: usize,
    held: AtomicUsize,
    rejected: AtomicU64,
}

impl Budget {
    pub fn new(limit: usize) -> Self {
        Self { limit, held: AtomicUsize::new(0), rejected: AtomicU64::new(0) }
    }

    pub fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    /// Number of requests that were rejected because the budget was exhausted.
    pub fn rejected(&self) -> u64 {
        self.rejected.load(Ordering::Relaxed)
    }

    /// Whether even a small request would be rejected now.
    pub fn is_exhausted(&self) -> bool {
        self.held().saturating_add(SMALL.min(self.limit / 2)) > self.limit
    }

    /// Reserves `more` bytes for a request that will then hold `total`.
    fn take(&self, more: usize, total: usize) -> Result<(), HttpRejection> {
        if total > self.limit - self.limit / 8 {
            self.rejected.fetch_add(1, Ordering::Relaxed);
            return Err(HttpRejection::MemoryExceeded { needed: total, limit: self.limit });
        }
        let headroom = total.saturating_mul(8).min(self.limit / 8);
        let before = self.held.fetch_add(more, Ordering::Relaxed);
        if before.saturating_add(more).saturating_add(if total > SMALL { headroom } else { 0 }) > self.limit {
            self.held.fetch_sub(more, Ordering::Relaxed);
            self.rejected.fetch_add(1, Ordering::Relaxed);
            return Err(HttpRejection::Overloaded { retry_after: Duration::from_millis(200) });
        }
        Ok(())
    }
}

/// The reservation of a request or response; released when dropped.
#[derive(Debug)]
pub struct Reservation {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Reservation {
    pub fn new(budget: &Arc<Budget>) -> Self {
        Self { budget: Arc::clone(budget), bytes: 0 }
    }

    /// Grows to at least `bytes`. It grows by an eighth each time, so that a long body needs a few dozen steps and not
    /// a thousand.
    pub fn cover(&mut self, bytes: usize) -> Result<(), HttpRejection> {
        if bytes <= self.bytes {
            return Ok(());
        }
        let step = if self.bytes == 0 { 0 } else { STEP.max(self.bytes / 8) };
        self.resize(bytes.max(self.bytes.saturating_add(step)))
    }

    /// Grows or shrinks to exactly `bytes`.
    pub fn resize(&mut self, bytes: usize) -> Result<(), HttpRejection> {
        if bytes > self.bytes {
            self.budget.take(bytes - self.bytes, bytes)?;
            self.bytes = bytes;
        } else {
            self.shrink(bytes);
        }
        Ok(())
    }

    /// Releases everything beyond `bytes`.
    pub fn shrink(&mut self, bytes: usize) {
        let spare = self.bytes.saturating_sub(bytes);
        self.budget.held.fetch_sub(spare, Ordering::Relaxed);
        self.bytes -= spare;
    }

    /// Ties the reservation to `bytes`: it is released when the last of them was written or dropped.
    pub fn attach(self, bytes: Bytes) -> Bytes {
        Bytes::from_owner(ReservedBytes { bytes, _reservation: self })
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.shrink(0);
    }
}

struct ReservedBytes {
    bytes: Bytes,
    _reservation: Reservation,
}

impl AsRef<[u8]> for ReservedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    #[test]
    fn a_long_body_is_reserved_as_it_arrives_in_a_few_steps() {
        let budget = Arc::new(Budget::new(128 * MIB));
        let mut body = Reservation::new(&budget);
        let (mut steps, mut before) = (0, 0);
        for bytes in (0..=64 * MIB).step_by(16 << 10) {
            body.cover(bytes).unwrap();
            let held = budget.held();
            assert!((bytes..=bytes + bytes / 8 + STEP).contains(&held), "{bytes}: {held}");
            steps += usize::from(held != before);
            before = held;
        }
        assert!(steps < 80, "{steps}");
        drop(body);
        assert_eq!(budget.held(), 0);
    }

    #[test]
    fn large_requests_leave_room_for_small_ones() {
        let budget = Arc::new(Budget::new(64 * MIB));
        let mut large = Vec::new();
        loop {
            let mut one = Reservation::new(&budget);
            match one.cover(4 * MIB) {
                Ok(()) => large.push(one),
                Err(error) => break assert!(matches!(error, HttpRejection::Overloaded { .. })),
            }
        }
        assert_eq!(budget.held(), 56 * MIB);
        assert!(!budget.is_exhausted());
        let mut small = Reservation::new(&budget);
        small.cover(SMALL).unwrap();
        assert_eq!(budget.rejected(), 1);
    }

    #[test]
    fn an_exhausted_budget_is_reported() {
        let budget = Arc::new(Budget::new(4 * MIB));
        let small: Vec<Reservation> = std::iter::from_fn(|| {
            let mut one = Reservation::new(&budget);
            one.cover(SMALL).ok().map(|()| one)
        })
        .collect();
        assert_eq!(small.len(), 64);
        assert!(budget.is_exhausted());
        drop(small);
        assert!(!budget.is_exhausted());
    }

    #[test]
    fn a_request_that_can_never_fit_is_a_different_error() {
        let budget = Arc::new(Budget::new(8 * MIB));
        let mut body = Reservation::new(&budget);
        assert!(matches!(body.cover(8 * MIB), Err(HttpRejection::MemoryExceeded { .. })));
        body.cover(6 * MIB).unwrap();
        let mut other = Reservation::new(&budget);
        assert!(matches!(other.cover(2 * MIB), Err(HttpRejection::Overloaded { .. })));
        assert_eq!(budget.held(), 6 * MIB);
    }

    #[test]
    fn a_response_is_reserved_until_its_last_byte_is_dropped() {
        let budget = Arc::new(Budget::new(MIB));
        let mut answer = Reservation::new(&budget);
        answer.cover(1000).unwrap();
        let mut bytes = answer.attach(Bytes::from(vec![1; 1000]));
        let first = bytes.split_to(10);
        drop(bytes);
        assert_eq!(budget.held(), 1000);
        drop(first);
        assert_eq!(budget.held(), 0);
    }
}
