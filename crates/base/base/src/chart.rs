//! Axes of charts: map values to coordinates, with ticks at round values.

/// A range of values and the coordinates of its ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Axis {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
    is_log: bool,
}

impl Axis {
    /// A linear axis. An empty or unusable range becomes one that can be drawn.
    pub fn linear((low, high): (f64, f64), (from, to): (f64, f64)) -> Self {
        let is_usable = low.is_finite() && high.is_finite() && (high - low).is_finite();
        let (low, high) = match (low, high) {
            (low, high) if is_usable && low < high => (low, high),
            (low, _) if is_usable => (low - low.abs().max(1.0) / 2.0, low + low.abs().max(1.0) / 2.0),
            _ => (0.0, 1.0),
        };
        Self { low, high, from, to, is_log: false }
    }

    /// A linear axis that starts at zero; it ends at 1 if `high` is not positive.
    pub fn from_zero(high: f64, coordinates: (f64, f64)) -> Self {
        Self::linear((0.0, if high > 0.0 { high } else { 1.0 }), coordinates)
    }

    /// A logarithmic axis; a range that is not positive becomes 1 to 10.
    pub fn logarithmic((low, high): (f64, f64), coordinates: (f64, f64)) -> Self {
        let axis = Self::logarithmic_or_linear((low, high.max(low * 1.01)), coordinates);
        if axis.is_log { axis } else { Self { low: 1.0, high: 10.0, is_log: true, ..axis } }
    }

    /// A logarithmic axis; linear if the range is empty or not positive.
    pub fn logarithmic_or_linear((low, high): (f64, f64), coordinates: (f64, f64)) -> Self {
        let axis = Self::linear((low, high), coordinates);
        Self { is_log: low > 0.0 && low < high && (high / low).is_finite(), ..axis }
    }

    /// An axis for values of unknown range: logarithmic if they span more than three decades; a linear one leaves out
    /// what is more than three interquartile ranges away from the middle half, so that an outlier does not flatten the
    /// rest.
    pub fn fitting(mut values: Vec<f64>, coordinates: (f64, f64)) -> Self {
        values.retain(|value| value.is_finite());
        values.sort_by(f64::total_cmp);
        let (Some(&low), Some(&high)) = (values.first(), values.last()) else {
            return Self::linear((0.0, 1.0), coordinates);
        };
        if low > 0.0 && high / low > 1000.0 {
            return Self::logarithmic_or_linear((low, high), coordinates);
        }
        let quarter = |quarters: usize| values.get(values.len() * quarters / 4).copied().unwrap_or(high);
        let (first, third) = (quarter(1), quarter(3));
        let reach = 3.0 * (third - first);
        if reach > 0.0 && reach.is_finite() {
            return Self::linear((low.max(first - reach), high.min(third + reach)), coordinates);
        }
        Self::linear((low, high), coordinates)
    }

    /// The same logarithmic axis with its ends moved out to the next round values.
    #[must_use]
    pub fn rounded(self) -> Self {
        let values = round_values(self.low / 10.0, self.high * 10.0);
        let low = values.iter().copied().rfind(|value| *value <= self.low * 1.000_001).unwrap_or(self.low);
        let high = values.iter().copied().find(|value| *value >= self.high * 0.999_999).unwrap_or(self.high);
        Self { low, high, ..self }
    }

    /// The coordinate of a value; values beyond the ends are at the ends.
    pub fn coordinate(&self, value: f64) -> f64 {
        let value = if value.is_nan() { self.low } else { value.clamp(self.low, self.high) };
        let share = if self.is_log {
            (value / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        self.from + share * (self.to - self.from)
    }

    /// About `count` round values. On a logarithmic axis powers of ten, unless there are fewer than two.
    pub fn ticks(&self, count: u32) -> Vec<f64> {
        let count = count.max(1);
        if self.is_log {
            let all = round_values(self.low, self.high);
            let decades = decades(&all);
            return thinned(if decades.len() < 2 { all } else { decades }, count as usize * 2);
        }
        let step = round_up((self.high - self.low) / f64::from(count));
        let first = (self.low / step).ceil();
        let ticks = (0..100).map(|number| (first + f64::from(number)) * step);
        ticks.take_while(|value| *value <= self.high + step * 1e-9).collect()
    }

    /// At most `max` ticks of a logarithmic axis: every round value, or powers of ten where that is too many.
    pub fn round_ticks(&self, max: usize) -> Vec<f64> {
        let all = round_values(self.low, self.high);
        if all.len() <= max { all } else { thinned(decades(&all), max) }
    }

    /// Every round value of a logarithmic axis, and whether it gets a label: only powers of ten do if the axis is longer
    /// than `max_decades`.
    pub fn labeled_ticks(&self, max_decades: f64) -> Vec<(f64, bool)> {
        let is_short = (self.high / self.low).log10() <= max_decades;
        let all = round_values(self.low, self.high).into_iter();
        all.map(|value| (value, is_short || is_power_of_ten(value))).collect()
    }

    /// At most `max` ticks for times in seconds, at round times.
    pub fn time_ticks(&self, max: usize) -> Vec<f64> {
        const TIMES: [(f64, &[f64]); 4] = [
            (1.0, &[0.001, 0.01, 0.1, 1.0, 5.0, 15.0]),
            (60.0, &[1.0, 5.0, 15.0]),
            (3600.0, &[1.0, 3.0, 6.0, 12.0]),
            (86_400.0, &[1.0, 3.0, 7.0, 14.0, 30.0, 90.0, 365.0]),
        ];
        let times = TIMES.iter().flat_map(|(unit, counts)| counts.iter().map(move |count| unit * count));
        thinned(times.filter(|time| (self.low..=self.high).contains(time)).collect(), max)
    }
}

/// The next of 1, 2 and 5 times a power of ten; 1 for values that are not positive.
pub fn round_up(value: f64) -> f64 {
    if value <= 0.0 || !value.is_finite() {
        return 1.0;
    }
    round_values(value, value * 10.0).first().copied().unwrap_or(value)
}

/// The values 1, 2 and 5 of every decade, within bounds.
fn round_values(low: f64, high: f64) -> Vec<f64> {
    let mut values = Vec::new();
    let mut decade = 10_f64.powf(low.log10().floor());
    while decade <= high * 1.000_001 && values.len() < 200 {
        values.extend([1.0, 2.0, 5.0].map(|digit| digit * decade));
        decade *= 10.0;
    }
    values.retain(|value| *value >= low * 0.999_999 && *value <= high * 1.000_001);
    values
}

fn is_power_of_ten(value: f64) -> bool {
    (value.log10() - value.log10().round()).abs() < 1e-6
}

fn decades(values: &[f64]) -> Vec<f64> {
    values.iter().copied().filter(|value| is_power_of_ten(*value)).collect()
}

/// At most `max` of the values, equally far apart.
fn thinned(values: Vec<f64>, max: usize) -> Vec<f64> {
    let every = values.len().div_ceil(max.max(1)).max(1);
    values.into_iter().step_by(every).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_numbers_are_one_two_and_five() {
        for (value, round) in [(0.3, 0.5), (1.0, 1.0), (1.1, 2.0), (2345.0, 5000.0), (7e6, 1e7), (0.0, 1.0)] {
            assert!((round_up(value) - round).abs() < round * 1e-6, "{value}: {}", round_up(value));
        }
    }

    #[test]
    fn a_logarithmic_axis_has_equal_distances_for_equal_ratios() {
        let exact = Axis::logarithmic((0.1, 100.0), (0.0, 300.0));
        for axis in [exact, exact.rounded()] {
            for (value, coordinate) in [(0.1, 0.0), (1.0, 100.0), (10.0, 200.0), (100.0, 300.0), (1e9, 300.0)]
            {
                assert!((axis.coordinate(value) - coordinate).abs() < 1e-6, "{value}");
            }
            assert_eq!(axis.labeled_ticks(2.0).iter().filter(|(_, is_labeled)| *is_labeled).count(), 4);
        }
    }

    #[test]
    fn the_ends_of_an_axis_are_rounded() {
        let narrow = Axis::logarithmic((3.0, 4.0), (0.0, 1.0)).rounded();
        let ticks = narrow.labeled_ticks(2.0);
        assert_eq!((ticks.first().unwrap().0, ticks.len()), (2.0, 2));
    }

    #[test]
    fn an_axis_from_zero_begins_at_zero() {
        let axis = Axis::from_zero(950.0, (100.0, 0.0));
        assert_eq!(axis.ticks(5), [0.0, 200.0, 400.0, 600.0, 800.0]);
        assert!((axis.coordinate(0.0) - 100.0).abs() < 1e-9);
    }

    #[test]
    fn ticks_are_round_and_inside() {
        let linear = Axis::linear((0.13, 0.91), (0.0, 1.0));
        let texts: Vec<String> = linear.ticks(5).iter().map(|tick| format!("{tick:.1}")).collect();
        assert_eq!(texts, ["0.2", "0.4", "0.6", "0.8"]);
        let logarithmic = Axis::logarithmic_or_linear((1e-4, 0.1), (0.0, 300.0));
        assert_eq!(logarithmic.ticks(5).len(), 4);
        assert!((logarithmic.coordinate(1e-3) - 100.0).abs() < 1e-6);
    }

    #[test]
    fn there_are_never_more_ticks_than_requested() {
        for high in [2.0, 30.0, 1e3, 1e9, 1e15] {
            let axis = Axis::logarithmic((1.0, high), (0.0, 1.0)).rounded();
            let ticks = axis.round_ticks(8);
            assert!((1..=8).contains(&ticks.len()), "{high}: {ticks:?}");
        }
    }

    #[test]
    fn an_outlier_does_not_flatten_the_rest() {
        let mut values: Vec<f64> = (0..100).map(f64::from).collect();
        values.extend([-1e6, f64::NAN, 500.0]);
        let axis = Axis::fitting(values, (0.0, 1.0));
        assert!(axis.coordinate(50.0) > 0.1 && axis.coordinate(-1e6) == 0.0, "{axis:?}");
        let wide = Axis::fitting(vec![1e-3, 1.0, 1e3], (0.0, 1.0));
        assert!((wide.coordinate(1.0) - 0.5).abs() < 1e-9);
    }

    #[test]
    fn ranges_that_cannot_be_drawn_do_no_harm() {
        let ranges = [
            (0.0, 0.0),
            (5.0, 5.0),
            (f64::NAN, 1.0),
            (1.0, f64::NAN),
            (1.0, f64::INFINITY),
            (-1.0, 2.0),
            (-f64::MAX, f64::MAX),
        ];
        for range in ranges {
            let ends = (0.0, 1.0);
            let logarithmic = Axis::logarithmic(range, ends);
            let axes = [
                Axis::linear(range, ends),
                Axis::from_zero(range.0, ends),
                Axis::logarithmic_or_linear(range, ends),
                logarithmic,
                logarithmic.rounded(),
            ];
            for axis in axes {
                assert!(
                    axis.coordinate(3.0).is_finite() && axis.coordinate(f64::NAN).is_finite(),
                    "{range:?}"
                );
                assert!(axis.ticks(5).iter().all(|tick| axis.coordinate(*tick).is_finite()), "{range:?}");
            }
            assert!(logarithmic.rounded().round_ticks(5).iter().all(|tick| tick.is_finite()), "{range:?}");
            let ticks = logarithmic.rounded().labeled_ticks(2.0);
            assert!(ticks.iter().all(|(tick, _)| logarithmic.coordinate(*tick).is_finite()), "{range:?}");
        }
        assert!(Axis::fitting(Vec::new(), (0.0, 1.0)).coordinate(0.5).is_finite());
    }
}
