//! Exact fractions, for speeds and shares of time.

use std::cmp::Ordering;

/// A fraction of whole numbers. A denominator of zero stands for no bound at all.
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

    /// How long `time` takes at this speed, rounded up; none at no speed.
    pub(crate) fn stretch(self, time: u128) -> Option<u128> {
        (self.num > 0).then(|| mul_div_ceil(time, u128::from(self.den), u128::from(self.num)))
    }

    /// So many at this speed, rounded down.
    pub(crate) fn scale(self, count: u128) -> u128 {
        count.saturating_mul(u128::from(self.num)) / u128::from(self.den).max(1)
    }

    pub(crate) fn at_most(self, other: Self) -> Self {
        let (mine, others) =
            (u128::from(self.num) * u128::from(other.den), u128::from(other.num) * u128::from(self.den));
        if mine.cmp(&others) == Ordering::Greater { other } else { self }
    }
}

/// `a * b / c` rounded up, the largest number if it does not fit or `c` is zero.
pub(crate) fn mul_div_ceil(a: u128, b: u128, c: u128) -> u128 {
    match (a.checked_mul(b), c) {
        (_, 0) => u128::MAX,
        (Some(product), _) => product.div_ceil(c),
        (None, _) => wide_mul_div_ceil(a, b, c),
    }
}

/// The same where the product does not fit: `b` bit by bit, with quotient and rest kept apart.
fn wide_mul_div_ceil(a: u128, b: u128, c: u128) -> u128 {
    let (whole, part) = (a / c, a % c);
    let (mut quotient, mut rest) = (Some(0_u128), 0_u128);
    for bit in (0..128).rev() {
        // Both double, and `a` is added where the bit is set; the rest stays below `c`.
        let (twice, carried) = added(rest, rest, c);
        let (sum, more) = if b >> bit & 1 == 1 { added(twice, part, c) } else { (twice, 0) };
        let step = if b >> bit & 1 == 1 { whole } else { 0 };
        rest = sum;
        quotient = quotient
            .and_then(|quotient| quotient.checked_mul(2)?.checked_add(carried + more)?.checked_add(step));
    }
    quotient.and_then(|quotient| quotient.checked_add(u128::from(rest > 0))).unwrap_or(u128::MAX)
}

/// The sum of two numbers below `c`, as a number below `c` and how often `c` was taken off.
fn added(a: u128, b: u128, c: u128) -> (u128, u128) {
    let left = c - b;
    if a >= left { (a - left, 1) } else { (a + b, 0) }
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
    fn the_smaller_of_two_fractions_is_found_without_dividing() {
        let (third, half) = (Ratio::new(1, 3), Ratio::new(2, 4));
        assert_eq!(third.at_most(half), third);
        assert_eq!(half.at_most(third), third);
        assert_eq!(Ratio::new(7, 1).at_most(Ratio::new(u64::MAX, 1)), Ratio::new(7, 1));
    }

    #[test]
    fn a_product_that_does_not_fit_is_divided_exactly() {
        // 2^127 x 6 / 8 = 3 x 2^125; one more in the product rounds up.
        assert_eq!(mul_div_ceil(1 << 127, 6, 8), 3 << 125);
        assert_eq!(mul_div_ceil(u128::MAX, u128::MAX, u128::MAX), u128::MAX);
        assert_eq!(mul_div_ceil((1 << 127) + 1, 6, 8), (3 << 125) + 1);
    }

    #[test]
    fn too_much_stays_the_largest_number() {
        assert_eq!(mul_div_ceil(u128::MAX, 2, 1), u128::MAX);
        assert_eq!(mul_div_ceil(u128::MAX, 2, 2), u128::MAX);
        assert_eq!(mul_div_ceil(u128::MAX, 3, 2), u128::MAX);
        assert_eq!(mul_div_ceil(5, 5, 0), u128::MAX);
    }
}
