//! Keeping secrets out of what is printed of a file.

use std::ops::Range;

use cudock_yaml::{Data, Node};

/// Keys whose values are secret wherever they stand.
const SECRET_KEYS: &[&str] = &[
    "secureValue",
    "password",
    "storageAccountKey",
    "workspaceKey",
    "protectedSettings",
    "repository",
    "secret",
];

/// The text with stars for every hidden byte. Line breaks stay, so lines and columns do, too. `hidden` is in order.
pub(crate) fn masked(text: &str, hidden: &[Range<usize>]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut ranges = hidden.iter().peekable();
    for (at, letter) in text.char_indices() {
        while ranges.next_if(|range| range.end <= at).is_some() {}
        if letter != '\n' && letter != '\r' && ranges.peek().is_some_and(|range| range.contains(&at)) {
            out.extend(std::iter::repeat_n('*', letter.len_utf8()));
        } else {
            out.push(letter);
        }
    }
    out
}

/// Adds the places of what is secret in the value of a key.
pub(crate) fn below_key(key: &str, value: &Node, into: &mut Vec<Range<usize>>) {
    let hidden = hidden_below(key, Hidden::Nothing);
    if hidden != Hidden::Nothing {
        collect(value, hidden, into);
    }
}

/// What of a node is secret.
#[derive(Clone, Copy, PartialEq)]
enum Hidden {
    Nothing,
    /// Keys are names of files.
    Values,
    /// Text was wanted, so all of it may be the secret.
    Everything,
}

fn collect(node: &Node, hidden: Hidden, into: &mut Vec<Range<usize>>) {
    match &node.data {
        Data::Scalar(_) if hidden == Hidden::Nothing => {}
        Data::Scalar(_) => into.push(node.span.bytes()),
        Data::List(members) => members.iter().for_each(|member| collect(member, hidden, into)),
        Data::Map(entries) => {
            for entry in entries {
                if hidden == Hidden::Everything {
                    into.push(entry.span.bytes());
                }
                collect(&entry.value, hidden_below(&entry.key, hidden), into);
            }
        }
    }
}

fn hidden_below(key: &str, above: Hidden) -> Hidden {
    match above {
        Hidden::Nothing if key == "secret" => Hidden::Values,
        Hidden::Nothing if SECRET_KEYS.iter().any(|secret| secret.eq_ignore_ascii_case(key)) => {
            Hidden::Everything
        }
        other => other,
    }
}

/// The places of what may be secret in a text that is not YAML. Where values begin and end is anybody's guess there, so
/// all letters and digits are taken for secret, but for a known key at the beginning of a line.
pub(crate) fn all_but_keys(text: &str, is_key: impl Fn(&str) -> bool) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    let mut offset = 0;
    for line in text.split_inclusive('\n') {
        let shown = key_of(line).filter(|key| line.get(key.clone()).is_some_and(&is_key)).unwrap_or_default();
        let secret = |at: usize, letter: char| {
            !shown.contains(&at) && (letter.is_ascii_alphanumeric() || !letter.is_ascii())
        };
        let letters = line.char_indices().filter(|(at, letter)| secret(*at, *letter));
        ranges.extend(letters.map(|(at, letter)| offset + at..offset + at + letter.len_utf8()));
        offset += line.len();
    }
    ranges
}

/// The place in a line of the word before its first colon.
fn key_of(line: &str) -> Option<Range<usize>> {
    let rest = line.trim_start_matches([' ', '-', '{', '[', '"', '\'']);
    let start = line.len() - rest.len();
    let length = rest.find(|letter: char| !letter.is_ascii_alphanumeric())?;
    rest.get(length..)?.trim_start_matches(['"', '\'', ' ']).starts_with(':').then(|| start..start + length)
}
