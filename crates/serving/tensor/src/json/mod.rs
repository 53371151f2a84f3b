//! JSON parsing and writing of tensors.
//!
//! [`Cursor`] parses the text once, front to back, and [`Cursor::tensor`] turns nested arrays of any depth into the
//! bytes that an engine reads: without a tree and without an allocation per element. [`mod@write`] is the reverse.

mod cursor;
mod digits;
mod element;
mod nested;
mod number;
mod string;
pub mod write;

pub use cursor::Cursor;
pub(crate) use cursor::SeenKeys;

use crate::DType;
use cudock_base::bug::Parts;

/// An error of a value. It has no text, so that the success path costs nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JsonError {
    NotANumber,
    NotABoolean,
    NotAString,
    /// A number like 007.
    LeadingZero,
    /// A point or an `e` without digits.
    NoDigits,
    OutOfRange,
    /// A fraction or an exponent in an integer.
    NotWhole,
    Unterminated,
    Control,
    Escape,
    /// Half of a surrogate pair.
    Surrogate,
    NotUtf8,
    /// Not an object for bytes, `{"b64": "…"}`.
    NotBase64,
    /// A string too long for its length prefix.
    LongString,
}

impl JsonError {
    /// Describes the error, for a value of that type at `at`.
    pub(crate) fn describe(self, text: &[u8], at: usize, dtype: Option<DType>) -> String {
        let kind = dtype.map_or("a number", DType::protocol_name);
        match self {
            Self::NotANumber if is_not_finite(text, at) => {
                "JSON has no NaN and no infinity; send such values as binary or .npy".to_owned()
            }
            Self::NotANumber => format!("expected a number, found {}", found(text, at)),
            Self::NotABoolean => format!("expected true or false, found {}", found(text, at)),
            Self::NotAString => format!("expected a string, found {}", found(text, at)),
            Self::LeadingZero => format!("{} has a leading zero", literal(text, at)),
            Self::NoDigits => format!("{} has no digits", literal(text, at)),
            Self::OutOfRange => format!("{} is out of range for {kind}", literal(text, at)),
            Self::NotWhole => format!("expected an integer for {kind}, found {}", literal(text, at)),
            Self::Unterminated => "a string that does not end".to_owned(),
            Self::Control => "a control character in a string; write it as an escape".to_owned(),
            Self::Escape => "an invalid escape".to_owned(),
            Self::Surrogate => "half of a surrogate pair".to_owned(),
            Self::NotUtf8 => "a string that is not UTF-8".to_owned(),
            Self::NotBase64 => "expected {\"b64\": \"…\"} with base64".to_owned(),
            Self::LongString => "a string of 4 GiB or more".to_owned(),
        }
    }
}

/// Whether `at` is NaN or infinity as Python and JavaScript write it.
fn is_not_finite(text: &[u8], at: usize) -> bool {
    let rest = text.part(at..);
    let rest = rest.strip_prefix(b"-").unwrap_or(rest);
    [&b"NaN"[..], b"nan", b"Inf", b"inf"].iter().any(|word| rest.starts_with(word))
}

fn found(text: &[u8], at: usize) -> String {
    match text.get(at) {
        None => "the end".to_owned(),
        Some(b'[') => "an array".to_owned(),
        Some(b'{') => "an object".to_owned(),
        Some(b'"') => "a string".to_owned(),
        Some(byte) if byte.is_ascii_alphanumeric() || *byte == b'-' => literal(text, at),
        Some(byte) if byte.is_ascii_graphic() => format!("`{}`", char::from(*byte)),
        Some(byte) => format!("byte 0x{byte:02x}"),
    }
}

/// The number or literal at `at`, truncated.
fn literal(text: &[u8], at: usize) -> String {
    const MOST: usize = 40;
    let rest = text.part(at..);
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.' | b'_');
    let length = rest.iter().take(MOST + 1).take_while(|byte| is_part(byte)).count();
    let truncated = String::from_utf8_lossy(rest.get(..length.min(MOST)).unwrap_or_default()).into_owned();
    if length > MOST { truncated + "…" } else { truncated }
}
