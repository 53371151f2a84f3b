//! Makes untrusted text safe to print.

use std::error::Error;

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
    fn control_characters_never_reach_a_terminal() {
        assert_eq!(truncate("a\x1b[31mb\nc", 20), "a [31mb c");
        assert_eq!(truncate("abcdef", 3), "abc…");
        assert_eq!(escape("a\x1b\"\nc", 20), "a\\u{1b}\\\"\\nc");
        assert_eq!(escape("abcdef", 3), "abc…");
    }
}
