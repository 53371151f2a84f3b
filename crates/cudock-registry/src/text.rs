//! Words from outside made fit to be shown, and words of ours made fit for a URL.

use std::fmt::Write as _;

/// The text with control characters replaced and no more than `most` characters.
pub fn shortened(text: &str, most: usize) -> String {
    let mut shown: String = text.chars().take(most).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().nth(most).is_some() {
        shown.push('…');
    }
    shown
}

/// Percent-encodes all but the characters that mean themselves in every part of a URL.
pub(crate) fn percent_encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            out.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_never_reach_a_terminal() {
        assert_eq!(shortened("a\x1b[31mb\nc", 20), "a [31mb c");
        assert_eq!(shortened("abcdef", 3), "abc…");
    }

    #[test]
    fn a_name_with_slashes_and_colons_becomes_one_part_of_a_path() {
        assert_eq!(percent_encoded("nvidia/cuda:12.4 é"), "nvidia%2Fcuda%3A12.4%20%C3%A9");
    }
}
