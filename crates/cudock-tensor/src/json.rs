//! JSON as tensors travel in it.
//!
//! [`Cursor`] walks the text once, from front to back, and [`Cursor::tensor`] turns nested arrays of any depth into the
//! bytes an engine reads: no tree in between, no allocation for an element. [`mod@write`] is the way back.

mod cursor;
mod digits;
mod element;
mod nested;
mod number;
mod string;
pub mod write;

pub use cursor::Cursor;
pub(crate) use cursor::Keys;

use crate::DType;

/// What can be wrong with a value. It has no text, so that the way past it costs nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Problem {
    /// Something else stands where a number has to.
    NotANumber,
    /// Something else stands where true or false has to.
    NotABoolean,
    /// Something else stands where a string has to.
    NotAString,
    /// A number like 007.
    LeadingZero,
    /// A point or an `e` that no digit follows.
    NoDigits,
    /// A number the type has no room for.
    OutOfRange,
    /// A fraction or an exponent where whole numbers go.
    NotWhole,
    /// A string that does not end.
    Unterminated,
    /// A control character in a string.
    Control,
    /// A backslash before something that needs none.
    Escape,
    /// Half of a surrogate pair.
    Surrogate,
    /// A string that is not UTF-8.
    NotUtf8,
    /// A string longer than the length before it can tell.
    LongString,
}

impl Problem {
    /// The problem in words, for a value of that type that begins at `at`.
    pub(crate) fn describe(self, text: &[u8], at: usize, dtype: Option<DType>) -> String {
        let kind = dtype.map_or("a number", DType::protocol_name);
        match self {
            Self::NotANumber if is_not_finite(text, at) => {
                "JSON has no NaN and no infinity; send such values as binary or .npy".to_owned()
            }
            Self::NotANumber => format!("expected a number, found {}", found(text, at)),
            Self::NotABoolean => format!("expected true or false, found {}", found(text, at)),
            Self::NotAString => format!("expected a string, found {}", found(text, at)),
            Self::LeadingZero => format!("{} begins with a zero too many", literal(text, at)),
            Self::NoDigits => format!("{} lacks digits", literal(text, at)),
            Self::OutOfRange => format!("{} is beyond the range of {kind}", literal(text, at)),
            Self::NotWhole => format!("{kind} takes whole numbers, not {}", literal(text, at)),
            Self::Unterminated => "a string that does not end".to_owned(),
            Self::Control => "a control character in a string; write it as an escape".to_owned(),
            Self::Escape => "an escape that JSON does not know".to_owned(),
            Self::Surrogate => "half of a surrogate pair".to_owned(),
            Self::NotUtf8 => "a string that is not UTF-8".to_owned(),
            Self::LongString => "a string of 4 GiB or more".to_owned(),
        }
    }
}

/// Whether one of the words that Python and JavaScript write for NaN and infinity is there.
fn is_not_finite(text: &[u8], at: usize) -> bool {
    let rest = text.get(at..).unwrap_or_default();
    let rest = rest.strip_prefix(b"-").unwrap_or(rest);
    [&b"NaN"[..], b"nan", b"Inf", b"inf"].iter().any(|word| rest.starts_with(word))
}

/// What stands there, in a few words.
pub(crate) fn found(text: &[u8], at: usize) -> String {
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

/// The number or word that begins there, cut where it gets long.
fn literal(text: &[u8], at: usize) -> String {
    const MOST: usize = 40;
    let rest = text.get(at..).unwrap_or_default();
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.' | b'_');
    let length = rest.iter().take(MOST + 1).take_while(|byte| is_part(byte)).count();
    let shown = String::from_utf8_lossy(rest.get(..length.min(MOST)).unwrap_or_default()).into_owned();
    if length > MOST { shown + "…" } else { shown }
}
