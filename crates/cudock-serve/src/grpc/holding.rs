//! Memory for a message that is being read, taken from the server's share as its bytes come.

use super::status::Status;
use crate::ServeError;

/// Least that is taken at a time.
const STEP: usize = 64 << 10;

/// What a message has taken so far; given back when dropped or told to.
pub(crate) struct Holding<F, H> {
    take: F,
    held: Vec<H>,
    covered: usize,
}

impl<F, H> Holding<F, H>
where
    F: FnMut(usize) -> Result<H, ServeError>,
{
    /// Nothing yet; `take` is asked for more.
    pub(crate) fn new(take: F) -> Self {
        Self { take, held: Vec::new(), covered: 0 }
    }

    /// Sees to it that as many bytes are held. Takes as much again as there is, so that a long message asks a dozen
    /// times and not a thousand.
    pub(crate) fn cover(&mut self, bytes: usize) -> Result<(), Status> {
        let missing = bytes.saturating_sub(self.covered);
        if missing > 0 {
            let more = if self.covered == 0 { missing } else { missing.max(self.covered).max(STEP) };
            self.held.push((self.take)(more)?);
            self.covered = self.covered.saturating_add(more);
        }
        Ok(())
    }

    /// Gives everything back.
    pub(crate) fn release(&mut self) {
        self.held.clear();
        self.covered = 0;
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_long_message_asks_a_few_times_and_takes_no_more_than_twice_itself() {
        let (asked, taken) = (Cell::new(0), Cell::new(0));
        let mut holding = Holding::new(|bytes| {
            asked.set(asked.get() + 1);
            taken.set(taken.get() + bytes);
            Ok(())
        });
        for bytes in (0..64 << 20).step_by(16 << 10) {
            holding.cover(bytes).unwrap();
            assert!(taken.get() >= bytes && taken.get() <= 2 * bytes + STEP, "{bytes}: {}", taken.get());
        }
        assert!(asked.get() < 15, "{}", asked.get());
    }

    #[test]
    fn a_short_message_takes_what_it_is() {
        let taken = Cell::new(0);
        let mut holding = Holding::new(|bytes| {
            taken.set(taken.get() + bytes);
            Ok(())
        });
        holding.cover(2053).unwrap();
        holding.cover(2053).unwrap();
        assert_eq!(taken.get(), 2053);
        holding.release();
        holding.cover(7).unwrap();
        assert_eq!(taken.get(), 2060);
    }

    #[test]
    fn a_server_that_is_full_takes_no_more() {
        let full = || ServeError::Full { retry_after: Duration::from_millis(1) };
        let mut holding = Holding::new(|bytes| if bytes > 10 { Err(full()) } else { Ok(()) });
        holding.cover(10).unwrap();
        assert_eq!(holding.cover(11), Err(full().into()));
    }
}
