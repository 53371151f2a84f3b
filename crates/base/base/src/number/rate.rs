//! Rates without floats: one exact type for requests and evictions.

use std::fmt;
use std::time::Duration;

use crate::number::arithmetic::mul_div_ceil;

const SECONDS_PER_DAY: f64 = 86_400.0;
const NANOS_PER_DAY: f64 = SECONDS_PER_DAY * 1e9;

/// How often something happens, in whole billionths of a time per day. A day is a multiple of seconds, minutes and hours,
/// so a number with up to nine decimals is exact, whichever of them it is for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate {
    nanos_per_day: u128,
}

impl Rate {
    pub const ZERO: Self = Self { nanos_per_day: 0 };

    /// Converts from billionths of an event per day.
    pub const fn from_nanos_per_day(nanos_per_day: u128) -> Self {
        Self { nanos_per_day }
    }

    /// The rate nearest to `count` times in a time; none if it is negative or not finite. A rate above zero stays above
    /// zero.
    pub fn nearest(count: f64, time: Duration) -> Option<Self> {
        let nanos = count * (NANOS_PER_DAY / time.as_secs_f64());
        if !(nanos.is_finite() && nanos >= 0.0) {
            return None;
        }
        let least = u128::from(nanos > 0.0);
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "not negative, and saturates"
        )]
        Some(Self { nanos_per_day: (nanos.round() as u128).max(least) })
    }

    /// Billionths of a time per day.
    pub const fn nanos_per_day(self) -> u128 {
        self.nanos_per_day
    }

    pub const fn is_zero(self) -> bool {
        self.nanos_per_day == 0
    }

    /// How often it happens in a time, on average.
    #[allow(clippy::cast_precision_loss, reason = "15 digits are exact")]
    pub fn times_in(self, time: Duration) -> f64 {
        self.nanos_per_day as f64 / NANOS_PER_DAY * time.as_secs_f64()
    }

    /// How often it happens in a second, rounded up.
    pub fn per_second_ceil(self) -> u64 {
        const NANOS_PER_DAY: u128 = 86_400 * 1_000_000_000;
        u64::try_from(self.nanos_per_day.div_ceil(NANOS_PER_DAY)).unwrap_or(u64::MAX)
    }

    /// `numerator / denominator` of the rate, rounded up; the highest one if the denominator is zero.
    #[must_use]
    pub fn share(self, numerator: u128, denominator: u128) -> Self {
        Self { nanos_per_day: mul_div_ceil(self.nanos_per_day, numerator, denominator) }
    }
}

/// Per second, or if it happens less than once in ten seconds, per hour or per day: `5/s`, `4/h`, `0.5/d`.
impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(u64, &str); 2] = [(1, "s"), (3600, "h")];
        let (seconds, unit) = UNITS
            .into_iter()
            .find(|(seconds, _)| self.is_zero() || self.times_in(Duration::from_secs(*seconds)) >= 0.1)
            .unwrap_or((86_400, "d"));
        let count = self.times_in(Duration::from_secs(seconds));
        write!(f, "{}/{unit}", decimal(count))
    }
}

/// Three decimals at most, or as many as show three digits.
fn decimal(count: f64) -> String {
    let text = if count == 0.0 || count >= 0.001 {
        format!("{count:.3}")
    } else {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 3 to 20")]
        let digits = (2.0 - count.log10().floor()).clamp(3.0, 20.0) as usize;
        format!("{count:.digits$}")
    };
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const HOUR: Duration = Duration::from_secs(3600);
    const DAY: Duration = Duration::from_secs(86_400);

    #[test]
    fn numbers_per_second_hour_and_day_are_exact() {
        let nanos = |count, time| Rate::nearest(count, time).unwrap().nanos_per_day();
        assert_eq!(nanos(1.0, DAY), 1_000_000_000);
        assert_eq!(nanos(4.0, HOUR), 96_000_000_000);
        assert_eq!(nanos(0.2, SECOND), 17_280_000_000_000);
        assert_eq!(nanos(0.000_000_001, SECOND), 86_400);
        assert_eq!(nanos(1e6, SECOND), 86_400_000_000_000_000_000);
        // Once a year.
        assert_eq!(nanos(1.0, DAY * 365), 2_739_726);
    }

    #[test]
    fn only_what_is_not_a_rate_is_none_and_no_rate_is_rounded_to_zero() {
        for wrong in [-1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(Rate::nearest(wrong, SECOND), None);
        }
        assert_eq!(Rate::nearest(0.0, SECOND), Some(Rate::ZERO));
        assert_eq!(Rate::nearest(1e-300, SECOND), Some(Rate::from_nanos_per_day(1)));
        assert_eq!(Rate::nearest(1.0, DAY).unwrap().per_second_ceil(), 1);
        assert_eq!(Rate::nearest(500.0, SECOND).unwrap().per_second_ceil(), 500);
    }

    #[test]
    fn a_rate_is_shown_for_a_time_in_which_it_is_easy_to_imagine() {
        for (count, time, text) in [
            (0.0, SECOND, "0/s"),
            (5.0, SECOND, "5/s"),
            (20.5, SECOND, "20.5/s"),
            (0.25, SECOND, "0.25/s"),
            (1.0 / 0.7, SECOND, "1.429/s"),
            (4.0, HOUR, "4/h"),
            (0.05, SECOND, "180/h"),
            (1.0, DAY, "1/d"),
            (1.0, DAY * 365, "0.003/d"),
            (1.0, DAY * 3650, "0.000274/d"),
        ] {
            assert_eq!(Rate::nearest(count, time).unwrap().to_string(), text);
        }
    }
}
