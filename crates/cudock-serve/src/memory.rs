//! The server's memory budget: what requests and answers may hold at once.
//!
//! Bytes are reserved as they arrive or grow, never because a client announced them. The larger a request already is,
//! the more of the budget it must leave free, so that a few huge ones cannot lock out everybody else.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;

use crate::ServeError;

/// Least that is reserved at a time once a request has come in several pieces.
const STEP: usize = 64 << 10;
/// Requests up to this size are what `/ready` speaks for.
const SMALL: usize = 64 << 10;
/// Bodies up to this size are reserved once, with room for everything made from them, and not looked at again.
pub(crate) const FLAT: usize = 64 << 10;
/// Times that a large request's tensors are held while it runs: themselves, the copy the engine reads, and about as much
/// again that the engine gives.
pub(crate) const COPIES: usize = 3;

/// Bytes that may be held at once, and those that are.
#[derive(Debug)]
pub(crate) struct Budget {
    limit: usize,
    held: AtomicUsize,
    refused: AtomicU64,
}

impl Budget {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, held: AtomicUsize::new(0), refused: AtomicU64::new(0) }
    }

    /// Bytes held now.
    pub(crate) fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    /// Requests refused so far because there was no memory for them.
    pub(crate) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Whether even a small request would be refused now.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.held().saturating_add(SMALL.min(self.limit / 2)) > self.limit
    }

    /// Takes `more` for a request that will then hold `total`.
    fn take(&self, more: usize, total: usize) -> Result<(), ServeError> {
        if total > self.limit - self.limit / 8 {
            self.refused.fetch_add(1, Ordering::Relaxed);
            return Err(ServeError::OverBudget { needed: total, limit: self.limit });
        }
        let headroom = total.saturating_mul(8).min(self.limit / 8);
        let before = self.held.fetch_add(more, Ordering::Relaxed);
        if before.saturating_add(more).saturating_add(if total > SMALL { headroom } else { 0 }) > self.limit {
            self.held.fetch_sub(more, Ordering::Relaxed);
            self.refused.fetch_add(1, Ordering::Relaxed);
            return Err(ServeError::Full { retry_after: Duration::from_millis(200) });
        }
        Ok(())
    }
}

/// What one request or answer holds of the budget; given back when dropped.
#[derive(Debug)]
pub(crate) struct Reservation {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Reservation {
    /// Nothing yet.
    pub(crate) fn new(budget: &Arc<Budget>) -> Self {
        Self { budget: Arc::clone(budget), bytes: 0 }
    }

    /// Holds at least as many bytes. Takes an eighth more than it has each time, so that a long body asks a few dozen
    /// times and not a thousand.
    pub(crate) fn cover(&mut self, bytes: usize) -> Result<(), ServeError> {
        if bytes <= self.bytes {
            return Ok(());
        }
        let step = if self.bytes == 0 { 0 } else { STEP.max(self.bytes / 8) };
        self.resize(bytes.max(self.bytes.saturating_add(step)))
    }

    /// Holds exactly as many bytes.
    pub(crate) fn resize(&mut self, bytes: usize) -> Result<(), ServeError> {
        if bytes > self.bytes {
            self.budget.take(bytes - self.bytes, bytes)?;
            self.bytes = bytes;
        } else {
            self.shrink(bytes);
        }
        Ok(())
    }

    /// Gives back what is held beyond that.
    pub(crate) fn shrink(&mut self, bytes: usize) {
        let spare = self.bytes.saturating_sub(bytes);
        self.budget.held.fetch_sub(spare, Ordering::Relaxed);
        self.bytes -= spare;
    }

    /// Bytes that keep the reservation until the last of them has been written or dropped.
    pub(crate) fn attach(self, bytes: Bytes) -> Bytes {
        Bytes::from_owner(Counted { bytes, _reservation: self })
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.shrink(0);
    }
}

struct Counted {
    bytes: Bytes,
    _reservation: Reservation,
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may fail loudly")]
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
            assert!(
                (bytes..=bytes + bytes / 8 + STEP).contains(&budget.held()),
                "{bytes}: {}",
                budget.held()
            );
            steps += usize::from(budget.held() != before);
            before = budget.held();
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
                Err(error) => break assert!(matches!(error, ServeError::Full { .. })),
            }
        }
        assert_eq!(budget.held(), 56 * MIB);
        assert!(!budget.is_exhausted());
        let mut small = Reservation::new(&budget);
        small.cover(SMALL).unwrap();
        assert_eq!(budget.refused(), 1);
    }

    #[test]
    fn a_budget_without_room_for_anybody_says_so() {
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
    fn what_can_never_fit_is_told_from_what_may_fit_later() {
        let budget = Arc::new(Budget::new(8 * MIB));
        let mut body = Reservation::new(&budget);
        assert!(matches!(body.cover(8 * MIB), Err(ServeError::OverBudget { .. })));
        body.cover(6 * MIB).unwrap();
        let mut other = Reservation::new(&budget);
        assert!(matches!(other.cover(2 * MIB), Err(ServeError::Full { .. })));
        assert_eq!(budget.held(), 6 * MIB);
    }

    #[test]
    fn an_answer_is_held_until_its_last_byte_is_gone() {
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
