//! Parses digits eight at a time, and splits numbers into their parts.
#![allow(
    clippy::inline_always,
    reason = "as a call it takes half as long again: the parts would go through memory"
)]

use super::JsonError;
use cudock_base::bug::Parts;

/// A parsed number: `mantissa` times ten to the `exponent`.
#[derive(Clone, Copy, Debug)]
pub(super) struct DecimalParts {
    pub(super) negative: bool,
    /// Its digits as one number, if [`DecimalParts::exact`].
    pub(super) mantissa: u64,
    /// The power of ten.
    pub(super) exponent: i32,
    /// Whether all significant digits are in the mantissa. Twenty and more may not fit.
    pub(super) exact: bool,
    /// Whether it is an integer literal.
    pub(super) whole: bool,
    pub(super) end: usize,
}

/// Number of digits that always fit into a `u64`.
const ROOM: usize = 19;

/// Exponents beyond this are equivalent: zero, or out of range.
const FAR: i32 = 99_999;

/// Splits the number at `at`. The text may end anywhere.
pub(super) fn split_number(text: &[u8], at: usize) -> Result<DecimalParts, JsonError> {
    if let Some(parts) = common(text, at) { Ok(parts) } else { any(text, at) }
}

/// [`split_number`] for what nearly all numbers are: up to seven digits, and up to 23 after the point. There must be text
/// enough behind it that no end has to be looked for.
#[inline(always)]
pub(super) fn common(text: &[u8], at: usize) -> Option<DecimalParts> {
    let negative = text.get(at) == Some(&b'-');
    let first = at + usize::from(negative);
    let window: &[u8; 8] = text.get(first..)?.first_chunk()?;
    let (before, mut mantissa) = if window[1] == b'.' {
        (1, u64::from(window[0].wrapping_sub(b'0')))
    } else {
        let digits = Eight::load(*window);
        let count = digits.count();
        (count, digits.first(count))
    };
    let is_digit = window[0].wrapping_sub(b'0') <= 9;
    let leading_zero = window[0] == b'0';
    if !is_digit || before == 8 || leading_zero && before > 1 {
        return None;
    }
    let mut end = first + before as usize;
    let (mut exponent, mut whole) = (0, true);
    if text.get(end) == Some(&b'.') {
        let after;
        (mantissa, after) = fraction(text.get(end + 1..)?.first_chunk()?, mantissa);
        if after == 0 || before + after > 19 + u32::from(leading_zero) {
            return None;
        }
        (exponent, whole) = (-after.cast_signed(), false);
        end += 1 + after as usize;
    }
    if text.get(end).is_some_and(|byte| byte | 0x20 == b'e') {
        let (power, after) = power(text, end + 1).ok()?;
        (exponent, end, whole) = (exponent + power, after, false);
    }
    Some(DecimalParts { negative, mantissa, exponent, exact: true, whole, end })
}

/// The digits at the beginning of a text, put behind `mantissa`, and how many they are. More than 19 in all wrap
/// around.
#[inline(always)]
fn fraction(text: &[u8; 24], mantissa: u64) -> (u64, u32) {
    const EIGHT: u64 = 100_000_000;
    let (chunks, _) = text.as_chunks();
    let &[first, second, third] = chunks else { return (mantissa, 0) };
    let first = Eight::load(first);
    if !first.all_digits() {
        let count = first.count();
        return (join(mantissa, first, count), count);
    }
    let mantissa = mantissa * EIGHT + first.value();
    let second = Eight::load(second);
    if !second.all_digits() {
        let count = second.count();
        return (join(mantissa, second, count), 8 + count);
    }
    let mantissa = mantissa.wrapping_mul(EIGHT).wrapping_add(second.value());
    let third = Eight::load(third);
    let count = third.count();
    (join(mantissa, third, count), 16 + count)
}

/// Some of eight digits, put behind `mantissa`.
#[inline(always)]
fn join(mantissa: u64, eight: Eight, count: u32) -> u64 {
    mantissa.wrapping_mul(ten_to(count)).wrapping_add(eight.first(count))
}

/// [`split_number`] for whatever there is.
#[inline(never)]
pub(super) fn any(text: &[u8], at: usize) -> Result<DecimalParts, JsonError> {
    let negative = text.get(at) == Some(&b'-');
    let first = at + usize::from(negative);
    let (mut mantissa, mut end) = digits(text, first, 0);
    let before_point = end - first;
    if before_point == 0 {
        return Err(JsonError::NotANumber);
    }
    if before_point > 1 && text.get(first) == Some(&b'0') {
        return Err(JsonError::LeadingZero);
    }
    let (mut exponent, mut whole) = (0_i32, true);
    let mut count = before_point;
    if text.get(end) == Some(&b'.') {
        let from = end + 1;
        (mantissa, end) = digits(text, from, mantissa);
        let after_point = end - from;
        if after_point == 0 {
            return Err(JsonError::NoDigits);
        }
        count += after_point;
        exponent = -i32::try_from(after_point).unwrap_or(FAR).min(FAR);
        whole = false;
    }
    let exact = count <= ROOM || count - leading_zeros(text, first, end) <= ROOM;
    if let Some(b'e' | b'E') = text.get(end) {
        let (power, after) = power(text, end + 1)?;
        (exponent, end, whole) = (exponent.saturating_add(power), after, false);
    }
    Ok(DecimalParts { negative, mantissa, exponent, exact, whole, end })
}

/// The digits from `at` on, put behind `mantissa`, and where they end. Too many wrap around.
fn digits(text: &[u8], mut at: usize, mut mantissa: u64) -> (u64, usize) {
    while let Some(chunk) = text.get(at..).and_then(<[u8]>::first_chunk) {
        let eight = Eight::load(*chunk);
        let count = eight.count();
        mantissa = join(mantissa, eight, count);
        at += count as usize;
        if count < 8 {
            return (mantissa, at);
        }
    }
    while let Some(digit) = text.get(at).map(|byte| byte.wrapping_sub(b'0')).filter(|digit| *digit <= 9) {
        mantissa = mantissa.wrapping_mul(10).wrapping_add(u64::from(digit));
        at += 1;
    }
    (mantissa, at)
}

/// Zeros before the first digit that counts; the point among them is not a digit.
fn leading_zeros(text: &[u8], from: usize, to: usize) -> usize {
    let digits = text.part(from..to);
    digits.iter().take_while(|byte| matches!(byte, b'0' | b'.')).filter(|byte| **byte == b'0').count()
}

/// The power of ten after an `e`, and where it ends.
fn power(text: &[u8], mut at: usize) -> Result<(i32, usize), JsonError> {
    let negative = text.get(at) == Some(&b'-');
    at += usize::from(matches!(text.get(at), Some(b'-' | b'+')));
    let (first, mut power) = (at, 0_i32);
    while let Some(digit) = text.get(at).map(|byte| byte.wrapping_sub(b'0')).filter(|digit| *digit <= 9) {
        power = (power * 10 + i32::from(digit)).min(FAR);
        at += 1;
    }
    if at == first {
        return Err(JsonError::NoDigits);
    }
    Ok((if negative { -power } else { power }, at))
}

/// Ten to the power of up to eight.
fn ten_to(count: u32) -> u64 {
    const POWERS: [u64; 9] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];
    POWERS.get(count as usize).copied().unwrap_or(0)
}

/// Eight bytes of text, each as the digit it would be; the first is the lowest.
#[derive(Clone, Copy)]
struct Eight(u64);

impl Eight {
    #[inline(always)]
    fn load(bytes: [u8; 8]) -> Self {
        Self(u64::from_le_bytes(bytes) ^ 0x3030_3030_3030_3030)
    }

    /// A bit in every byte that is not a digit. Bytes after the first one may be wrong.
    #[inline(always)]
    fn others(self) -> u64 {
        (self.0.wrapping_add(0x7676_7676_7676_7676) | self.0) & 0x8080_8080_8080_8080
    }

    #[inline(always)]
    fn all_digits(self) -> bool {
        self.others() == 0
    }

    /// How many digits come before the first other byte; eight if all are digits.
    #[inline(always)]
    fn count(self) -> u32 {
        self.others().trailing_zeros() / 8
    }

    /// The number that the first `count` digits make.
    #[inline(always)]
    fn first(self, count: u32) -> u64 {
        Self(self.0.unbounded_shl(64 - 8 * count)).value()
    }

    /// The number that eight digits make: neighbors are joined to pairs, pairs to fours, fours to eight.
    #[inline(always)]
    fn value(self) -> u64 {
        let pairs = self.0.wrapping_mul(10).wrapping_add(self.0 >> 8);
        let even = (pairs & 0x0000_00ff_0000_00ff).wrapping_mul(0x000f_4240_0000_0064);
        let odd = ((pairs >> 16) & 0x0000_00ff_0000_00ff).wrapping_mul(0x0000_2710_0000_0001);
        even.wrapping_add(odd) >> 32
    }
}
