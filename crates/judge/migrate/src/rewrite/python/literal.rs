//! Numbers and strings as Python writes them.

use super::value::Expr;

/// A number; integers that do not fit are unknown.
pub(super) fn number<'t>(text: &str) -> Expr<'t> {
    let plain = text.replace('_', "");
    let radix = match plain.get(..2).map(str::to_ascii_lowercase).as_deref() {
        Some("0x") => 16,
        Some("0o") => 8,
        Some("0b") => 2,
        _ => {
            return match plain.parse::<i64>() {
                Ok(number) => Expr::Int(number),
                Err(_) if plain.bytes().all(|byte| byte.is_ascii_digit()) => Expr::Unknown,
                Err(_) => plain
                    .parse::<f64>()
                    .ok()
                    .filter(|number| number.is_finite())
                    .map_or(Expr::Unknown, Expr::Float),
            };
        }
    };
    i64::from_str_radix(plain.get(2..).unwrap_or_default(), radix).map_or(Expr::Unknown, Expr::Int)
}

/// The text of a string literal whose content begins at a byte; none for a formatted one with values in it.
pub(super) fn string(text: &str, start: usize, end: usize) -> Option<String> {
    let content = text.get(start..end)?;
    let before = text.get(..start)?.trim_end_matches(['"', '\'']);
    // At most two letters, as in `rb`; a longer word is not a prefix.
    let rest = before.trim_end_matches(|ch: char| ch.is_ascii_alphanumeric() || ch == '_');
    let prefix = before.get(rest.len()..).filter(|prefix| prefix.len() <= 2).unwrap_or_default();
    let has = |letter: char| prefix.chars().any(|ch| ch.eq_ignore_ascii_case(&letter));
    if has('f') && content.contains('{') {
        return None;
    }
    Some(if has('r') { content.to_owned() } else { unescape(content) })
}

fn unescape(content: &str) -> String {
    let mut text = String::with_capacity(content.len());
    let mut chars = content.chars();
    while let Some(ch) = chars.next() {
        if ch != '\\' {
            text.push(ch);
            continue;
        }
        match chars.next() {
            Some('n') => text.push('\n'),
            Some('t') => text.push('\t'),
            Some('r') => text.push('\r'),
            Some('\n') | None => {}
            Some(quoted @ ('\\' | '\'' | '"')) => text.push(quoted),
            Some(kind @ ('x' | 'u' | 'U')) => {
                let digits = match kind {
                    'x' => 2,
                    'u' => 4,
                    _ => 8,
                };
                let code = chars.as_str().get(..digits).and_then(|code| u32::from_str_radix(code, 16).ok());
                match code.and_then(char::from_u32) {
                    Some(ch) => {
                        text.push(ch);
                        chars = chars.as_str().get(digits..).unwrap_or_default().chars();
                    }
                    None => text.extend(['\\', kind]),
                }
            }
            Some(other) => text.extend(['\\', other]),
        }
    }
    text
}
