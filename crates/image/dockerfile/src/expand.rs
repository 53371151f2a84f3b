//! Expands variables in Dockerfiles and shell scripts: `$X`, `${X:-default}`.

use cudock_base::bug::Parts;
use smallvec::SmallVec;

/// The limit for nested defaults.
const MAX_DEPTH: usize = 8;

/// An expanded value, and the first unknown variable in it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Expanded {
    pub text: String,
    pub unknown: Option<String>,
}

pub type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Expands the variable at the start of `text`; also returns the bytes consumed. `None` for a literal `$`.
pub fn variable(text: &str, lookup: Lookup<'_>, depth: usize) -> Option<(Expanded, usize)> {
    let after = text.strip_prefix('$')?;
    if let Some(inner) = after.strip_prefix('{') {
        return Some(match closing_brace(inner) {
            Ok(length) => (braces(inner.part(..length), lookup, depth), length + 3),
            Err(scanned) => {
                let text = text.get(..scanned + 2).unwrap_or(text).to_owned();
                let taken = text.len();
                (Expanded { text, unknown: Some(name_at_start(inner).to_owned()) }, taken)
            }
        });
    }
    let name = name_at_start(after);
    (!name.is_empty()).then(|| (known(name, lookup), 1 + name.len()))
}

fn known(name: &str, lookup: Lookup<'_>) -> Expanded {
    match lookup(name) {
        Some(text) => Expanded { text, unknown: None },
        None => Expanded { text: format!("${name}"), unknown: Some(name.to_owned()) },
    }
}

fn name_at_start(text: &str) -> &str {
    let is_inside = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let length = text.bytes().take_while(is_inside).count();
    let name = text.part(..length);
    // Positional parameters such as `$1` are one digit long.
    if name.starts_with(|first: char| first.is_ascii_digit()) {
        name.get(..1).unwrap_or_default()
    } else {
        name
    }
}

/// The length of the text inside braces. If they are not closed, the error is the number of bytes scanned: the caller
/// skips them, so that many open braces cost no more than one.
fn closing_brace(inner: &str) -> Result<usize, usize> {
    const MAX_LENGTH: usize = 4096;
    let mut depth = 0_usize;
    for (at, ch) in inner.char_indices() {
        match ch {
            _ if at >= MAX_LENGTH => return Err(at),
            '{' => depth += 1,
            '}' if depth == 0 => return Ok(at),
            '}' => depth -= 1,
            _ => {}
        }
    }
    Err(inner.len())
}

fn braces(inner: &str, lookup: Lookup<'_>, depth: usize) -> Expanded {
    let name = name_at_start(inner);
    let rest = inner.get(name.len()..).unwrap_or_default();
    let unknown = || Expanded { text: format!("${{{inner}}}"), unknown: Some(name.to_owned()) };
    if name.is_empty() || depth >= MAX_DEPTH {
        return unknown();
    }
    let value = lookup(name);
    let (is_strict, sign) = rest.strip_prefix(':').map_or((false, rest), |sign| (true, sign));
    let set = value.clone().filter(|value| !(is_strict && value.is_empty()));
    match (sign.chars().next(), set) {
        (None, _) if !is_strict => known(name, lookup),
        (Some('-' | '?'), Some(text)) => Expanded { text, unknown: None },
        (Some('-'), None) | (Some('+'), Some(_)) => {
            plain(sign.get(1..).unwrap_or_default(), lookup, depth + 1)
        }
        // The variable could be set from outside the file; within it, it is not set.
        (Some('+'), None) => Expanded::default(),
        _ => unknown(),
    }
}

/// Expands text in which only variables are special.
fn plain(text: &str, lookup: Lookup<'_>, depth: usize) -> Expanded {
    let mut expanded = Expanded::default();
    let mut rest = text;
    while let Some((before, _)) = rest.split_once('$') {
        expanded.text.push_str(before);
        rest = rest.get(before.len()..).unwrap_or_default();
        let taken = if let Some((found, taken)) = variable(rest, lookup, depth) {
            expanded.text.push_str(&found.text);
            expanded.unknown = expanded.unknown.or(found.unknown);
            taken
        } else {
            expanded.text.push('$');
            1
        };
        rest = rest.part(taken..);
    }
    expanded.text.push_str(rest);
    expanded
}

/// Splits an instruction's text by space outside quotes; quotes are kept.
pub fn split_args(text: &str, escape: char) -> SmallVec<[&str; 4]> {
    if !text.contains(['"', '\'', escape]) {
        return text.split_whitespace().collect();
    }
    let mut args = SmallVec::new();
    let mut start = None;
    let mut quote = None;
    let mut is_escaped = false;
    for (at, ch) in text.char_indices() {
        if ch.is_whitespace() && quote.is_none() && !is_escaped {
            args.extend(start.take().and_then(|start| text.get(start..at)));
            continue;
        }
        start.get_or_insert(at);
        let was_escaped = std::mem::take(&mut is_escaped);
        match quote {
            _ if was_escaped => {}
            Some('\'') if ch != '\'' => {}
            _ if ch == escape => is_escaped = true,
            Some(end) if end == ch => quote = None,
            None if matches!(ch, '"' | '\'') => quote = Some(ch),
            _ => {}
        }
    }
    args.extend(start.and_then(|start| text.get(start..)));
    args
}

/// Expands an argument as Docker does: without quotes and escapes, with variables replaced.
pub fn expand_arg(raw: &str, escape: char, lookup: Lookup<'_>) -> Expanded {
    if !raw.contains(['"', '\'', '$', escape]) {
        return Expanded { text: raw.to_owned(), unknown: None };
    }
    let mut expanded = Expanded::default();
    let mut quote = None;
    let mut rest = raw;
    while let Some(ch) = rest.chars().next() {
        let mut taken = ch.len_utf8();
        match (quote, ch) {
            (Some('\''), '\'') | (Some('"'), '"') => quote = None,
            (Some('\''), _) => expanded.text.push(ch),
            (None, '"' | '\'') => quote = Some(ch),
            (_, '$') => match variable(rest, lookup, 0) {
                Some((found, length)) => {
                    expanded.text.push_str(&found.text);
                    expanded.unknown = expanded.unknown.or(found.unknown);
                    taken = length;
                }
                None => expanded.text.push('$'),
            },
            (quote, _) if ch == escape => {
                let next = rest.chars().nth(1);
                let is_special = |next: char| quote.is_none() || matches!(next, '"' | '$') || next == escape;
                match next {
                    Some(next) if is_special(next) => {
                        expanded.text.push(next);
                        taken += next.len_utf8();
                    }
                    _ => expanded.text.push(ch),
                }
            }
            _ => expanded.text.push(ch),
        }
        rest = rest.part(taken..);
    }
    expanded
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lookup(name: &str) -> Option<String> {
        match name {
            "CUDA" => Some("12.4.1".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        }
    }

    #[test]
    fn variables_are_expanded_as_docker_does() {
        let cases = [
            ("nvidia/cuda:${CUDA}-base", "nvidia/cuda:12.4.1-base", None),
            ("$CUDA-x", "12.4.1-x", None),
            ("${NO:-${CUDA}}", "12.4.1", None),
            ("${EMPTY:-x}|${EMPTY-x}|${EMPTY:+y}|${CUDA:+y}", "x|||y", None),
            ("'$CUDA'", "$CUDA", None),
            ("\"a $CUDA\"", "a 12.4.1", None),
            ("\\$CUDA", "$CUDA", None),
            ("$NO/x", "$NO/x", Some("NO")),
            ("${CUDA%.*}", "${CUDA%.*}", Some("CUDA")),
            ("${CUDA", "${CUDA", Some("CUDA")),
        ];
        for (raw, text, unknown) in cases {
            let expanded = expand_arg(raw, '\\', &lookup);
            assert_eq!((expanded.text.as_str(), expanded.unknown.as_deref()), (text, unknown), "{raw}");
        }
    }

    #[test]
    fn arguments_keep_their_quotes() {
        assert_eq!(*split_args(r#"A="b c" D=e\ f G='h "i'"#, '\\'), [r#"A="b c""#, r"D=e\ f", r#"G='h "i'"#]);
    }
}
