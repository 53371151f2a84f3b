//! Makes untrusted text safe to print.

pub mod format;
pub mod path;
pub mod percent;
pub(crate) mod span;
pub mod suggest;
pub mod table;
pub mod terminal;

use std::borrow::Cow;
use std::error::Error;

use anstream::adapter;

const ESCAPE: u8 = 0x1b;

/// A line without the escape sequences with which programs color it and move the cursor.
pub fn strip_ansi(line: &str) -> Cow<'_, str> {
    if line.as_bytes().contains(&ESCAPE) {
        Cow::Owned(adapter::strip_str(line).to_string())
    } else {
        Cow::Borrowed(line)
    }
}

/// The same for bytes, which need not be UTF-8.
pub fn strip_ansi_bytes(line: &[u8]) -> Cow<'_, [u8]> {
    if !line.contains(&ESCAPE) {
        return Cow::Borrowed(line);
    }
    let (mut strip, mut kept) = (adapter::StripStr::new(), Vec::with_capacity(line.len()));
    for chunk in line.utf8_chunks() {
        strip.strip_next(chunk.valid()).for_each(|text| kept.extend_from_slice(text.as_bytes()));
        kept.extend_from_slice(chunk.invalid());
    }
    Cow::Owned(kept)
}

/// Escapes what could move the cursor, begin a line or reverse its order, so that the text stays where it is printed.
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(is_layout) {
        return Cow::Borrowed(text);
    }
    let escaped = |letter: char| {
        let literal = if is_layout(letter) { None } else { Some(letter) };
        let escape = literal.is_none().then(|| letter.escape_debug());
        literal.into_iter().chain(escape.into_iter().flatten())
    };
    Cow::Owned(text.chars().flat_map(escaped).collect())
}

/// Control characters, separators of lines and paragraphs, and marks of the direction of writing.
fn is_layout(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Replaces control characters, and truncates to `max` characters.
pub fn truncate(text: &str, max: usize) -> String {
    let printable = text.chars().take(max).map(|c| if c.is_control() { ' ' } else { c });
    printable.chain(ellipsis(text, max)).collect()
}

/// Escapes control characters and quotes as in Rust, and truncates to `max` characters.
pub fn escape(text: &str, max: usize) -> String {
    text.chars().take(max).flat_map(char::escape_debug).chain(ellipsis(text, max)).collect()
}

fn ellipsis(text: &str, max: usize) -> Option<char> {
    text.chars().nth(max).map(|_| '…')
}

pub(crate) fn is_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

/// An error and its causes on one line.
pub fn error_chain(error: &dyn Error) -> String {
    let causes = std::iter::successors(Some(error), |&error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_are_removed_and_nothing_else() {
        for (line, plain) in [
            ("\x1b[32macc=0.9", "acc=0.9"),
            ("\x1b[1;31merror\x1b[0m h\u{e4}ngt", "error h\u{e4}ngt"),
            ("\x1b[38;2;1;2;3mloss\x1b[m:\t0.5", "loss:\t0.5"),
            ("\x1b[2K\x1b[1Gstep 3", "step 3"),
            ("\x1b]0;title\x07acc=0.9", "acc=0.9"),
            ("\x1b(Bacc=0.9", "acc=0.9"),
            // Output that was cut off.
            ("acc=0.9\x1b[", "acc=0.9"),
            ("acc=0.9", "acc=0.9"),
        ] {
            assert_eq!(strip_ansi(line), plain, "{line:?}");
            assert_eq!(strip_ansi_bytes(line.as_bytes()), plain.as_bytes(), "{line:?}");
        }
        assert!(matches!(strip_ansi("plain"), Cow::Borrowed(_)));
        assert_eq!(strip_ansi_bytes(b"\x1b[1m\xffa"), b"\xffa".as_slice());
    }

    #[test]
    fn no_text_leaves_its_line() {
        assert_eq!(printable("plain – text"), "plain – text");
        assert_eq!(printable("a\nb\r\x1b[2Kc\td"), "a\\nb\\r\\u{1b}[2Kc\\td");
        assert_eq!(printable("\u{202e}gnp\u{2028}x"), "\\u{202e}gnp\\u{2028}x");
    }

    #[test]
    fn control_characters_never_reach_a_terminal() {
        assert_eq!(truncate("a\x1b[31mb\nc", 20), "a [31mb c");
        assert_eq!(truncate("abcdef", 3), "abc…");
        assert_eq!(escape("a\x1b\"\nc", 20), "a\\u{1b}\\\"\\nc");
        assert_eq!(escape("abcdef", 3), "abc…");
    }
}
