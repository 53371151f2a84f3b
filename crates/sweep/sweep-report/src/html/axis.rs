//! Axes of charts: maps values to coordinates, with ticks at round values.

use cudock_base::svg::round_values;

/// A range of values and the coordinates of its ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ChartAxis {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
    is_log: bool,
}

impl ChartAxis {
    /// A linear axis. An empty or unusable range becomes one that can be drawn.
    pub(super) fn linear((low, high): (f64, f64), (from, to): (f64, f64)) -> Self {
        let is_usable = low.is_finite() && high.is_finite() && (high - low).is_finite();
        let (low, high) = match (low, high) {
            (low, high) if is_usable && low < high => (low, high),
            (low, _) if is_usable => (low - low.abs().max(1.0) / 2.0, low + low.abs().max(1.0) / 2.0),
            _ => (0.0, 1.0),
        };
        Self { low, high, from, to, is_log: false }
    }

    /// A logarithmic axis; linear if the range is not positive.
    pub(super) fn logarithmic((low, high): (f64, f64), coordinates: (f64, f64)) -> Self {
        let axis = Self::linear((low, high), coordinates);
        Self { is_log: low > 0.0 && low < high && (high / low).is_finite(), ..axis }
    }

    /// An axis for values of unknown range: logarithmic if they span more than three decades; a linear one leaves out what
    /// is more than three interquartile ranges away from the middle half, so that an outlier does not flatten the rest.
    pub(super) fn fitting(mut values: Vec<f64>, coordinates: (f64, f64)) -> Self {
        values.retain(|value| value.is_finite());
        values.sort_by(f64::total_cmp);
        let (Some(&low), Some(&high)) = (values.first(), values.last()) else {
            return Self::linear((0.0, 1.0), coordinates);
        };
        if low > 0.0 && high / low > 1000.0 {
            return Self::logarithmic((low, high), coordinates);
        }
        let quarter = |quarters: usize| values.get(values.len() * quarters / 4).copied().unwrap_or(high);
        let (first, third) = (quarter(1), quarter(3));
        let reach = 3.0 * (third - first);
        if reach > 0.0 && reach.is_finite() {
            return Self::linear((low.max(first - reach), high.min(third + reach)), coordinates);
        }
        Self::linear((low, high), coordinates)
    }

    /// The coordinate of a value; values beyond the ends are at the ends.
    pub(super) fn coordinate(&self, value: f64) -> f64 {
        let value = if value.is_nan() { self.low } else { value.clamp(self.low, self.high) };
        let share = if self.is_log {
            (value / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        self.from + share * (self.to - self.from)
    }

    /// About `count` round values.
    pub(super) fn ticks(&self, count: u32) -> Vec<f64> {
        if self.is_log {
            let all = round_values(self.low, self.high);
            let decades: Vec<f64> = all
                .iter()
                .copied()
                .filter(|value| (value.log10() - value.log10().round()).abs() < 1e-6)
                .collect();
            let chosen = if decades.len() < 2 { all } else { decades };
            let every = chosen.len().div_ceil(count.max(1) as usize * 2).max(1);
            return chosen.into_iter().step_by(every).collect();
        }
        let least = (self.high - self.low) / f64::from(count.max(1));
        let step = round_values(least, least * 10.0).first().copied().unwrap_or(least);
        let first = (self.low / step).ceil();
        let ticks = (0..100).map(|number| (first + f64::from(number)) * step);
        ticks.take_while(|value| *value <= self.high + step * 1e-9).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_inside() {
        let linear = ChartAxis::linear((0.13, 0.91), (0.0, 1.0));
        let texts: Vec<String> = linear.ticks(5).iter().map(|tick| format!("{tick:.1}")).collect();
        assert_eq!(texts, ["0.2", "0.4", "0.6", "0.8"]);
        let logarithmic = ChartAxis::logarithmic((1e-4, 0.1), (0.0, 300.0));
        assert_eq!(logarithmic.ticks(5).len(), 4);
        assert!((logarithmic.coordinate(1e-3) - 100.0).abs() < 1e-6);
    }

    #[test]
    fn an_outlier_does_not_flatten_the_rest() {
        let mut values: Vec<f64> = (0..100).map(f64::from).collect();
        values.extend([-1e6, f64::NAN, 500.0]);
        let axis = ChartAxis::fitting(values, (0.0, 1.0));
        assert!(axis.coordinate(50.0) > 0.1 && axis.coordinate(-1e6) == 0.0, "{axis:?}");
        let wide = ChartAxis::fitting(vec![1e-3, 1.0, 1e3], (0.0, 1.0));
        assert!((wide.coordinate(1.0) - 0.5).abs() < 1e-9);
    }

    #[test]
    fn ranges_that_cannot_be_drawn_do_no_harm() {
        let ranges = [
            (0.0, 0.0),
            (5.0, 5.0),
            (f64::NAN, 1.0),
            (1.0, f64::INFINITY),
            (-1.0, 2.0),
            (-f64::MAX, f64::MAX),
        ];
        for range in ranges {
            for axis in [ChartAxis::linear(range, (0.0, 1.0)), ChartAxis::logarithmic(range, (0.0, 1.0))] {
                assert!(
                    axis.coordinate(3.0).is_finite() && axis.coordinate(f64::NAN).is_finite(),
                    "{range:?}"
                );
                assert!(axis.ticks(5).iter().all(|tick| axis.coordinate(*tick).is_finite()), "{range:?}");
            }
        }
        assert!(ChartAxis::fitting(Vec::new(), (0.0, 1.0)).coordinate(0.5).is_finite());
    }
}
