//! Prices out of the very digits of the answer. A float cannot hold 0.658, and sums of floats are no prices.

use serde_json::value::RawValue;

/// A number in whole units of some power of ten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Exact {
    /// How many units.
    pub(crate) units: u64,
    /// Whether digits behind the last unit were rounded away, half up.
    pub(crate) rounded: bool,
}

/// Why a text is no amount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotAnAmount {
    /// Not a number of JSON.
    Number,
    /// Below zero.
    Negative,
    /// More than can be counted.
    TooLarge,
}

impl NotAnAmount {
    /// What is wrong with it, to follow the text itself.
    pub(crate) const fn words(self) -> &'static str {
        match self {
            Self::Number => "is no number",
            Self::Negative => "is below zero",
            Self::TooLarge => "is larger than any price",
        }
    }
}

/// A number of JSON in units of `10^-decimals`, rounded half up.
pub(crate) fn exact(value: &RawValue, decimals: u8) -> Result<Exact, NotAnAmount> {
    read(value.get(), decimals)
}

fn read(text: &str, decimals: u8) -> Result<Exact, NotAnAmount> {
    let (negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, power(exponent)?),
        None => (text, 0),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((_, "")) => return Err(NotAnAmount::Number),
        Some(parts) => parts,
        None => (mantissa, ""),
    };
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !is_digits(whole) || !is_digits(fraction) {
        return Err(NotAnAmount::Number);
    }
    let digits = format!("{whole}{fraction}");
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() {
        return Ok(Exact { units: 0, rounded: false });
    }
    if negative {
        return Err(NotAnAmount::Negative);
    }
    let length = |text: &str| i64::try_from(text.len()).unwrap_or(i64::MAX);
    // How many zeros the digits lack to be whole units; below zero, how many digits are too many.
    let shift = i64::from(decimals).saturating_sub(length(fraction)).saturating_add(exponent);
    if let Ok(zeros) = usize::try_from(shift) {
        if digits.len().saturating_add(zeros) > 19 {
            return Err(NotAnAmount::TooLarge);
        }
        let units = format!("{digits}{:0<zeros$}", "").parse().map_err(|_| NotAnAmount::TooLarge)?;
        return Ok(Exact { units, rounded: false });
    }
    let cut = usize::try_from(shift.unsigned_abs()).unwrap_or(usize::MAX);
    let Some(at) = digits.len().checked_sub(cut) else { return Ok(Exact { units: 0, rounded: true }) };
    let (kept, lost) = digits.split_at_checked(at).unwrap_or((digits, ""));
    let units: u64 = if kept.is_empty() { 0 } else { kept.parse().map_err(|_| NotAnAmount::TooLarge)? };
    let up = u64::from(lost.bytes().next().is_some_and(|digit| digit >= b'5'));
    Ok(Exact {
        units: units.checked_add(up).ok_or(NotAnAmount::TooLarge)?,
        rounded: lost.bytes().any(|digit| digit != b'0'),
    })
}

/// An exponent; one beyond all sense stays beyond it.
fn power(text: &str) -> Result<i64, NotAnAmount> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(NotAnAmount::Number);
    }
    let beyond = i64::from(i32::MAX);
    let size = digits.parse().map_or(beyond, |size: i64| size.min(beyond));
    Ok(if text.starts_with('-') { -size } else { size })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn micros(text: &str) -> Result<u64, NotAnAmount> {
        read(text, 6).map(|exact| exact.units)
    }

    #[test]
    fn the_digits_of_a_price_are_kept_as_they_are() {
        for (text, expected) in [
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
            let exact = read(text, 6).unwrap();
            assert_eq!((exact.units, exact.rounded), (expected, false), "{text}");
        }
    }

    #[test]
    fn more_than_six_decimals_are_rounded_half_up_and_that_is_said() {
        for (text, expected) in [
            ("0.4819192", 481_919),
            ("0.0000005", 1),
            ("0.00000049999", 0),
            ("0.9999995", 1_000_000),
            ("1e-7", 0),
            ("5e-7", 1),
            ("9e-8", 0),
            ("1e-2000000000000", 0),
        ] {
            let exact = read(text, 6).unwrap();
            assert_eq!((exact.units, exact.rounded), (expected, true), "{text}");
        }
    }

    #[test]
    fn what_is_no_price_is_refused() {
        for text in
            ["", "-", "\"0.5\"", "null", "NaN", "1.", ".5", "1e", "1e+", "1e1.5", "0x10", "1 2", "[1]"]
        {
            assert_eq!(micros(text), Err(NotAnAmount::Number), "{text}");
        }
        assert_eq!(micros("-0.1"), Err(NotAnAmount::Negative));
        for text in ["1e14", "99999999999999999999", "1e99999999999999999999", "18446744073709.6"] {
            assert_eq!(micros(text), Err(NotAnAmount::TooLarge), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "[-+0-9.eE]{0,40}|.{0,40}", decimals in 0_u8..12) {
            let _ = read(&text, decimals);
        }

        #[test]
        fn an_amount_is_the_same_wherever_its_point_stands(units in 0_u64..1_000_000_000_000, at in 0_usize..14) {
            let digits = units.to_string();
            let (whole, fraction) = digits.split_at(at.min(digits.len()));
            let power = i64::try_from(fraction.len()).unwrap() - 6;
            let text = format!("0{whole}.{fraction}0e{power:+}");
            prop_assert_eq!(read(&text, 6), Ok(Exact { units, rounded: false }));
        }
    }
}
