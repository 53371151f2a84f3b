//! A logarithmic axis with round marks.

use cudock_base::svg::round_values;

/// Equal distances for equal ratios.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Axis {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl Axis {
    /// Maps `low` to `high` to the coordinates `from` to `to`. Values that cannot be shown become 1 to 10.
    pub(super) fn new((low, high): (f64, f64), (from, to): (f64, f64)) -> Self {
        let sound = low > 0.0 && low.is_finite() && high.is_finite();
        let (low, high) = if sound { (low, high.max(low * 1.01)) } else { (1.0, 10.0) };
        Self { low, high, from, to }
    }

    /// The same with ends moved out to the next round values.
    pub(super) fn rounded(values: (f64, f64), coordinates: (f64, f64)) -> Self {
        let exact = Self::new(values, coordinates);
        let marks = round_values(exact.low / 10.0, exact.high * 10.0);
        let low = marks.iter().copied().rfind(|mark| *mark <= exact.low * 1.000_001).unwrap_or(exact.low);
        let high = marks.iter().copied().find(|mark| *mark >= exact.high * 0.999_999).unwrap_or(exact.high);
        Self { low, high, ..exact }
    }

    /// The coordinate of a value; values beyond the ends are at the ends.
    pub(super) fn coordinate(&self, value: f64) -> f64 {
        let value = if value.is_nan() { self.low } else { value.clamp(self.low, self.high) };
        let share = (value / self.low).ln() / (self.high / self.low).ln();
        self.from + share * (self.to - self.from)
    }

    /// The marks of the axis, at most `most`: every round value, or those of whole decades if that
    /// is too many.
    pub(super) fn marks(&self, most: usize) -> Vec<f64> {
        let all = round_values(self.low, self.high);
        if all.len() <= most {
            return all;
        }
        let decade = |value: &f64| (value.log10() - value.log10().round()).abs() < 1e-6;
        let decades: Vec<f64> = all.into_iter().filter(decade).collect();
        let every = decades.len().div_ceil(most.max(1)).max(1);
        decades.into_iter().step_by(every).collect()
    }

    /// The marks of an axis of times in seconds, at most `most`, at round times.
    pub(super) fn time_marks(&self, most: usize) -> Vec<f64> {
        const TIMES: [(f64, &[f64]); 4] = [
            (1.0, &[0.001, 0.01, 0.1, 1.0, 5.0, 15.0]),
            (60.0, &[1.0, 5.0, 15.0]),
            (3600.0, &[1.0, 3.0, 6.0, 12.0]),
            (86_400.0, &[1.0, 3.0, 7.0, 14.0, 30.0, 90.0, 365.0]),
        ];
        let inside = |value: &f64| (self.low..=self.high).contains(value);
        let times = TIMES.iter().flat_map(|(unit, counts)| counts.iter().map(move |count| unit * count));
        let times: Vec<f64> = times.filter(inside).collect();
        let every = times.len().div_ceil(most.max(1)).max(1);
        times.into_iter().step_by(every).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_ratios_are_equally_far_apart() {
        let axis = Axis::new((0.1, 100.0), (0.0, 300.0));
        for (value, coordinate) in [(0.1, 0.0), (1.0, 100.0), (10.0, 200.0), (100.0, 300.0), (1e9, 300.0)] {
            assert!((axis.coordinate(value) - coordinate).abs() < 1e-6, "{value}");
        }
    }

    #[test]
    fn there_are_never_more_marks_than_requested() {
        for high in [2.0, 30.0, 1e3, 1e9, 1e15] {
            let axis = Axis::rounded((1.0, high), (0.0, 1.0));
            let marks = axis.marks(8);
            assert!((1..=8).contains(&marks.len()), "{high}: {marks:?}");
        }
    }

    #[test]
    fn values_that_cannot_be_shown_do_no_harm() {
        for bad in [(0.0, 0.0), (f64::NAN, 1.0), (1.0, f64::INFINITY), (5.0, 5.0), (-1.0, 2.0)] {
            let axis = Axis::rounded(bad, (0.0, 1.0));
            assert!(axis.coordinate(3.0).is_finite() && axis.coordinate(f64::NAN).is_finite(), "{bad:?}");
            assert!(axis.marks(5).iter().all(|mark| mark.is_finite()));
        }
    }
}
