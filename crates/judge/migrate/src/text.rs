//! Decodes files, and computes spans.

use cudock_base::bug::Parts;
use std::borrow::Cow;

use schemars::JsonSchema;
use serde::Serialize;

/// The size limit for files, in bytes. A script or template is a thousandth of this; larger files are data.
pub const MAX_FILE_SIZE: u64 = 16 << 20;

/// Number of characters of which at most one may be invalid: a comment in another encoding passes,
/// a binary does not.
const TEXT_TO_NOISE: usize = 10;

/// An error in decoding a file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MigrateError {
    /// It is larger than [`MAX_FILE_SIZE`].
    #[error("file of {bytes} bytes exceeds the limit of {} MiB", MAX_FILE_SIZE >> 20)]
    TooLarge { bytes: u64 },
    #[error("not a text file: invalid character at byte {offset}")]
    Binary {
        /// The first invalid byte.
        offset: usize,
    },
}

/// Decodes UTF-8, or UTF-16 with a byte order mark, as some editors save scripts. Bytes of older encodings become
/// replacement characters, one for each, so that columns stay right.
pub fn decode(bytes: &[u8]) -> Result<Cow<'_, str>, MigrateError> {
    let size = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    if size > MAX_FILE_SIZE {
        return Err(MigrateError::TooLarge { bytes: size });
    }
    match bytes {
        [0xff, 0xfe, rest @ ..] => utf16(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => utf16(rest, u16::from_be_bytes),
        [0xef, 0xbb, 0xbf, rest @ ..] => utf8(rest),
        _ => utf8(bytes),
    }
}

fn utf8(bytes: &[u8]) -> Result<Cow<'_, str>, MigrateError> {
    if let Some(offset) = bytes.iter().position(|byte| *byte == 0) {
        return Err(MigrateError::Binary { offset });
    }
    let text = String::from_utf8_lossy(bytes);
    match std::str::from_utf8(bytes) {
        Err(error) if is_noise(&text) => Err(MigrateError::Binary { offset: error.valid_up_to() }),
        _ => Ok(text),
    }
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Result<Cow<'static, str>, MigrateError> {
    let units = bytes.chunks_exact(2).map(|pair| match pair {
        [first, second] => unit([*first, *second]),
        _ => 0,
    });
    let text: String =
        char::decode_utf16(units).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)).collect();
    match text.find('\0') {
        Some(offset) => Err(MigrateError::Binary { offset }),
        None if is_noise(&text) => Err(MigrateError::Binary { offset: 2 }),
        None => Ok(Cow::Owned(text)),
    }
}

fn is_noise(text: &str) -> bool {
    let noise = text.chars().filter(|ch| *ch == char::REPLACEMENT_CHARACTER).count();
    noise * TEXT_TO_NOISE > text.chars().count()
}

/// The span of a choice, with the columns that editors and scanners show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
pub struct ChoiceSpan {
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1, in characters.
    pub column: usize,
    /// The column after the last character, if it is in the same line.
    pub end_column: usize,
    /// The first byte of the decoded text.
    pub start: usize,
    /// The byte after the last.
    pub end: usize,
}

/// Computes lines and columns in one pass: the total cost is the length of the text, however many spans there are and
/// however long its lines are.
pub(crate) struct LineTracker<'t> {
    text: &'t str,
    at: usize,
    line: usize,
    column: usize,
}

impl<'t> LineTracker<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Self { text, at: 0, line: 1, column: 1 }
    }

    /// The span of some bytes. Spans must be requested in order.
    pub(crate) fn span(&mut self, start: usize, end: usize) -> ChoiceSpan {
        let passed = self.text.part(self.at..start);
        for ch in passed.chars() {
            if ch == '\n' {
                (self.line, self.column) = (self.line + 1, 1);
            } else {
                self.column += 1;
            }
        }
        self.at = self.at.max(start);
        let inside = self.text.part(start..end);
        let width = inside.split('\n').next().unwrap_or_default().chars().count();
        ChoiceSpan { line: self.line, column: self.column, end_column: self.column + width, start, end }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters_and_crlf_is_one_line_end() {
        let text = "größe=1\r\nµ Standard_NC6\r\n";
        let start = text.find("Standard").unwrap();
        let mut tracker = LineTracker::new(text);
        assert_eq!(
            tracker.span(0, "größe".len()),
            ChoiceSpan { line: 1, column: 1, end_column: 6, start: 0, end: 7 }
        );
        let span = tracker.span(start, start + 12);
        assert_eq!((span.line, span.column, span.end_column), (2, 3, 15));
    }

    #[test]
    fn utf16_as_powershell_writes_it_is_text() {
        let bytes: Vec<u8> =
            [0xff, 0xfe].into_iter().chain("az é".encode_utf16().flat_map(u16::to_le_bytes)).collect();
        assert_eq!(decode(&bytes).unwrap(), "az é");
    }

    #[test]
    fn a_comment_in_latin_1_keeps_its_columns() {
        let bytes = b"# gr\xfc\xdfe an alle Leser\naz vm create\n";
        assert_eq!(decode(bytes).unwrap().lines().next().unwrap().chars().count(), 21);
    }

    #[test]
    fn programs_archives_and_huge_files_are_rejected() {
        assert_eq!(decode(b"\x7fELF\x02\x01\0"), Err(MigrateError::Binary { offset: 6 }));
        assert_eq!(decode(b"ab\xff\xfe\xfd\xfc"), Err(MigrateError::Binary { offset: 2 }));
        let huge = vec![b'a'; usize::try_from(MAX_FILE_SIZE).unwrap() + 1];
        assert_eq!(decode(&huge), Err(MigrateError::TooLarge { bytes: MAX_FILE_SIZE + 1 }));
    }
}
