//! Axes: maps values to positions.

use cudock_base::svg::round_values;

/// An axis: the range of values and of positions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Scale {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
    logarithmic: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tick {
    pub(super) position: f64,
    pub(super) value: f64,
    pub(super) labeled: bool,
}

impl Scale {
    /// A linear axis that starts at zero.
    pub(super) fn linear(high: f64, from: f64, to: f64) -> Self {
        let high = if high > 0.0 && high.is_finite() { high } else { 1.0 };
        Self { low: 0.0, high, from, to, logarithmic: false }
    }

    /// A logarithmic axis; the ends are extended to the next of 1, 2 and 5.
    pub(super) fn logarithmic(low: f64, high: f64, from: f64, to: f64) -> Self {
        let (low, high) =
            if low > 0.0 && high >= low && high.is_finite() { (low, high) } else { (1.0, 10.0) };
        let steps = round_values(low / 10.0, high * 10.0);
        let low = steps.iter().copied().rfind(|step| *step <= low * 1.000_001).unwrap_or(low);
        let above = steps.iter().copied().find(|step| *step >= high * 0.999_999).unwrap_or(high);
        let high = if above > low { above } else { low * 2.0 };
        Self { low, high, from, to, logarithmic: true }
    }

    /// The position of a value, clamped to the ends.
    pub(super) fn position(&self, value: f64) -> f64 {
        let value = value.clamp(self.low, self.high);
        let share = if self.logarithmic {
            (value / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        self.from + share * (self.to - self.from)
    }

    /// Ticks at round values, about `count` of them with a label.
    pub(super) fn ticks(&self, count: f64) -> Vec<Tick> {
        let tick = |value: f64, labeled| Tick { position: self.position(value), value, labeled };
        if self.logarithmic {
            let values = round_values(self.low, self.high);
            // With many decades only their starts are labeled.
            let few = (self.high / self.low).log10() <= count / 3.0;
            return values
                .into_iter()
                .map(|value| tick(value, few || (value.log10() - value.log10().round()).abs() < 1e-6))
                .collect();
        }
        let step = round_up(self.high / count);
        (0..1000)
            .map(|number| f64::from(number) * step)
            .take_while(|value| *value <= self.high * 1.000_001)
            .map(|value| tick(value, true))
            .collect()
    }
}

/// The next of 1, 2 and 5 times a power of ten.
pub(super) fn round_up(value: f64) -> f64 {
    if value <= 0.0 || !value.is_finite() {
        return 1.0;
    }
    round_values(value, value * 10.0).first().copied().unwrap_or(value)
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
        let scale = Scale::logarithmic(0.1, 100.0, 0.0, 300.0);
        for (value, position) in [(0.1, 0.0), (1.0, 100.0), (10.0, 200.0), (100.0, 300.0), (1e9, 300.0)] {
            assert!((scale.position(value) - position).abs() < 1e-3, "{value}: {}", scale.position(value));
        }
        assert_eq!(scale.ticks(6.0).iter().filter(|tick| tick.labeled).count(), 4);
        let narrow = Scale::logarithmic(3.0, 4.0, 0.0, 1.0);
        assert_eq!((narrow.ticks(6.0).first().unwrap().value, narrow.ticks(6.0).len()), (2.0, 2));
    }

    #[test]
    fn a_linear_axis_begins_at_zero() {
        let scale = Scale::linear(950.0, 100.0, 0.0);
        let ticks: Vec<f64> = scale.ticks(5.0).iter().map(|tick| tick.value).collect();
        assert_eq!(ticks, [0.0, 200.0, 400.0, 600.0, 800.0]);
        assert!((scale.position(0.0) - 100.0).abs() < 1e-9);
    }

    #[test]
    fn values_that_are_none_do_no_harm() {
        for scale in [
            Scale::linear(f64::NAN, 0.0, 1.0),
            Scale::logarithmic(0.0, 0.0, 0.0, 1.0),
            Scale::logarithmic(5.0, 5.0, 0.0, 1.0),
        ] {
            assert!(scale.ticks(5.0).iter().all(|tick| tick.position.is_finite()));
            assert!(scale.position(3.0).is_finite());
        }
    }
}
