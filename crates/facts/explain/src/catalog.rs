//! Prepares the messages for the search.

use std::collections::HashMap;
use std::sync::OnceLock;

use cudock_facts::tables::{Message, Messages};
use regex::bytes::{Regex, RegexBuilder};
use regex_syntax::hir::{Hir, Look};

use crate::anchor;
use crate::finder::Finder;
use crate::proof::Proof;
use crate::smi::SMI_HEADER;

/// An invalid pattern in the catalog.
#[derive(Debug, thiserror::Error)]
pub enum CatalogError {
    /// A pattern is not a regular expression.
    #[error("message {id}: its pattern is not a regular expression")]
    Pattern { id: String, source: Box<regex_syntax::Error> },
    #[error(
        "message {id}: its pattern has no fixed text of {} characters that every match contains",
        anchor::SHORTEST
    )]
    NoAnchor { id: String },
}

/// The messages, prepared for the search.
#[derive(Debug)]
pub struct Catalog<'a> {
    pub(crate) entries: Vec<CatalogEntry<'a>>,
    /// Finds the fixed texts of all patterns.
    pub(crate) finder: Finder,
    /// The messages of each of those texts.
    pub(crate) owners: Vec<Vec<Owner>>,
    /// The index of the text that starts a table of nvidia-smi.
    pub(crate) smi: usize,
}

/// A message that a fixed text belongs to.
#[derive(Debug)]
pub(crate) struct Owner {
    pub(crate) entry: usize,
    /// Proves that a line with the text contains the message; `None` if only the expression can.
    pub(crate) proof: Option<Proof>,
}

#[derive(Debug)]
pub(crate) struct CatalogEntry<'a> {
    pub(crate) message: &'a Message,
    pub(crate) crosses_lines: bool,
    /// Whether a line that contains one of its texts contains the message.
    pub(crate) is_fixed: bool,
    regex: OnceLock<Option<Regex>>,
}

impl CatalogEntry<'_> {
    /// The range of the message in a text.
    pub(crate) fn find(&self, text: &[u8]) -> Option<std::ops::Range<usize>> {
        self.regex()?.find(text).map(|found| found.range())
    }

    /// The match of the first group of the pattern.
    pub(crate) fn group(&self, text: &[u8]) -> Option<String> {
        let group = self.regex()?.captures(text)?.get(1)?;
        Some(String::from_utf8_lossy(group.as_bytes()).into_owned())
    }

    /// Whether the message is in a text, which is faster than finding its range.
    pub(crate) fn is_in(&self, text: &[u8]) -> bool {
        self.regex().is_some_and(|regex| regex.is_match(text))
    }

    /// The expression, compiled on first use: most logs need only a few.
    fn regex(&self) -> Option<&Regex> {
        self.regex
            .get_or_init(|| RegexBuilder::new(&self.message.pattern).multi_line(true).build().ok())
            .as_ref()
    }
}

impl<'a> Catalog<'a> {
    /// Prepares the messages. Fails if a pattern is invalid, which is only possible in an overlay.
    pub fn new(messages: &'a Messages) -> Result<Self, CatalogError> {
        let mut entries = Vec::with_capacity(messages.message.len());
        let mut texts: Vec<Vec<u8>> = Vec::new();
        let mut numbers: HashMap<Vec<u8>, usize> = HashMap::new();
        let mut owners: Vec<Vec<Owner>> = Vec::new();
        for (index, message) in messages.message.iter().enumerate() {
            let hir = parse(&message.pattern)
                .map_err(|source| CatalogError::Pattern { id: message.id.clone(), source })?;
            let anchors =
                anchor::anchors(&hir).ok_or_else(|| CatalogError::NoAnchor { id: message.id.clone() })?;
            let is_fixed = anchor::are_everything(&hir, &anchors);
            for text in anchors {
                let owner = Owner { entry: index, proof: Proof::new(&hir, &text) };
                let number = *numbers.entry(text.clone()).or_insert(texts.len());
                if let Some(owners) = owners.get_mut(number) {
                    owners.push(owner);
                } else {
                    texts.push(text);
                    owners.push(vec![owner]);
                }
            }
            let crosses_lines = anchor::crosses_lines(&hir);
            entries.push(CatalogEntry { message, crosses_lines, is_fixed, regex: OnceLock::new() });
        }
        let smi = texts.len();
        texts.push(SMI_HEADER.to_vec());
        Ok(Self { entries, finder: Finder::new(texts), owners, smi })
    }
}

fn parse(pattern: &str) -> Result<Hir, Box<regex_syntax::Error>> {
    if let Some(hir) = parse_plain(pattern) {
        return Ok(hir);
    }
    regex_syntax::ParserBuilder::new().multi_line(true).utf8(false).build().parse(pattern).map_err(Box::new)
}

/// Parses a pattern of texts, word boundaries and `|` only, as two in five are: the general parser takes most of the time
/// of preparing the catalog.
fn parse_plain(pattern: &str) -> Option<Hir> {
    let mut alternatives = Vec::new();
    let mut parts = Vec::new();
    let mut text = Vec::new();
    let mut rest = pattern.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'|' => {
                parts.push(Hir::literal(std::mem::take(&mut text)));
                alternatives.push(Hir::concat(std::mem::take(&mut parts)));
            }
            b'\\' => match rest.next()? {
                b'b' => {
                    parts.push(Hir::literal(std::mem::take(&mut text)));
                    parts.push(Hir::look(Look::WordUnicode));
                }
                escaped if escaped.is_ascii_punctuation() && !matches!(escaped, b'<' | b'>') => {
                    text.push(escaped);
                }
                _ => return None,
            },
            b'.' | b'+' | b'*' | b'?' | b'(' | b')' | b'[' | b']' | b'{' | b'}' | b'^' | b'$' => return None,
            _ => text.push(byte),
        }
    }
    // `\b{start}` is not a word boundary followed by a text; its bracket was rejected above.
    parts.push(Hir::literal(text));
    alternatives.push(Hir::concat(parts));
    Some(Hir::alternation(alternatives))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_pattern_has_the_tree_of_the_general_parser() {
        let facts = cudock_facts::Facts::embedded();
        let more = ["", "|", "a|", r"a\", r"\b", r"\ba\b|b\.", r"\<a\>", r"\b{start}a"];
        let more = more.into_iter().chain(["a|b", "caf\u{e9}", r"\/", r"\_"]);
        let patterns = facts.messages().message.iter().map(|message| message.pattern.as_str()).chain(more);
        let mut plain = 0;
        for pattern in patterns {
            let Some(ours) = parse_plain(pattern) else { continue };
            let general =
                regex_syntax::ParserBuilder::new().multi_line(true).utf8(false).build().parse(pattern);
            assert_eq!(Some(ours), general.ok(), "{pattern}");
            plain += 1;
        }
        assert!(plain > 100, "{plain} patterns are plain");
    }
}
