//! Makes untrusted text safe to print.

use std::error::Error;

/// Replaces control characters, and truncates to `max` characters.
pub fn truncate(text: &str, max: usize) -> String {
    let mut shown: String = text.chars().take(max).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().nth(max).is_some() {
        shown.push('…');
    }
    shown
}

/// Escapes control characters and quotes as in Rust, and truncates to `max` characters.
pub fn escape(text: &str, max: usize) -> String {
    let mut shown: String = text.chars().take(max).flat_map(char::escape_debug).collect();
    if text.chars().nth(max).is_some() {
        shown.push('…');
    }
    shown
}

/// An error and its causes on one line.
pub fn error_chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text
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
