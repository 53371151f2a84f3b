//! Exact fractions for speeds and shares of time, and conversions to and from floats for means.

use cudock_base::mul_div_ceil;

/// A fraction of whole numbers. A denominator of zero means unbounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ratio {
    pub(crate) num: u64,
    pub(crate) den: u64,
}

impl Ratio {
    pub(crate) const ONE: Self = Self { num: 1, den: 1 };

    pub(crate) const fn new(num: u64, den: u64) -> Self {
        Self { num, den }
    }

    pub(crate) const fn is_zero(self) -> bool {
        self.num == 0
    }

    /// How long `time` takes at this speed, rounded up; none at a speed of zero.
    pub(crate) fn stretch(self, time: u128) -> Option<u128> {
        (self.num > 0).then(|| mul_div_ceil(time, u128::from(self.den), u128::from(self.num)))
    }

    /// `count` times the ratio, rounded down.
    pub(crate) fn scale(self, count: u128) -> u128 {
        count.saturating_mul(u128::from(self.num)) / u128::from(self.den).max(1)
    }

    pub(crate) fn min(self, other: Self) -> Self {
        if self.cross(other) > other.cross(self) { other } else { self }
    }

    /// Its numerator over a common denominator with another, to compare the two.
    pub(crate) fn cross(self, other: Self) -> u128 {
        u128::from(self.num) * u128::from(other.den)
    }
}

/// A count as a float, for means, which are estimates.
#[allow(clippy::cast_precision_loss, reason = "a mean is an estimate")]
pub(crate) fn float(count: u128) -> f64 {
    count as f64
}

/// The next whole number; zero for negative ones.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a cast from float saturates, and negative values become zero"
)]
pub(crate) fn round_up(count: f64) -> u128 {
    count.max(0.0).ceil() as u128
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_the_speed_takes_twice_as_long() {
        assert_eq!(Ratio::new(1, 2).stretch(100), Some(200));
        assert_eq!(Ratio::new(3, 1).stretch(100), Some(34));
        assert_eq!(Ratio::new(0, 1).stretch(100), None);
    }

    #[test]
    fn fractions_are_compared_without_dividing() {
        let (third, half) = (Ratio::new(1, 3), Ratio::new(2, 4));
        assert_eq!(third.min(half), third);
        assert_eq!(half.min(third), third);
        assert_eq!(Ratio::new(7, 1).min(Ratio::new(u64::MAX, 1)), Ratio::new(7, 1));
    }
}
