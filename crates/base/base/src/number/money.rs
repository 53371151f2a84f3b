//! US dollars without floats: one exact type for prices, meters, costs and budgets.

use std::borrow::Cow;
use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign};
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};

use crate::number::arithmetic::mul_div_ceil;
use crate::text::is_digits;

/// Decimals that a billionth of a dollar has.
const DECIMALS: u32 = 9;
const NANOS_PER_DOLLAR: u128 = 10_u128.pow(DECIMALS);
const NANOS_PER_CENT: u128 = NANOS_PER_DOLLAR / 100;
/// The largest amount that is read from text: no price has ten digits before the point.
const MAX_READ: u128 = 1_000_000_000 * NANOS_PER_DOLLAR - 1;

/// An amount of US dollars in whole billionths. It is never negative; arithmetic is exact and saturates.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Usd {
    nanos: u128,
}

/// Why a text is not an amount; shown after the text itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UsdError {
    #[error("is not a number")]
    NotANumber,
    #[error("is negative")]
    Negative,
    #[error("is larger than any price")]
    TooLarge,
    #[error("has more than nine decimals")]
    TooPrecise,
}

impl Usd {
    pub const ZERO: Self = Self { nanos: 0 };

    /// Converts from billionths of a dollar.
    #[inline]
    pub const fn from_nanos(nanos: u128) -> Self {
        Self { nanos }
    }

    /// Converts from millionths of a dollar.
    pub const fn from_micros(micros: u64) -> Self {
        Self { nanos: micros as u128 * 1000 }
    }

    pub const fn from_cents(cents: u64) -> Self {
        Self { nanos: cents as u128 * NANOS_PER_CENT }
    }

    /// The billionth nearest to a float; none if it is negative, not finite or above a billion dollars.
    pub fn nearest(usd: f64) -> Option<Self> {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range is checked")]
        (0.0..=1e9).contains(&usd).then(|| Self { nanos: (usd * 1e9).round() as u128 })
    }

    /// Reads a number as JSON writes it (`0.658`, `3.4E-05`), rounded half up to `decimals` places; nine are kept at most.
    /// Also returns whether digits were rounded away.
    pub fn parse_rounded(text: &str, decimals: u32) -> Result<(Self, bool), UsdError> {
        let negative = text.starts_with('-');
        let text = text.strip_prefix('-').unwrap_or(text);
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, parse_exponent(exponent)?),
            None => (text, 0),
        };
        let (whole, fraction) = match mantissa.split_once('.') {
            Some((_, "")) => return Err(UsdError::NotANumber),
            Some(parts) => parts,
            None => (mantissa, ""),
        };
        if whole.is_empty() || !is_digits(whole) || !is_digits(fraction) {
            return Err(UsdError::NotANumber);
        }
        let digits = format!("{whole}{fraction}");
        let digits = digits.trim_start_matches('0');
        if digits.is_empty() {
            return Ok((Self::ZERO, false));
        }
        if negative {
            return Err(UsdError::Negative);
        }
        let decimals = decimals.min(DECIMALS);
        let places = i64::try_from(fraction.len()).unwrap_or(i64::MAX).saturating_sub(exponent);
        // How many digits are rounded away; if negative, how many zeros are missing.
        let excess = places.saturating_sub(i64::from(decimals));
        let cut = usize::try_from(excess).unwrap_or(0);
        let (kept, lost) = match digits.len().checked_sub(cut) {
            Some(at) => digits.split_at(at),
            None => return Ok((Self::ZERO, true)),
        };
        let missing = usize::try_from(excess.saturating_neg()).unwrap_or(0);
        let zeros = missing.saturating_add(usize::try_from(DECIMALS - decimals).unwrap_or(0));
        if kept.len().saturating_add(zeros) > 20 {
            return Err(UsdError::TooLarge);
        }
        let nanos: u128 = format!("0{kept}{:0<zeros$}", "").parse().map_err(|_| UsdError::TooLarge)?;
        let round_up = lost.starts_with(['5', '6', '7', '8', '9']);
        let nanos = nanos + if round_up { 10_u128.pow(DECIMALS - decimals) } else { 0 };
        if nanos > MAX_READ {
            return Err(UsdError::TooLarge);
        }
        Ok((Self { nanos }, lost.contains(|digit| digit != '0')))
    }

    /// Billionths of a dollar.
    #[inline]
    pub const fn nanos(self) -> u128 {
        self.nanos
    }

    /// The amount in cents, rounded half up.
    pub const fn cents(self) -> u128 {
        self.nanos.saturating_add(NANOS_PER_CENT / 2) / NANOS_PER_CENT
    }

    #[inline]
    #[must_use]
    pub const fn times(self, count: u64) -> Self {
        Self { nanos: self.nanos.saturating_mul(count as u128) }
    }

    /// `numerator / denominator` of the amount, rounded up to a billionth; zero if the denominator is zero.
    #[inline]
    #[must_use]
    pub fn share(self, numerator: u128, denominator: u128) -> Self {
        if denominator == 0 {
            return Self::ZERO;
        }
        Self { nanos: mul_div_ceil(self.nanos, numerator, denominator) }
    }

    /// The difference, or zero if `other` is larger.
    #[inline]
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self { nanos: self.nanos.saturating_sub(other.nanos) }
    }

    /// The amount for people: two decimals from a cent on, below that as many as show two significant digits.
    pub fn rounded(self) -> String {
        if self.nanos >= NANOS_PER_CENT || self.nanos == 0 {
            let cents = self.cents();
            return format!("{}.{:02}", cents / 100, cents % 100);
        }
        let digits = format!("{:09}", self.nanos);
        let first = digits.find(|digit| digit != '0').unwrap_or(0);
        format!("0.{}", digits.get(..first + 2).unwrap_or(&digits))
    }
}

/// An exponent; one that no number of digits makes up for is clamped.
fn parse_exponent(text: &str) -> Result<i64, UsdError> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !is_digits(digits) {
        return Err(UsdError::NotANumber);
    }
    let limit = i64::from(i32::MAX);
    let size = digits.parse().map_or(limit, |size: i64| size.min(limit));
    Ok(if text.starts_with('-') { -size } else { size })
}

/// Plain decimals, as tables write prices: no sign, no exponent, and no digit that would be lost.
impl FromStr for Usd {
    type Err = UsdError;

    fn from_str(text: &str) -> Result<Self, UsdError> {
        if text.contains(['e', 'E', '-']) {
            return Err(UsdError::NotANumber);
        }
        match Self::parse_rounded(text, DECIMALS)? {
            (amount, false) => Ok(amount),
            (_, true) => Err(UsdError::TooPrecise),
        }
    }
}

/// All digits, and at least two decimals.
impl fmt::Display for Usd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, fraction) = (self.nanos / NANOS_PER_DOLLAR, self.nanos % NANOS_PER_DOLLAR);
        let fraction = format!("{fraction:09}");
        write!(f, "{whole}.{:0<2}", fraction.trim_end_matches('0'))
    }
}

/// A decimal number of dollars.
impl Serialize for Usd {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[allow(clippy::cast_precision_loss, reason = "exact below nine million dollars, 15 digits above")]
        serializer.serialize_f64(self.nanos as f64 / 1e9)
    }
}

impl JsonSchema for Usd {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Usd".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "number", "minimum": 0})
    }
}

impl Add for Usd {
    type Output = Self;

    #[inline]
    fn add(self, other: Self) -> Self {
        Self { nanos: self.nanos.saturating_add(other.nanos) }
    }
}

impl AddAssign for Usd {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sum for Usd {
    #[inline]
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::ZERO, Add::add)
    }
}

/// Amounts as decimal text in files, so that no digit is lost: `#[serde(with = "cudock_base::usd_text")]`.
pub mod usd_text {
    use serde::{Deserialize, Deserializer, Serializer, de};

    use super::Usd;
    use crate::text::truncate;

    #[allow(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
    pub fn serialize<S: Serializer>(amount: &Usd, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(amount)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Usd, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(|error| {
            de::Error::custom(format!(
                "`{}` {error}; expected an amount such as 0.000024",
                truncate(&text, 60)
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn to_micros(text: &str) -> Result<(u128, bool), UsdError> {
        Usd::parse_rounded(text, 6).map(|(amount, rounded)| (amount.nanos / 1000, rounded))
    }

    #[test]
    fn json_numbers_keep_their_digits() {
        for (text, micros) in [
            ("0.658", 658_000),
            ("0", 0),
            ("-0.0", 0),
            ("32", 32_000_000),
            ("98.32", 98_320_000),
            ("1.687039", 1_687_039),
            ("3E-06", 3),
            ("3e-6", 3),
            ("2.4E-05", 24),
            ("1.2e+1", 12_000_000),
            ("0.1000000000000000000000", 100_000),
            ("0e999999999999999999", 0),
        ] {
            assert_eq!(to_micros(text), Ok((micros, false)), "{text}");
        }
    }

    #[test]
    fn more_decimals_than_requested_are_rounded_half_up_and_reported() {
        for (text, micros) in [
            ("0.4819192", 481_919),
            ("0.0000005", 1),
            ("0.00000049999", 0),
            ("0.9999995", 1_000_000),
            ("1e-7", 0),
            ("5e-7", 1),
            ("9e-8", 0),
            ("1e-2000000000000", 0),
        ] {
            assert_eq!(to_micros(text), Ok((micros, true)), "{text}");
        }
    }

    #[test]
    fn texts_that_are_not_amounts_are_rejected() {
        for text in
            ["", "-", "\"0.5\"", "null", "NaN", "1.", ".5", "1e", "1e+", "1e1.5", "0x10", "1 2", "[1]"]
        {
            assert_eq!(to_micros(text), Err(UsdError::NotANumber), "{text}");
        }
        assert_eq!(to_micros("-0.1"), Err(UsdError::Negative));
        for text in ["1e9", "1e14", "99999999999999999999", "1e99999999999999999999", "999999999.9999999"] {
            assert_eq!(to_micros(text), Err(UsdError::TooLarge), "{text}");
        }
    }

    #[test]
    fn tables_hold_plain_decimals_only() {
        let nanos = |text: &str| text.parse::<Usd>().map(Usd::nanos);
        assert_eq!(nanos("0.000024"), Ok(24_000));
        assert_eq!(nanos("0.000000001"), Ok(1));
        assert_eq!(nanos("5"), Ok(5_000_000_000));
        assert_eq!(nanos("999999999.999999999"), Ok(MAX_READ));
        for wrong in
            ["", ".", "1.", ".5", "-1", "+1", "1e3", " 1", "1,5", "0.0000000001", "1000000000", "0.1.2", "１"]
        {
            assert!(nanos(wrong).is_err(), "{wrong:?}");
        }
        assert_eq!([f64::NAN, f64::INFINITY, -0.1, 1e10].map(Usd::nearest), [None; 4]);
        assert_eq!(Usd::nearest(0.018_032), Some(Usd::from_nanos(18_032_000)));
    }

    #[test]
    fn amounts_are_shown_exactly_or_rounded() {
        for (nanos, exact, rounded) in [
            (0, "0.00", "0.00"),
            (24_000, "0.000024", "0.000024"),
            (1_230_000, "0.00123", "0.0012"),
            (9_999_999, "0.009999999", "0.0099"),
            (5, "0.000000005", "0.000000005"),
            (100_000_000, "0.10", "0.10"),
            (526_000_000, "0.526", "0.53"),
            (2_000_000_000, "2.00", "2.00"),
        ] {
            let amount = Usd::from_nanos(nanos);
            assert_eq!((amount.to_string().as_str(), amount.rounded().as_str()), (exact, rounded));
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "[-+0-9.eE]{0,40}|.{0,40}", decimals in 0_u32..12) {
            let _ = Usd::parse_rounded(&text, decimals);
        }

        #[test]
        fn the_position_of_the_point_does_not_matter(micros in 0_u64..1_000_000_000_000, at in 0_usize..14) {
            let digits = micros.to_string();
            let (whole, fraction) = digits.split_at(at.min(digits.len()));
            let power = i64::try_from(fraction.len()).unwrap() - 6;
            let text = format!("0{whole}.{fraction}0e{power:+}");
            prop_assert_eq!(Usd::parse_rounded(&text, 6), Ok((Usd::from_micros(micros), false)));
        }

        #[test]
        fn an_amount_reads_back_as_it_was_written(nanos in 0_u64..1_000_000_000_000_000_000) {
            let amount = Usd::from_nanos(u128::from(nanos));
            prop_assert_eq!(amount.to_string().parse::<Usd>(), Ok(amount));
        }
    }
}
