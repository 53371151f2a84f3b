//! A mean that follows what it measures and is not thrown off by one odd value.

/// How much more than usual a value may be before it is doubted.
const ODD: f64 = 8.0;
/// The weight of a new value once there are enough of them.
const SHARE: f64 = 0.125;

/// A moving mean of times. The first values count in full; later ones an eighth. A value eight times the mean is passed
/// over once and believed the second time in a row. Falling is followed faster than rising, since the odd ones (a first
/// run that allocates, a machine that was stopped for a moment) are all too long.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Average {
    value: f64,
    samples: u32,
    doubted: bool,
}

impl Average {
    pub(crate) fn value(&self) -> Option<f64> {
        (self.samples > 0).then_some(self.value)
    }

    pub(crate) fn samples(&self) -> u32 {
        self.samples
    }

    /// Takes a value in; whether it was believed.
    pub(crate) fn learn(&mut self, value: f64) -> bool {
        if self.samples == 0 {
            *self = Self { value, samples: 1, doubted: false };
            return true;
        }
        if value > self.value * ODD {
            if !self.doubted {
                self.doubted = true;
                return false;
            }
            *self = Self { value, samples: 1, doubted: false };
            return true;
        }
        self.doubted = false;
        self.samples = self.samples.saturating_add(1);
        let share = if value * 2.0 < self.value { 0.5 } else { SHARE.max(1.0 / f64::from(self.samples)) };
        self.value += (value - self.value) * share;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::Average;

    fn after(values: &[f64]) -> f64 {
        let mut average = Average::default();
        for &value in values {
            average.learn(value);
        }
        average.value().unwrap()
    }

    #[test]
    fn nothing_is_known_before_the_first_value() {
        assert_eq!(Average::default().value(), None);
    }

    #[test]
    fn the_first_values_are_weighed_alike() {
        assert!((after(&[1.0, 2.0, 3.0]) - 2.0).abs() < 1e-9);
    }

    #[test]
    fn one_odd_value_changes_nothing() {
        assert!((after(&[10.0, 10.0, 10.0, 900.0, 10.0]) - 10.0).abs() < 1e-9);
    }

    #[test]
    fn odd_values_in_a_row_are_the_new_truth() {
        assert!((after(&[10.0, 10.0, 900.0, 900.0]) - 900.0).abs() < 1e-9);
    }

    #[test]
    fn a_cold_first_value_is_forgotten_in_a_dozen() {
        let mut values = vec![1_000_000.0];
        values.extend([100.0; 24]);
        assert!(after(&values) < 130.0);
    }
}
