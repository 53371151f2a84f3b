//! Broken invariants: states that are impossible unless cudock has a bug.
//!
//! Code must not panic because of input, and must not silently continue with a wrong value either.
//! A broken invariant fails tests and debug builds; a release build writes one line to standard
//! error and continues with the value that does the least harm.

use std::fmt::Arguments;
use std::ops::{Range, RangeFrom, RangeTo};

/// Reports a broken invariant. See [`crate::never`].
///
/// # Panics
///
/// In tests and debug builds.
#[cold]
#[track_caller]
#[cfg(debug_assertions)]
#[allow(clippy::panic, reason = "a bug fails tests")]
pub fn report(what: Arguments<'_>) {
    panic!("bug: {what}");
}

/// Reports that something is as it cannot be. See [`crate::never`].
#[cold]
#[track_caller]
#[cfg(not(debug_assertions))]
pub fn report(what: Arguments<'_>) {
    use std::io::Write as _;
    use std::panic::Location;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// Maximum number of reports.
    const MAX_REPORTS: u32 = 20;
    static REPORTS: AtomicU32 = AtomicU32::new(0);
    if REPORTS.fetch_add(1, Ordering::Relaxed) < MAX_REPORTS {
        let place = Location::caller();
        // If standard error is closed, there is nowhere to report it.
        let _ = writeln!(
            std::io::stderr(),
            "bug in cudock: {what} ({}:{}); please report it",
            place.file(),
            place.line()
        );
    }
}

/// Says that this line is never reached: fails tests and debug builds, is reported in release builds.
#[macro_export]
macro_rules! never {
    ($($what:tt)+) => {
        $crate::bug::report(::std::format_args!($($what)+))
    };
}

/// Bounds of a part.
pub trait Bounds {
    /// The range in something of this length, if it is in it.
    fn within(&self, length: usize) -> Option<Range<usize>>;
}

impl Bounds for Range<usize> {
    fn within(&self, length: usize) -> Option<Range<usize>> {
        (self.start <= self.end && self.end <= length).then(|| self.clone())
    }
}

impl Bounds for RangeFrom<usize> {
    fn within(&self, length: usize) -> Option<Range<usize>> {
        (self.start <= length).then_some(self.start..length)
    }
}

impl Bounds for RangeTo<usize> {
    fn within(&self, length: usize) -> Option<Range<usize>> {
        (self.end <= length).then_some(0..self.end)
    }
}

/// Parts that exist by construction, such as what a read has filled of its buffer. One that does not exist is a bug: see
/// [`crate::never`]; the part is empty then.
pub trait Parts {
    fn part(&self, bounds: impl Bounds) -> &Self;
}

impl<T> Parts for [T] {
    #[inline]
    #[track_caller]
    fn part(&self, bounds: impl Bounds) -> &[T] {
        if let Some(part) = bounds.within(self.len()).and_then(|range| self.get(range)) {
            return part;
        }
        missing(self.len());
        &[]
    }
}

impl Parts for str {
    #[inline]
    #[track_caller]
    fn part(&self, bounds: impl Bounds) -> &str {
        if let Some(part) = bounds.within(self.len()).and_then(|range| self.get(range)) {
            return part;
        }
        missing(self.len());
        ""
    }
}

/// [`Parts`] for what is written to.
pub trait PartsMut {
    fn part_mut(&mut self, bounds: impl Bounds) -> &mut Self;
}

impl<T> PartsMut for [T] {
    #[inline]
    #[track_caller]
    fn part_mut(&mut self, bounds: impl Bounds) -> &mut [T] {
        if let Some(range) = bounds.within(self.len()) {
            return self.get_mut(range).unwrap_or_default();
        }
        missing(self.len());
        &mut []
    }
}

#[cold]
#[track_caller]
fn missing(length: usize) {
    report(format_args!("a part that must exist is not in the {length} elements"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_that_exist_are_what_indexing_gives() {
        let (numbers, text) = ([1, 2, 3], "a\u{e9}b");
        assert_eq!(
            (numbers.part(1..), numbers.part(..0), numbers.part(1..2)),
            (&[2, 3][..], &[][..], &[2][..])
        );
        assert_eq!((text.part(3..), text.part(..1), text.part(4..4)), ("b", "a", ""));
        assert_eq!([1, 2, 3].part_mut(1..), [2, 3]);
    }

    #[test]
    fn parts_that_do_not_exist_fail_tests() {
        let wrong: [fn() -> usize; 3] =
            [|| [1].part(2..).len(), || "\u{e9}".part(..1).len(), || [1].part_mut(..2).len()];
        for part in wrong {
            let message = *std::panic::catch_unwind(part).unwrap_err().downcast::<String>().unwrap();
            assert!(message.starts_with("bug: a part that must exist"), "{message}");
        }
    }
}
