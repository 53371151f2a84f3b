//! Proves that a line contains a message without running its expression.
//!
//! Once a message was found, its other lines are only counted, and a program that logs its error in a loop writes
//! millions of them. Most expressions are a fixed text with little around it: a number, a bracket, a word boundary. That
//! is compared byte by byte, which takes a tenth of the time. A proof never fails wrongly: what it cannot prove is left to
//! the expression.

use regex_syntax::hir::{Class, Hir, HirKind, Look};

/// The surroundings that make a fixed text the message.
#[derive(Debug)]
pub(crate) struct Proof {
    /// Whether there must be a word boundary before the text.
    boundary: bool,
    length: usize,
    /// Steps that must match after the text.
    steps: Vec<ProofStep>,
}

#[derive(Debug)]
enum ProofStep {
    Text(Vec<u8>),
    /// ASCII characters of a set.
    Run {
        set: u128,
        least: usize,
        most: usize,
    },
    Boundary,
}

impl Proof {
    /// The proof for a text that an alternative of the pattern starts with, if the rest is simple enough.
    pub(crate) fn new(hir: &Hir, text: &[u8]) -> Option<Self> {
        let alternatives = match hir.kind() {
            HirKind::Alternation(parts) => parts.as_slice(),
            _ => std::slice::from_ref(hir),
        };
        alternatives.iter().find_map(|alternative| Self::of_alternative(alternative, text))
    }

    fn of_alternative(hir: &Hir, text: &[u8]) -> Option<Self> {
        let parts = match hir.kind() {
            HirKind::Concat(parts) => parts.as_slice(),
            _ => std::slice::from_ref(hir),
        };
        let (boundary, parts) = match parts {
            [first, rest @ ..] if is_boundary(first) => (true, rest),
            _ => (false, parts),
        };
        let (first, rest) = parts.split_first()?;
        let HirKind::Literal(literal) = first.kind() else { return None };
        let more = literal.0.strip_prefix(text)?;
        let mut steps = Vec::new();
        if !more.is_empty() {
            steps.push(ProofStep::text(more)?);
        }
        for part in rest {
            steps.push(ProofStep::new(part)?);
        }
        Some(Self { boundary, length: text.len(), steps })
    }

    /// Whether the message is on `line`, with its text at `start`.
    pub(crate) fn holds(&self, line: &[u8], start: usize) -> bool {
        let mut at = start + self.length;
        (!self.boundary || word_changes(line, start))
            && self.steps.iter().all(|step| step.passed(line, at).map(|next| at = next).is_some())
    }
}

impl ProofStep {
    fn new(hir: &Hir) -> Option<Self> {
        match hir.kind() {
            HirKind::Literal(literal) => Self::text(&literal.0),
            HirKind::Class(class) => Some(Self::Run { set: ascii(class), least: 1, most: 1 }),
            HirKind::Capture(capture) => Self::new(&capture.sub),
            HirKind::Repetition(repetition) => {
                let HirKind::Class(class) = repetition.sub.kind() else { return None };
                let most = repetition.max.map_or(Some(usize::MAX), |most| usize::try_from(most).ok())?;
                Some(Self::Run { set: ascii(class), least: usize::try_from(repetition.min).ok()?, most })
            }
            HirKind::Look(_) if is_boundary(hir) => Some(Self::Boundary),
            _ => None,
        }
    }

    /// A text of ASCII only: `\xe9` is one byte without Unicode, and two with it.
    fn text(text: &[u8]) -> Option<Self> {
        text.is_ascii().then(|| Self::Text(text.to_vec()))
    }

    /// The start of the next step, if this one matches.
    fn passed(&self, line: &[u8], at: usize) -> Option<usize> {
        let rest = line.get(at..)?;
        match self {
            Self::Text(text) => rest.starts_with(text).then_some(at + text.len()),
            Self::Run { set, least, most } => {
                let fits = |byte: &&u8| byte.is_ascii() && set >> **byte & 1 == 1;
                let length = rest.iter().take(*most).take_while(fits).count();
                (length >= *least).then_some(at + length)
            }
            Self::Boundary => word_changes(line, at).then_some(at),
        }
    }
}

fn is_boundary(hir: &Hir) -> bool {
    matches!(hir.kind(), HirKind::Look(Look::WordUnicode | Look::WordAscii))
}

/// The ASCII characters of a class as bits. Others are left to the expression.
fn ascii(class: &Class) -> u128 {
    let bits = |from: u32, to: u32| (from..=to.min(127)).fold(0, |set, c| set | 1_u128 << c);
    match class {
        Class::Unicode(class) => {
            class.iter().fold(0, |set, range| set | bits(range.start().into(), range.end().into()))
        }
        Class::Bytes(class) => {
            class.iter().fold(0, |set, range| set | bits(range.start().into(), range.end().into()))
        }
    }
}

/// Whether there is certainly a word boundary: next to a character that is not ASCII, it depends on Unicode.
fn word_changes(line: &[u8], at: usize) -> bool {
    let before = at.checked_sub(1).and_then(|before| line.get(before));
    let after = line.get(at);
    let is_word = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    [before, after].into_iter().flatten().all(u8::is_ascii) && is_word(before) != is_word(after)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use regex::bytes::Regex;

    use super::*;

    const TEXT: &str = "abc";

    fn proof(pattern: &str) -> Option<Proof> {
        Proof::new(&regex_syntax::parse(pattern).unwrap(), TEXT.as_bytes())
    }

    #[test]
    fn what_surrounds_the_text_is_compared() {
        let (number, word) = (r"abc(\d+)\)", r"first|\babc\b");
        let cases = [
            (number, "x abc12)", true),
            (number, "x abc)", false),
            (number, "x abc12", false),
            (word, "abc", true),
            (word, "(abc)", true),
            (word, "abcd", false),
            (word, "_abc", false),
            // Left to the expression.
            (word, "abc\u{e9}", false),
        ];
        for (pattern, line, expected) in cases {
            let proof = proof(pattern).unwrap();
            assert_eq!(proof.holds(line.as_bytes(), line.find(TEXT).unwrap()), expected, "{line}");
        }
    }

    #[test]
    fn what_is_not_simple_has_no_proof() {
        for pattern in [r"\d+abc", r"abc(?:x|yz)", r"(?m)abc$", "abc\u{e9}"] {
            assert!(proof(pattern).is_none(), "{pattern}");
        }
    }

    proptest! {
        #[test]
        fn it_never_claims_what_the_expression_denies(
            parts in prop::collection::vec(prop::sample::select(vec![r"\b", r"\d+", "x", r"\w{1,2}", r"[^)]*", r"\)", r"\s?", r"(\S)"]), 0..5),
            boundary in any::<bool>(),
            line in "[abcx1) \u{e9}]{0,4}abc[abcx1) \u{e9}]{0,6}",
        ) {
            let pattern = format!("{}abc{}", if boundary { r"\b" } else { "" }, parts.concat());
            let Some(proof) = proof(&pattern) else { return Ok(()) };
            let regex = Regex::new(&pattern).unwrap();
            for (start, _) in line.match_indices(TEXT) {
                prop_assert!(!proof.holds(line.as_bytes(), start) || regex.is_match(line.as_bytes()), "{pattern}");
            }
        }
    }
}
