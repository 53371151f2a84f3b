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
    pub(crate) samples: u32,
    suspected: bool,
}

impl MovingAverage {
    pub(crate) fn value(&self) -> Option<f64> {
        (self.samples > 0).then_some(self.value)
    }

    /// Adds a value; returns whether it was believed.
    pub(crate) fn learn(&mut self, value: f64) -> bool {
        let is_outlier = self.samples > 0 && value > self.value * OUTLIER;
        if is_outlier && !self.suspected {
            self.suspected = true;
            return false;
        }
        if is_outlier || self.samples == 0 {
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

    fn after(values: &[f64]) -> Option<f64> {
        let mut average = MovingAverage::default();
        for &value in values {
            average.learn(value);
        }
        average.value()
    }

    #[test]
    fn one_outlier_is_ignored_and_the_second_believed() {
        assert_eq!(after(&[]), None);
        for (rule, values, expected) in [
            ("the first values have equal weight", &[1.0, 2.0, 3.0][..], 2.0),
            ("one outlier changes nothing", &[10.0, 10.0, 10.0, 900.0, 10.0], 10.0),
            ("consecutive outliers replace the mean", &[10.0, 10.0, 900.0, 900.0], 900.0),
        ] {
            assert!((after(values).unwrap() - expected).abs() < 1e-9, "{rule}");
        }
        let slow_start = [&[1_000_000.0][..], &[100.0; 24]].concat();
        assert!(after(&slow_start).unwrap() < 130.0, "a slow first value is forgotten quickly");
    }
}
