use std::sync::OnceLock;

use cudock_facts::tables::{Message, Messages};
use regex::bytes::{Regex, RegexBuilder};

use crate::anchor;
use crate::finder::Finder;
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
    pub(crate) owners: Vec<Vec<usize>>,
    /// The number of the text that begins a table of nvidia-smi.
    pub(crate) smi: usize,
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
        let mut owners: Vec<Vec<usize>> = Vec::new();
        for (index, message) in messages.message.iter().enumerate() {
            let hir = regex_syntax::ParserBuilder::new()
                .multi_line(true)
                .utf8(false)
                .build()
                .parse(&message.pattern)
                .map_err(|source| CatalogueError::Pattern {
                    id: message.id.clone(),
                    source: Box::new(source),
                })?;
            let anchors =
                anchor::anchors(&hir).ok_or_else(|| CatalogueError::NoAnchor { id: message.id.clone() })?;
            let fixed = anchor::are_everything(&hir, &anchors);
            for text in anchors {
                if let Some((_, owners)) = texts.iter().zip(&mut owners).find(|(known, _)| **known == text) {
                    owners.push(index);
                } else {
                    texts.push(text);
                    owners.push(vec![index]);
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
