use std::collections::HashMap;
use std::sync::OnceLock;

use cudock_facts::tables::{Message, Messages};
use regex::bytes::{Regex, RegexBuilder};
use regex_syntax::hir::{Hir, Look};

use crate::anchor;
use crate::finder::Finder;
use crate::proof::Proof;
use crate::smi::SMI_HEADER;

/// Why a catalogue cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CatalogueError {
    /// A pattern is not a regular expression.
    #[error("message {id}: its pattern is not a regular expression")]
    Pattern {
        /// The message.
        id: String,
        /// Why not.
        source: Box<regex_syntax::Error>,
    },
    /// A pattern has no fixed text to look for.
    #[error(
        "message {id}: its pattern has no fixed text of {} characters that every match contains",
        anchor::SHORTEST
    )]
    NoAnchor {
        /// The message.
        id: String,
    },
}

/// The messages, made ready to be looked for.
#[derive(Debug)]
pub struct Catalogue<'a> {
    pub(crate) entries: Vec<Entry<'a>>,
    /// Finds the fixed texts of all patterns.
    pub(crate) finder: Finder,
    /// The messages each of those texts belongs to.
    pub(crate) owners: Vec<Vec<Owner>>,
    /// The number of the text that begins a table of nvidia-smi.
    pub(crate) smi: usize,
}

/// A message that a fixed text belongs to.
#[derive(Debug)]
pub(crate) struct Owner {
    pub(crate) entry: usize,
    /// Shows that a line with the text holds the message; none where only the expression can.
    pub(crate) proof: Option<Proof>,
}

#[derive(Debug)]
pub(crate) struct Entry<'a> {
    pub(crate) message: &'a Message,
    pub(crate) crosses_lines: bool,
    /// Whether a line that holds one of its texts holds the message.
    fixed: bool,
    regex: OnceLock<Option<Regex>>,
}

impl Entry<'_> {
    /// Whether a line that holds one of its texts holds the message.
    pub(crate) fn is_fixed(&self) -> bool {
        self.fixed
    }

    /// Where the message stands in a text.
    pub(crate) fn find(&self, text: &[u8]) -> Option<std::ops::Range<usize>> {
        self.regex()?.find(text).map(|found| found.range())
    }

    /// What the first group of the pattern matches.
    pub(crate) fn group(&self, text: &[u8]) -> Option<String> {
        let group = self.regex()?.captures(text)?.get(1)?;
        Some(String::from_utf8_lossy(group.as_bytes()).into_owned())
    }

    /// Whether the message stands in a text, which is told sooner than where.
    pub(crate) fn is_in(&self, text: &[u8]) -> bool {
        self.regex().is_some_and(|regex| regex.is_match(text))
    }

    /// The expression, compiled when a line first asks for it: most logs need a handful of them.
    fn regex(&self) -> Option<&Regex> {
        self.regex
            .get_or_init(|| RegexBuilder::new(&self.message.pattern).multi_line(true).build().ok())
            .as_ref()
    }
}

impl<'a> Catalogue<'a> {
    /// Makes the messages ready. Fails if a pattern cannot be searched for, which only an overlay's can.
    pub fn new(messages: &'a Messages) -> Result<Self, CatalogueError> {
        let mut entries = Vec::with_capacity(messages.message.len());
        let mut texts: Vec<Vec<u8>> = Vec::new();
        let mut numbers: HashMap<Vec<u8>, usize> = HashMap::new();
        let mut owners: Vec<Vec<Owner>> = Vec::new();
        for (index, message) in messages.message.iter().enumerate() {
            let hir = parse(&message.pattern)
                .map_err(|source| CatalogueError::Pattern { id: message.id.clone(), source })?;
            let anchors =
                anchor::anchors(&hir).ok_or_else(|| CatalogueError::NoAnchor { id: message.id.clone() })?;
            let fixed = anchor::are_everything(&hir, &anchors);
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
            entries.push(Entry {
                message,
                crosses_lines: anchor::crosses_lines(&hir),
                fixed,
                regex: OnceLock::new(),
            });
        }
        let smi = texts.len();
        texts.push(SMI_HEADER.to_vec());
        Ok(Self { entries, finder: Finder::new(texts), owners, smi })
    }
}

/// A pattern's syntax tree.
fn parse(pattern: &str) -> Result<Hir, Box<regex_syntax::Error>> {
    if let Some(hir) = parse_plain(pattern) {
        return Ok(hir);
    }
    regex_syntax::ParserBuilder::new().multi_line(true).utf8(false).build().parse(pattern).map_err(Box::new)
}

/// The same for a pattern that is nothing but texts, ends of words and `|`, as two in five are: the general parser takes
/// most of the time that making the catalogue ready takes.
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
    // `\b{start}` is not an end of a word and then a text; its bracket was refused above.
    parts.push(Hir::literal(text));
    alternatives.push(Hir::concat(parts));
    Some(Hir::alternation(alternatives))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_pattern_has_the_tree_that_the_general_parser_gives() {
        let facts = cudock_facts::Facts::embedded();
        let more = [
            "",
            "|",
            "a|",
            r"a\",
            r"\b",
            r"\ba\b|b\.",
            r"\<a\>",
            r"\b{start}a",
            "a|b",
            "caf\u{e9}",
            r"\/",
            r"\_",
        ];
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
