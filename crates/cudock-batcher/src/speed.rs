//! How long a batch takes, by its rows: learned, never measured on purpose.

use crate::average::Average;
use crate::number::{real, span};

/// How long a time that nobody confirmed keeps larger batches from being tried.
const STALE: u64 = 10_000_000_000;

/// Batches of about the same size: how many rows they had, and how long they took.
#[derive(Clone, Copy, Debug, Default)]
struct Sizes {
    rows: f64,
    time: Average,
    seen: u64,
}

/// A point of the curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Knot {
    pub(crate) rows: f64,
    pub(crate) nanos: f64,
    pub(crate) samples: u32,
}

/// The time of a batch as a curve over its rows. Sizes are put together by powers of two, and preferred sizes stand for
/// themselves, since an engine may have a quicker way for just those. Between two known sizes the curve is straight;
/// beyond them it goes on as the two last ones suggest, but a batch never takes less for being larger, and never
/// more than its share of a smaller one's time for each row. While there is only one size, half of its time is taken to
/// be for the batch and half for its rows; the first batch of another size tells the truth.
#[derive(Debug)]
pub(crate) struct Speed {
    preferred: Vec<usize>,
    /// One for each preferred size, then one for each power of two up to the largest seen.
    sizes: Vec<Sizes>,
    curve: Vec<Knot>,
    learned_at: Option<u64>,
    known_since: Option<u64>,
}

impl Speed {
    pub(crate) fn new(preferred: &[usize]) -> Self {
        let kinds = preferred.len() + usize::BITS as usize + 1;
        Self {
            preferred: preferred.to_vec(),
            sizes: vec![Sizes::default(); preferred.len()],
            curve: Vec::with_capacity(kinds),
            learned_at: None,
            known_since: None,
        }
    }

    pub(crate) fn curve(&self) -> &[Knot] {
        &self.curve
    }

    /// When a batch last told something.
    pub(crate) fn learned_at(&self) -> Option<u64> {
        self.learned_at
    }

    /// When the first batch told something.
    pub(crate) fn known_since(&self) -> Option<u64> {
        self.known_since
    }

    /// A batch of so many rows took so long.
    pub(crate) fn learn(&mut self, now: u64, rows: usize, nanos: u64) {
        let rows = rows.max(1);
        let kind = match self.preferred.binary_search(&rows) {
            Ok(place) => place,
            // 1 · 2 · 3 and 4 · 5 to 8 · …
            Err(_) => self.preferred.len() + (usize::BITS - (rows - 1).leading_zeros()) as usize,
        };
        if kind >= self.sizes.len() {
            self.sizes.resize(kind + 1, Sizes::default());
        }
        let Some(sizes) = self.sizes.get_mut(kind) else { return };
        if sizes.time.learn(span(nanos)) {
            let share = if sizes.time.samples() == 1 { 1.0 } else { 0.125 };
            sizes.rows += (real(rows) - sizes.rows) * share;
            sizes.seen = now;
            self.learned_at = Some(now);
            self.known_since = self.known_since.or(Some(now));
            self.draw(now);
        }
    }

    /// How long a batch of so many rows takes, in nanoseconds; nothing before the first one.
    pub(crate) fn estimate(&self, rows: usize) -> Option<f64> {
        along(&self.curve, real(rows.max(1)))
    }

    /// The most rows, up to `most`, that take no longer than `nanos`; at least one. The curve only rises, so halving
    /// finds it.
    pub(crate) fn rows_within(&self, nanos: f64, most: usize) -> usize {
        let fits = |rows: usize| self.estimate(rows).is_none_or(|time| time <= nanos);
        if fits(most) {
            return most.max(1);
        }
        let (mut least, mut beyond) = (1, most.max(1));
        while beyond - least > 1 {
            let middle = least + (beyond - least) / 2;
            if fits(middle) {
                least = middle;
            } else {
                beyond = middle;
            }
        }
        least
    }

    fn draw(&mut self, now: u64) {
        self.curve.clear();
        for sizes in &self.sizes {
            if let Some(nanos) = sizes.time.value() {
                self.curve.push(Knot { rows: sizes.rows, nanos, samples: sizes.time.samples() });
            }
        }
        self.curve.sort_by(|one, other| one.rows.total_cmp(&other.rows));
        self.forget_stale_heights(now);
        // Odd times are too long ones, so of two that contradict each other the shorter is believed.
        let mut lowest = f64::INFINITY;
        for knot in self.curve.iter_mut().rev() {
            lowest = lowest.min(knot.nanos);
            knot.nanos = lowest;
        }
    }

    /// A large batch that was once slow, because the machine was, would never be tried again under a latency target.
    /// So times beyond the largest size seen lately count only if they are no worse than the rest suggests.
    fn forget_stale_heights(&mut self, now: u64) {
        let fresh = |sizes: &&Sizes| sizes.time.samples() > 0 && now.saturating_sub(sizes.seen) <= STALE;
        let largest = self.sizes.iter().filter(fresh).map(|sizes| sizes.rows).fold(0.0, f64::max);
        let known = self.curve.partition_point(|knot| knot.rows <= largest);
        if known < 2 {
            return;
        }
        while let Some((last, before)) = self.curve.split_last() {
            if before.len() < known || along(before, last.rows).is_none_or(|nanos| last.nanos <= nanos) {
                break;
            }
            self.curve.pop();
        }
    }
}

fn along(curve: &[Knot], rows: f64) -> Option<f64> {
    let (first, last) = (curve.first()?, curve.last()?);
    let place = curve.partition_point(|knot| knot.rows < rows);
    let (Some(left), Some(right)) = (place.checked_sub(1).and_then(|left| curve.get(left)), curve.get(place))
    else {
        return Some(if rows <= first.rows { below(curve, first, rows) } else { beyond(curve, last, rows) });
    };
    Some(left.nanos + (right.nanos - left.nanos) * (rows - left.rows) / (right.rows - left.rows).max(1e-9))
}

fn below(curve: &[Knot], first: &Knot, rows: f64) -> f64 {
    let slope = slope(curve.first(), curve.get(1));
    (first.nanos - slope * (first.rows - rows)).max(first.nanos * rows / first.rows.max(1.0)).min(first.nanos)
}

fn beyond(curve: &[Knot], last: &Knot, rows: f64) -> f64 {
    let previous = curve.len().checked_sub(2).and_then(|place| curve.get(place));
    let most = last.nanos / last.rows.max(1.0);
    let slope = if previous.is_some() { slope(previous, Some(last)) } else { most / 2.0 };
    last.nanos + slope.min(most).max(0.0) * (rows - last.rows)
}

fn slope(left: Option<&Knot>, right: Option<&Knot>) -> f64 {
    match (left, right) {
        (Some(left), Some(right)) => (right.nanos - left.nanos) / (right.rows - left.rows).max(1e-9),
        (Some(only), None) => only.nanos / only.rows.max(1.0) / 2.0,
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::{STALE, Speed};

    fn taught(preferred: &[usize], times: &[(usize, u64)]) -> Speed {
        let mut speed = Speed::new(preferred);
        for &(rows, nanos) in times {
            speed.learn(0, rows, nanos);
        }
        speed
    }

    fn close(speed: &Speed, rows: usize, nanos: f64) {
        let estimate = speed.estimate(rows).unwrap();
        assert!((estimate - nanos).abs() < 1.0, "{rows} rows take {estimate}, not {nanos}");
    }

    #[test]
    fn nothing_is_estimated_before_the_first_batch() {
        assert_eq!(Speed::new(&[]).estimate(1), None);
    }

    #[test]
    fn between_and_beyond_known_sizes_the_curve_is_straight() {
        let speed = taught(&[], &[(4, 400), (16, 1000)]);
        for (rows, nanos) in [(4, 400.0), (10, 700.0), (16, 1000.0), (32, 1800.0), (1, 250.0)] {
            close(&speed, rows, nanos);
        }
    }

    #[test]
    fn no_batch_takes_less_for_being_larger_or_more_than_its_rows_one_by_one() {
        let falling = taught(&[], &[(4, 1000), (16, 800)]);
        close(&falling, 4, 800.0);
        close(&falling, 64, 800.0);
        let steep = taught(&[], &[(4, 100), (8, 1000)]);
        close(&steep, 16, 2000.0);
        close(&steep, 1, 25.0);
    }

    #[test]
    fn with_one_size_known_half_of_its_time_is_for_the_batch() {
        let speed = taught(&[], &[(1, 200)]);
        close(&speed, 3, 400.0);
        let speed = taught(&[], &[(8, 800)]);
        close(&speed, 1, 450.0);
    }

    #[test]
    fn a_preferred_size_is_not_put_together_with_its_neighbours() {
        let speed = taught(&[8], &[(8, 100), (7, 900), (16, 1000)]);
        close(&speed, 8, 100.0);
    }

    #[test]
    fn the_most_rows_within_a_time_are_found() {
        let speed = taught(&[], &[(1, 267), (32, 794)]);
        assert_eq!(speed.rows_within(500.0, 32), 14);
        assert_eq!(speed.rows_within(10.0, 32), 1);
        assert_eq!(speed.rows_within(1e9, 32), 32);
        assert_eq!(Speed::new(&[]).rows_within(10.0, 32), 32);
    }

    #[test]
    fn a_large_batch_that_was_slow_long_ago_is_given_another_chance() {
        let mut speed = taught(&[], &[(1, 110), (4, 140), (16, 9_000)]);
        assert_eq!(speed.rows_within(500.0, 16), 4);
        speed.learn(STALE + 1, 1, 110);
        speed.learn(STALE + 1, 4, 140);
        assert_eq!(speed.rows_within(500.0, 16), 16);
    }
}
