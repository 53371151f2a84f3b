//! Converts decimal text to binary numbers, correctly rounded.
//!
//! Most bodies are floats with 16 to 19 digits, since Python prints a float32 as the float64 it widens to. For these,
//! eight digits are parsed at a time and multiplied by a power of ten in `f64`. The error of that product is at most
//! three units in the last place: far less than affects its rounding to a narrower type, unless it lies right at the
//! midpoint between two values of that type. Only those take the slow path through the standard library.
#![allow(
    clippy::inline_always,
    reason = "as a call it takes half as long again: the parts would go through memory"
)]

use std::cmp::Ordering;

use super::JsonError;
use super::digits::{DecimalParts, any, common, split_number};

/// Distance from a midpoint, in units in the last place, below which the fast path is not trusted; the proven error is
/// three.
const ERROR_MARGIN: u64 = 8;

/// Powers of ten, rounded to `f64`.
const POWERS: [f64; 141] = [
    1e-80, 1e-79, 1e-78, 1e-77, 1e-76, 1e-75, 1e-74, 1e-73, 1e-72, 1e-71, 1e-70, 1e-69, 1e-68, 1e-67, 1e-66,
    1e-65, 1e-64, 1e-63, 1e-62, 1e-61, 1e-60, 1e-59, 1e-58, 1e-57, 1e-56, 1e-55, 1e-54, 1e-53, 1e-52, 1e-51,
    1e-50, 1e-49, 1e-48, 1e-47, 1e-46, 1e-45, 1e-44, 1e-43, 1e-42, 1e-41, 1e-40, 1e-39, 1e-38, 1e-37, 1e-36,
    1e-35, 1e-34, 1e-33, 1e-32, 1e-31, 1e-30, 1e-29, 1e-28, 1e-27, 1e-26, 1e-25, 1e-24, 1e-23, 1e-22, 1e-21,
    1e-20, 1e-19, 1e-18, 1e-17, 1e-16, 1e-15, 1e-14, 1e-13, 1e-12, 1e-11, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6,
    1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13,
    1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22, 1e23, 1e24, 1e25, 1e26, 1e27, 1e28, 1e29, 1e30,
    1e31, 1e32, 1e33, 1e34, 1e35, 1e36, 1e37, 1e38, 1e39, 1e40, 1e41, 1e42, 1e43, 1e44, 1e45, 1e46, 1e47,
    1e48, 1e49, 1e50, 1e51, 1e52, 1e53, 1e54, 1e55, 1e56, 1e57, 1e58, 1e59, 1e60,
];
const LOWEST_POWER: i32 = -80;

/// A narrower floating-point format.
#[derive(Clone, Copy)]
struct FloatFormat {
    /// Fraction bits.
    fraction: u32,
    /// Exponent bias.
    bias: i64,
    /// Bits of infinity.
    infinity: u16,
}

const HALF: FloatFormat = FloatFormat { fraction: 10, bias: 15, infinity: 0x7c00 };
const BFLOAT: FloatFormat = FloatFormat { fraction: 7, bias: 127, infinity: 0x7f80 };

/// Bits of the `f32` nearest to a product, if it is certain.
#[inline]
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "that is what rounding is")]
fn narrow_f32(mantissa: u64, power: f64) -> Option<u32> {
    let product = mantissa as f64 * power;
    let dropped = product.to_bits() & 0x1fff_ffff;
    if dropped.wrapping_sub(0x1000_0000 - ERROR_MARGIN) <= 2 * ERROR_MARGIN
        || product < f64::from(f32::MIN_POSITIVE)
    {
        return (mantissa == 0).then_some(0);
    }
    let narrow = product as f32;
    narrow.is_finite().then_some(narrow.to_bits())
}

/// The `f32` at `at` and where it ends.
#[inline(always)]
pub(super) fn read_f32(text: &[u8], at: usize) -> Result<(f32, usize), JsonError> {
    if let Some(parts) = common(text, at)
        && let Some(value) = quick_f32(&parts)
    {
        return Ok((value, parts.end));
    }
    slow_f32(text, at)
}

#[inline(always)]
fn quick_f32(parts: &DecimalParts) -> Option<f32> {
    let bits = narrow_f32(parts.mantissa, power_of(parts)?)?;
    Some(f32::from_bits(bits | u32::from(parts.negative) << 31))
}

#[inline(never)]
fn slow_f32(text: &[u8], at: usize) -> Result<(f32, usize), JsonError> {
    let parts = any(text, at)?;
    let value = match quick_f32(&parts) {
        Some(value) => value,
        None => {
            literal(text, at, parts.end).and_then(|text| text.parse().ok()).ok_or(JsonError::NotANumber)?
        }
    };
    if value.is_finite() { Ok((value, parts.end)) } else { Err(JsonError::OutOfRange) }
}

/// The `f64` at `at` and where it ends.
#[allow(clippy::cast_precision_loss, reason = "a mantissa below 2^53 loses nothing")]
pub(super) fn read_f64(text: &[u8], at: usize) -> Result<(f64, usize), JsonError> {
    const EXACT_POWER: i32 = 22;
    let parts = split_number(text, at)?;
    let value = if parts.exact && parts.mantissa <= 1 << 53 && parts.exponent.abs() <= EXACT_POWER {
        // Mantissa and power are both exact, so there is only one rounding.
        let power = power_at(parts.exponent.abs()).ok_or(JsonError::NotANumber)?;
        let magnitude = parts.mantissa as f64;
        let magnitude = if parts.exponent < 0 { magnitude / power } else { magnitude * power };
        if parts.negative { -magnitude } else { magnitude }
    } else {
        literal(text, at, parts.end).and_then(|text| text.parse().ok()).ok_or(JsonError::NotANumber)?
    };
    if value.is_finite() { Ok((value, parts.end)) } else { Err(JsonError::OutOfRange) }
}

/// Bits of the half float at `at` and where it ends.
pub(super) fn read_f16(text: &[u8], at: usize) -> Result<(u16, usize), JsonError> {
    read_short(text, at, HALF)
}

/// Bits of the bfloat at `at` and where it ends.
pub(super) fn read_bf16(text: &[u8], at: usize) -> Result<(u16, usize), JsonError> {
    read_short(text, at, BFLOAT)
}

#[allow(clippy::cast_precision_loss, reason = "the error is accounted for")]
fn read_short(text: &[u8], at: usize, format: FloatFormat) -> Result<(u16, usize), JsonError> {
    let parts = split_number(text, at)?;
    let bits = match power_of(&parts).map(|power| format.round(parts.mantissa as f64 * power)) {
        Some(rounded) if rounded.from_middle > ERROR_MARGIN || parts.mantissa == 0 => rounded.bits,
        _ => {
            // Round to the nearest f64 first. A second rounding is wrong only at a midpoint.
            let text = literal(text, at, parts.end).ok_or(JsonError::NotANumber)?;
            let text = text.strip_prefix('-').unwrap_or(text);
            let near: f64 = text.parse().map_err(|_| JsonError::NotANumber)?;
            let rounded = format.round(near);
            if rounded.from_middle > 0 {
                rounded.bits
            } else {
                match against(&parts, text, near) {
                    Ordering::Less => rounded.below,
                    Ordering::Equal => rounded.bits,
                    Ordering::Greater => rounded.below + 1,
                }
            }
        }
    };
    let bits =
        u16::try_from(bits).ok().filter(|bits| *bits < format.infinity).ok_or(JsonError::OutOfRange)?;
    Ok((bits | u16::from(parts.negative) << 15, parts.end))
}

/// A magnitude rounded to a narrower format.
struct Rounded {
    /// Rounded to the nearest, ties to even.
    bits: u64,
    /// Rounded towards zero.
    below: u64,
    /// Distance from the midpoint between `below` and the next value, in units of the wide number's last place.
    from_middle: u64,
}

impl FloatFormat {
    /// Rounds a magnitude, which may be infinite but not negative.
    #[allow(clippy::cast_possible_wrap, clippy::cast_sign_loss, reason = "exponents are small")]
    fn round(self, wide: f64) -> Rounded {
        const WIDE: u32 = 52;
        let wide = wide.to_bits();
        let exponent = (wide >> WIDE) as i64 - 1023 + self.bias;
        let mantissa = wide & ((1 << WIDE) - 1) | 1 << WIDE;
        // Below the smallest normal number each step down costs one more bit.
        let shift = WIDE - self.fraction + (1 - exponent).clamp(0, 64) as u32;
        let kept = mantissa.unbounded_shr(shift);
        let dropped = mantissa & (1_u64.unbounded_shl(shift)).wrapping_sub(1);
        let middle = 1_u64.unbounded_shl(shift - 1);
        let below = kept + ((exponent.max(1) as u64 - 1) << self.fraction);
        let up = dropped > middle || dropped == middle && below & 1 == 1;
        // Where no bit of the mantissa reaches the middle, the number is surely nearer to zero.
        let (up, from_middle) =
            if shift > WIDE + 2 { (false, u64::MAX) } else { (up, dropped.abs_diff(middle)) };
        Rounded { bits: below + u64::from(up), below, from_middle }
    }
}

/// Compares the exact value of an unsigned literal with the number it was rounded to.
fn against(parts: &DecimalParts, literal: &str, rounded: f64) -> Ordering {
    if let Some(order) = against_in_integers(parts, rounded) {
        return order;
    }
    // 800 digits are more than any f64 has.
    let exact = format!("{rounded:.800e}");
    let (left, right) = (DecimalDigits::of(literal), DecimalDigits::of(&exact));
    left.exponent.cmp(&right.exponent).then_with(|| left.digits.cmp(&right.digits))
}

/// [`against`] for small numbers: both are scaled to integers.
fn against_in_integers(parts: &DecimalParts, rounded: f64) -> Option<Ordering> {
    if !parts.exact {
        return None;
    }
    let bits = rounded.to_bits();
    let mantissa = bits & ((1 << 52) - 1) | 1 << 52;
    let zeros = mantissa.trailing_zeros();
    let power_of_two = i32::try_from(bits >> 52).ok()? - 1075 + i32::try_from(zeros).ok()?;
    let scaled = |value: u64, ten: i32, two: i32| {
        let tens = 10_u128.checked_pow(u32::try_from(ten.max(0)).ok()?)?;
        let twos = 2_u128.checked_pow(u32::try_from(two.max(0)).ok()?)?;
        u128::from(value).checked_mul(tens)?.checked_mul(twos)
    };
    let left = scaled(parts.mantissa, parts.exponent, -power_of_two)?;
    let right = scaled(mantissa >> zeros, -parts.exponent, power_of_two)?;
    Some(left.cmp(&right))
}

/// Digits from the first to the last that is not zero, as a fraction times ten to the exponent.
struct DecimalDigits {
    digits: Vec<u8>,
    exponent: i64,
}

impl DecimalDigits {
    fn of(literal: &str) -> Self {
        let (number, power) = literal.split_once(['e', 'E']).unwrap_or((literal, "0"));
        let (before, after) = number.split_once('.').unwrap_or((number, ""));
        let mut digits: Vec<u8> = before.bytes().chain(after.bytes()).collect();
        let zeros = digits.iter().take_while(|digit| **digit == b'0').count();
        digits.drain(..zeros);
        while digits.last() == Some(&b'0') {
            digits.pop();
        }
        let position =
            i64::try_from(before.len()).unwrap_or(i64::MAX) - i64::try_from(zeros).unwrap_or(i64::MAX);
        Self { digits, exponent: position.saturating_add(power.parse().unwrap_or(0)) }
    }
}

/// Parses the integer at `at` and returns where it ends.
#[inline(always)]
pub(super) fn read_integer<T: TryFrom<i64> + TryFrom<u64>>(
    text: &[u8],
    at: usize,
) -> Result<(T, usize), JsonError> {
    match common(text, at).filter(|parts| parts.whole) {
        Some(parts) => Ok((signed(parts.negative, parts.mantissa)?, parts.end)),
        None => slow_integer(text, at),
    }
}

#[inline(never)]
fn slow_integer<T: TryFrom<i64> + TryFrom<u64>>(text: &[u8], at: usize) -> Result<(T, usize), JsonError> {
    let parts = any(text, at)?;
    if !parts.whole {
        return Err(JsonError::NotWhole);
    }
    let magnitude = if parts.exact {
        parts.mantissa
    } else {
        let digits = literal(text, at + usize::from(parts.negative), parts.end);
        digits.and_then(|digits| digits.parse().ok()).ok_or(JsonError::OutOfRange)?
    };
    Ok((signed(parts.negative, magnitude)?, parts.end))
}

#[inline(always)]
fn signed<T: TryFrom<i64> + TryFrom<u64>>(negative: bool, magnitude: u64) -> Result<T, JsonError> {
    let value = if negative {
        0_i64.checked_sub_unsigned(magnitude).and_then(|value| T::try_from(value).ok())
    } else {
        T::try_from(magnitude).ok()
    };
    value.ok_or(JsonError::OutOfRange)
}

/// The power of ten of a number with a known mantissa, if it is in the table.
#[inline]
fn power_of(parts: &DecimalParts) -> Option<f64> {
    if parts.exact { power_at(parts.exponent) } else { None }
}

#[inline]
fn power_at(exponent: i32) -> Option<f64> {
    POWERS.get(usize::try_from(exponent.checked_sub(LOWEST_POWER)?).ok()?).copied()
}

fn literal(text: &[u8], from: usize, to: usize) -> Option<&str> {
    std::str::from_utf8(text.get(from..to)?).ok()
}
