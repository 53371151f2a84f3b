//! Literal strings of Bicep.

use std::fmt::Write as _;

/// A literal string.
pub(super) fn string(text: &str) -> String {
    let mut out = String::from("'");
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\'' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '$' if rest.peek() == Some(&'{') => out.push_str("\\$"),
            control if control.is_control() => {
                let _ = write!(out, "\\u{{{:x}}}", u32::from(control));
            }
            other => out.push(other),
        }
    }
    out.push('\'');
    out
}
