//! Extracts texts that every match of a regular expression contains.

use regex_syntax::hir::{Hir, HirKind};

pub(crate) use crate::finder::SHORTEST;

/// Texts of which every match of `hir` contains at least one; `None` if they are too short.
pub(crate) fn anchors(hir: &Hir) -> Option<Vec<Vec<u8>>> {
    required(hir).filter(|texts| shortest(texts) >= SHORTEST)
}

/// Whether a pattern consists of these texts only, so that finding one is finding the message.
pub(crate) fn are_everything(hir: &Hir, texts: &[Vec<u8>]) -> bool {
    let whole = |hir: &Hir| match hir.kind() {
        HirKind::Literal(literal) => texts.iter().any(|text| **text == *literal.0),
        _ => false,
    };
    match hir.kind() {
        HirKind::Alternation(parts) => parts.iter().all(whole),
        _ => whole(hir),
    }
}

/// Whether a match may span lines.
pub(crate) fn crosses_lines(hir: &Hir) -> bool {
    match hir.kind() {
        HirKind::Literal(literal) => literal.0.contains(&b'\n'),
        HirKind::Class(class) => match class {
            regex_syntax::hir::Class::Unicode(class) => {
                class.ranges().iter().any(|range| range.start() <= '\n' && '\n' <= range.end())
            }
            regex_syntax::hir::Class::Bytes(class) => {
                class.ranges().iter().any(|range| range.start() <= b'\n' && b'\n' <= range.end())
            }
        },
        HirKind::Repetition(repetition) => crosses_lines(&repetition.sub),
        HirKind::Capture(capture) => crosses_lines(&capture.sub),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => parts.iter().any(crosses_lines),
        HirKind::Empty | HirKind::Look(_) => false,
    }
}

fn required(hir: &Hir) -> Option<Vec<Vec<u8>>> {
    match hir.kind() {
        HirKind::Literal(literal) => longest_plain_run(&literal.0).map(|run| vec![run.to_vec()]),
        HirKind::Capture(capture) => required(&capture.sub),
        HirKind::Repetition(repetition) if repetition.min > 0 => required(&repetition.sub),
        HirKind::Concat(parts) => parts.iter().filter_map(required).max_by_key(|texts| {
            // The longest text is the rarest; of equal ones, the one with fewer alternatives.
            (shortest(texts), std::cmp::Reverse(texts.len()))
        }),
        HirKind::Alternation(parts) => {
            let each: Option<Vec<Vec<Vec<u8>>>> = parts.iter().map(required).collect();
            each.map(|texts| texts.into_iter().flatten().collect())
        }
        _ => None,
    }
}

fn shortest(texts: &[Vec<u8>]) -> usize {
    texts.iter().map(Vec::len).min().unwrap_or(0)
}

/// The longest part without the characters that change when a log is wrapped in JSON: quotes, backslashes, and
/// whatever is not printable.
fn longest_plain_run(literal: &[u8]) -> Option<&[u8]> {
    literal
        .split(|byte| matches!(byte, b'"' | b'\'' | b'\\') || !(0x20..0x7f).contains(byte))
        .max_by_key(|run| run.len())
        .filter(|run| !run.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pattern: &str) -> Option<Vec<String>> {
        let hir = regex_syntax::parse(pattern).unwrap();
        let texts = anchors(&hir)?;
        Some(texts.into_iter().map(|text| String::from_utf8(text).unwrap()).collect())
    }

    #[test]
    fn every_match_contains_one_of_the_texts() {
        let cases: [(&str, Option<&[&str]>); 5] = [
            // The longest fixed part of a sequence.
            (r"Xid \(\d+\): has fallen off the bus", Some(&["): has fallen off the bus"])),
            ("first one|second one", Some(&["first one", "second one"])),
            (r"first one|\d+", None),
            // Optional parts do not count.
            ("(?:very long and absent)?present", Some(&["present"])),
            // JSON escapes quotes, so they split a text.
            (r#"exec: "nvidia-smi""#, Some(&["nvidia-smi"])),
        ];
        for (pattern, expected) in cases {
            let expected = expected.map(|texts| texts.iter().map(|text| (*text).to_owned()).collect());
            assert_eq!(of(pattern), expected, "{pattern}");
        }
    }

    #[test]
    fn fixed_texts_alone_need_no_expression() {
        let everything = |pattern: &str| {
            let hir = regex_syntax::parse(pattern).unwrap();
            are_everything(&hir, &anchors(&hir).unwrap())
        };
        assert!(everything("first one|second one"));
        assert!(!everything(r"first one \d+"));
        assert!(!everything(r#"exec: "nvidia-smi""#), "the quotes are not part of the text");
    }

    #[test]
    fn white_space_may_cross_lines_and_a_dot_may_not() {
        assert!(crosses_lines(&regex_syntax::parse(r"a\s+b").unwrap()));
        assert!(!crosses_lines(&regex_syntax::parse("a.*b").unwrap()));
    }
}
