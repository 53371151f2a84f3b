//! Strings of a JSON text.

use cudock_base::bug::Parts;
use std::borrow::Cow;

use super::JsonError;

/// The string that begins at `at`, and where it ends. It is borrowed if it has no escapes.
pub(super) fn read(text: &[u8], at: usize) -> Result<(Cow<'_, str>, usize), JsonError> {
    if text.get(at) != Some(&b'"') {
        return Err(JsonError::NotAString);
    }
    let mut plain_from = at + 1;
    let mut here = plain_from;
    let mut unescaped = String::new();
    loop {
        here += text.part(here..).iter().take_while(|byte| is_plain(**byte)).count();
        let plain = text.part(plain_from..here);
        match text.get(here) {
            Some(b'"') => {
                let plain = std::str::from_utf8(plain).map_err(|_| JsonError::NotUtf8)?;
                if unescaped.is_empty() {
                    return Ok((Cow::Borrowed(plain), here + 1));
                }
                unescaped.push_str(plain);
                return Ok((Cow::Owned(unescaped), here + 1));
            }
            Some(b'\\') => {
                unescaped.push_str(std::str::from_utf8(plain).map_err(|_| JsonError::NotUtf8)?);
                let (character, end) = escape(text, here + 1)?;
                unescaped.push(character);
                (plain_from, here) = (end, end);
            }
            Some(_) => return Err(JsonError::Control),
            None => return Err(JsonError::Unterminated),
        }
    }
}

fn is_plain(byte: u8) -> bool {
    byte >= 0x20 && byte != b'"' && byte != b'\\'
}

/// The character of the escape whose backslash is before `at`, and the end of the escape.
fn escape(text: &[u8], at: usize) -> Result<(char, usize), JsonError> {
    let character = match text.get(at) {
        Some(b'"') => '"',
        Some(b'\\') => '\\',
        Some(b'/') => '/',
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(b'n') => '\n',
        Some(b'r') => '\r',
        Some(b't') => '\t',
        Some(b'u') => return unicode(text, at + 1),
        Some(_) => return Err(JsonError::Escape),
        None => return Err(JsonError::Unterminated),
    };
    Ok((character, at + 1))
}

/// The character of `\u` and four digits, or of two such for characters beyond 16 bits.
fn unicode(text: &[u8], at: usize) -> Result<(char, usize), JsonError> {
    let first = four_digits(text, at)?;
    if !(0xd800..0xe000).contains(&first) {
        return char::from_u32(first).map(|character| (character, at + 4)).ok_or(JsonError::Surrogate);
    }
    if first >= 0xdc00 || text.get(at + 4..at + 6) != Some(b"\\u") {
        return Err(JsonError::Surrogate);
    }
    let second = four_digits(text, at + 6)?;
    let low = second.checked_sub(0xdc00).filter(|low| *low < 0x400).ok_or(JsonError::Surrogate)?;
    let character = char::from_u32(0x1_0000 + ((first - 0xd800) << 10) + low).ok_or(JsonError::Surrogate)?;
    Ok((character, at + 10))
}

fn four_digits(text: &[u8], at: usize) -> Result<u32, JsonError> {
    let digits = text.get(at..at + 4).ok_or(JsonError::Unterminated)?;
    digits.iter().try_fold(0, |value, digit| {
        Ok(value << 4 | char::from(*digit).to_digit(16).ok_or(JsonError::Escape)?)
    })
}
