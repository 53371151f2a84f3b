//! A moving average that one outlier does not disturb.

/// A value this many times the mean is an outlier.
const OUTLIER: f64 = 8.0;
/// The weight of a new value once there are enough of them.
const SHARE: f64 = 0.125;

/// A moving average of durations. The first values count in full; later ones an eighth. An outlier is ignored once and
/// believed the second time in a row. Falling values are followed faster than rising ones, because outliers (a first
/// run that allocates, a machine that was suspended for a moment) are always too long.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MovingAverage {
    value: f64,
    samples: u32,
    suspected: bool,
}

impl MovingAverage {
    pub(crate) fn value(&self) -> Option<f64> {
        (self.samples > 0).then_some(self.value)
    }

    pub(crate) fn samples(&self) -> u32 {
        self.samples
    }

    /// Adds a value; returns whether it was believed.
    pub(crate) fn learn(&mut self, value: f64) -> bool {
        if self.samples == 0 {
            *self = Self { value, samples: 1, suspected: false };
            return true;
        }
        if value > self.value * OUTLIER {
            if !self.suspected {
                self.suspected = true;
                return false;
            }
            *self = Self { value, samples: 1, suspected: false };
            return true;
        }
        self.suspected = false;
        self.samples = self.samples.saturating_add(1);
        let share = if value * 2.0 < self.value { 0.5 } else { SHARE.max(1.0 / f64::from(self.samples)) };
        self.value += (value - self.value) * share;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::MovingAverage;

    fn after(values: &[f64]) -> f64 {
        let mut average = MovingAverage::default();
        for &value in values {
            average.learn(value);
        }
        average.value().unwrap()
    }

    #[test]
    fn there_is_no_value_before_the_first_sample() {
        assert_eq!(MovingAverage::default().value(), None);
    }

    #[test]
    fn the_first_values_have_equal_weight() {
        assert!((after(&[1.0, 2.0, 3.0]) - 2.0).abs() < 1e-9);
    }

    #[test]
    fn one_outlier_changes_nothing() {
        assert!((after(&[10.0, 10.0, 10.0, 900.0, 10.0]) - 10.0).abs() < 1e-9);
    }

    #[test]
    fn consecutive_outliers_replace_the_mean() {
        assert!((after(&[10.0, 10.0, 900.0, 900.0]) - 900.0).abs() < 1e-9);
    }

    #[test]
    fn a_slow_first_value_is_forgotten_quickly() {
        let mut values = vec![1_000_000.0];
        values.extend([100.0; 24]);
        assert!(after(&values) < 130.0);
    }
}
