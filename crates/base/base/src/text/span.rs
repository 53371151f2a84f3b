//! Positions in a text file: bytes for edits, line and column for display.

use crate::bug::Parts;
use std::ops::Range;

use schemars::JsonSchema;
use serde::Serialize;

/// A range of a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
pub struct Span {
    /// The line of the first byte, from 1.
    pub line: usize,
    /// The column of the first byte, from 1, in characters.
    pub column: usize,
    pub start: usize,
    /// The byte after the last.
    pub end: usize,
}

impl Span {
    pub const START: Self = Self { line: 1, column: 1, start: 0, end: 0 };

    pub fn bytes(self) -> Range<usize> {
        self.start..self.end
    }
}

/// Characters are counted once per block, so that columns take constant time in long lines.
const BLOCK: usize = 1024;

/// Converts bytes of a text to lines and columns.
#[derive(Debug, Clone)]
pub struct LineIndex<'t> {
    text: &'t str,
    /// The start of each line.
    lines: Vec<usize>,
    /// The number of characters before each block; empty for ASCII.
    blocks: Vec<usize>,
}

impl<'t> LineIndex<'t> {
    /// Indexes a text. Only `\n` ends a line; a `\r` before it belongs to the line.
    pub fn new(text: &'t str) -> Self {
        let lines = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        let mut blocks = Vec::new();
        if !text.is_ascii() {
            let mut count = 0;
            for block in text.as_bytes().chunks(BLOCK) {
                blocks.push(count);
                count += characters(block);
            }
            blocks.push(count);
        }
        Self { text, lines, blocks }
    }

    pub fn text(&self) -> &'t str {
        self.text
    }

    /// The line of a byte, from 1.
    pub fn line(&self, at: usize) -> usize {
        self.lines.partition_point(|start| *start <= at)
    }

    /// Line and column of a byte, both from 1.
    pub fn location(&self, at: usize) -> (usize, usize) {
        let at = at.min(self.text.len());
        let line = self.line(at);
        let start = self.lines.get(line.saturating_sub(1)).copied().unwrap_or(0);
        (line, self.characters_before(at) - self.characters_before(start) + 1)
    }

    /// The span of some bytes, clamped to the text.
    pub fn span(&self, bytes: Range<usize>) -> Span {
        let start = bytes.start.min(self.text.len());
        let (line, column) = self.location(start);
        Span { line, column, start, end: bytes.end.clamp(start, self.text.len()) }
    }

    fn characters_before(&self, at: usize) -> usize {
        let Some(before) = self.blocks.get(at / BLOCK) else { return at };
        let block = self.text.as_bytes().part(at / BLOCK * BLOCK..at);
        before + characters(block)
    }
}

/// The number of characters that start in some bytes of UTF-8.
fn characters(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte & 0xc0 != 0x80).count()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn columns_count_characters() {
        let index = LineIndex::new("größe\r\nab\n");
        assert_eq!(index.location("größ".len()), (1, 5));
        assert_eq!(index.span(10..11), Span { line: 2, column: 2, start: 10, end: 11 });
        assert_eq!(index.span(12..90), Span { line: 3, column: 1, start: 12, end: 12 });
        assert_eq!(LineIndex::new("").location(7), (1, 1));
    }

    proptest! {
        #[test]
        fn locations_agree_with_counting(text in "[a\u{e9}\u{1f980}\n]{0,3000}") {
            let index = LineIndex::new(&text);
            for (at, _) in text.char_indices().step_by(37) {
                let before = &text[..at];
                let line = before.matches('\n').count() + 1;
                let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
                prop_assert_eq!(index.location(at), (line, column));
            }
        }
    }
}
