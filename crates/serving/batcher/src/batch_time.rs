//! Learns how long a batch takes, by its rows, from real batches only.

use crate::convert::{ns_to_f64, to_f64};
use crate::moving_average::MovingAverage;

/// How long an unconfirmed time keeps larger batches from being tried, in nanoseconds.
const STALE: u64 = 10_000_000_000;

/// Batches of about the same size: their mean rows and time.
#[derive(Clone, Copy, Debug, Default)]
struct SizeClass {
    rows: f64,
    time: MovingAverage,
    updated: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct CurvePoint {
    rows: f64,
    nanos: f64,
}

/// The time of a batch as a curve over its rows. Sizes are grouped by powers of two; preferred sizes have a class of
/// their own, since an engine may have a faster kernel for exactly those. Between two known sizes the curve is linear;
/// beyond them it continues as the last two suggest, but a larger batch never takes less time, and never more time per
/// row than a smaller one. While only one size is known, half of its time is attributed to the batch and half to its
/// rows; the first batch of another size corrects that.
#[derive(Debug)]
pub(crate) struct BatchTimeModel {
    preferred_rows: Vec<usize>,
    /// One class per preferred size, then one per power of two up to the largest one seen.
    sizes: Vec<SizeClass>,
    curve: Vec<CurvePoint>,
    /// Time of the latest measurement.
    pub(crate) learned_at: Option<u64>,
    /// Time of the first measurement.
    pub(crate) known_since: Option<u64>,
}

impl BatchTimeModel {
    pub(crate) fn new(preferred_rows: &[usize]) -> Self {
        let classes = preferred_rows.len() + usize::BITS as usize + 1;
        Self {
            preferred_rows: preferred_rows.to_vec(),
            sizes: vec![SizeClass::default(); preferred_rows.len()],
            curve: Vec::with_capacity(classes),
            learned_at: None,
            known_since: None,
        }
    }

    /// Records that a batch of `rows` took `nanos`.
    pub(crate) fn learn(&mut self, now: u64, rows: usize, nanos: u64) {
        let rows = rows.max(1);
        let class = match self.preferred_rows.binary_search(&rows) {
            Ok(index) => index,
            // 1 · 2 · 3 and 4 · 5 to 8 · …
            Err(_) => self.preferred_rows.len() + (usize::BITS - (rows - 1).leading_zeros()) as usize,
        };
        if class >= self.sizes.len() {
            self.sizes.resize(class + 1, SizeClass::default());
        }
        let Some(sizes) = self.sizes.get_mut(class) else { return };
        if sizes.time.learn(ns_to_f64(nanos)) {
            let share = if sizes.time.samples == 1 { 1.0 } else { 0.125 };
            sizes.rows += (to_f64(rows) - sizes.rows) * share;
            sizes.updated = now;
            self.learned_at = Some(now);
            self.known_since = self.known_since.or(Some(now));
            self.rebuild_curve(now);
        }
    }

    /// Estimated time of a batch of `rows`, in nanoseconds; `None` before the first measurement.
    pub(crate) fn estimate(&self, rows: usize) -> Option<f64> {
        interpolate(&self.curve, to_f64(rows.max(1)))
    }

    /// The most rows, up to `most`, that take no longer than `nanos`; at least one. The curve is monotonic, so a binary
    /// search finds it.
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

    fn rebuild_curve(&mut self, now: u64) {
        self.curve.clear();
        let point = |sizes: &SizeClass| Some(CurvePoint { rows: sizes.rows, nanos: sizes.time.value()? });
        self.curve.extend(self.sizes.iter().filter_map(point));
        self.curve.sort_by(|one, other| one.rows.total_cmp(&other.rows));
        self.drop_stale_points(now);
        // Outliers are too long, so the shorter one of two contradicting times is believed.
        let mut lowest = f64::INFINITY;
        for point in self.curve.iter_mut().rev() {
            lowest = lowest.min(point.nanos);
            point.nanos = lowest;
        }
    }

    /// A large batch that was slow once, because the machine was, would never be tried again under a latency target. So
    /// times beyond the largest size seen recently count only if they are no worse than the rest suggests.
    fn drop_stale_points(&mut self, now: u64) {
        let fresh = |sizes: &&SizeClass| sizes.time.samples > 0 && now.saturating_sub(sizes.updated) <= STALE;
        let largest = self.sizes.iter().filter(fresh).map(|sizes| sizes.rows).fold(0.0, f64::max);
        let known = self.curve.partition_point(|point| point.rows <= largest);
        if known < 2 {
            return;
        }
        while let Some((last, before)) = self.curve.split_last() {
            if before.len() < known || interpolate(before, last.rows).is_none_or(|nanos| last.nanos <= nanos)
            {
                break;
            }
            self.curve.pop();
        }
    }
}

fn interpolate(curve: &[CurvePoint], rows: f64) -> Option<f64> {
    let (first, last) = (curve.first()?, curve.last()?);
    let index = curve.partition_point(|point| point.rows < rows);
    let (Some(left), Some(right)) = (index.checked_sub(1).and_then(|left| curve.get(left)), curve.get(index))
    else {
        return Some(if rows <= first.rows {
            extrapolate_below(curve, first, rows)
        } else {
            extrapolate_beyond(curve, last, rows)
        });
    };
    Some(left.nanos + (right.nanos - left.nanos) * (rows - left.rows) / (right.rows - left.rows).max(1e-9))
}

fn extrapolate_below(curve: &[CurvePoint], first: &CurvePoint, rows: f64) -> f64 {
    let slope = slope(curve.first(), curve.get(1));
    (first.nanos - slope * (first.rows - rows)).max(first.nanos * rows / first.rows.max(1.0)).min(first.nanos)
}

fn extrapolate_beyond(curve: &[CurvePoint], last: &CurvePoint, rows: f64) -> f64 {
    let previous = curve.len().checked_sub(2).and_then(|index| curve.get(index));
    let most = last.nanos / last.rows.max(1.0);
    let slope = if previous.is_some() { slope(previous, Some(last)) } else { most / 2.0 };
    last.nanos + slope.min(most).max(0.0) * (rows - last.rows)
}

fn slope(left: Option<&CurvePoint>, right: Option<&CurvePoint>) -> f64 {
    match (left, right) {
        (Some(left), Some(right)) => (right.nanos - left.nanos) / (right.rows - left.rows).max(1e-9),
        (Some(only), None) => only.nanos / only.rows.max(1.0) / 2.0,
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::{BatchTimeModel, STALE};

    fn trained(preferred_rows: &[usize], times: &[(usize, u64)]) -> BatchTimeModel {
        let mut model = BatchTimeModel::new(preferred_rows);
        for &(rows, nanos) in times {
            model.learn(0, rows, nanos);
        }
        model
    }

    #[test]
    fn estimates_follow_the_curve() {
        assert_eq!(BatchTimeModel::new(&[]).estimate(1), None, "nothing is known before the first batch");
        let straight = [(4, 400.0), (10, 700.0), (16, 1000.0), (32, 1800.0), (1, 250.0)];
        for (rule, model, expected) in [
            ("straight between and beyond known sizes", trained(&[], &[(4, 400), (16, 1000)]), &straight[..]),
            ("no less for more rows", trained(&[], &[(4, 1000), (16, 800)]), &[(4, 800.0), (64, 800.0)]),
            ("no more than row by row", trained(&[], &[(4, 100), (8, 1000)]), &[(16, 2000.0), (1, 25.0)]),
            ("half of a single time is for the batch", trained(&[], &[(1, 200)]), &[(3, 400.0)]),
            ("and half for its rows", trained(&[], &[(8, 800)]), &[(1, 450.0)]),
            ("preferred sizes", trained(&[8], &[(8, 100), (7, 900), (16, 1000)]), &[(8, 100.0)]),
        ] {
            for &(rows, nanos) in expected {
                let estimate = model.estimate(rows).unwrap();
                assert!((estimate - nanos).abs() < 1.0, "{rule}: {rows} rows take {estimate}, not {nanos}");
            }
        }
    }

    #[test]
    fn rows_within_finds_the_most_rows_that_fit() {
        let model = trained(&[], &[(1, 267), (32, 794)]);
        assert_eq!(model.rows_within(500.0, 32), 14);
        assert_eq!(model.rows_within(10.0, 32), 1);
        assert_eq!(model.rows_within(1e9, 32), 32);
        assert_eq!(BatchTimeModel::new(&[]).rows_within(10.0, 32), 32);
    }

    #[test]
    fn a_large_batch_that_was_slow_long_ago_is_tried_again() {
        let mut model = trained(&[], &[(1, 110), (4, 140), (16, 9_000)]);
        assert_eq!(model.rows_within(500.0, 16), 4);
        model.learn(STALE + 1, 1, 110);
        model.learn(STALE + 1, 4, 140);
        assert_eq!(model.rows_within(500.0, 16), 16);
    }
}
