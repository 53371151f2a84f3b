//! Converts the parser's character positions to bytes.

use cudock_base::Span;
use saphyr_parser::{Marker, Span as Marks};

#[derive(Debug)]
pub(crate) struct Spans<'t> {
    text: &'t str,
    /// Where each character starts; empty if every character is one byte.
    starts: Vec<usize>,
}

impl<'t> Spans<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        let starts =
            if text.is_ascii() { Vec::new() } else { text.char_indices().map(|(start, _)| start).collect() };
        Self { text, starts }
    }

    pub(crate) fn span(&self, marks: Marks) -> Span {
        let start = self.byte(marks.start.index());
        let end = self.byte(marks.end.index()).max(start);
        // The parser reports the end of a file as the start of another line.
        let (line, column) = if start == self.text.len() {
            self.end_of_text()
        } else {
            (marks.start.line().max(1), marks.start.col() + 1)
        };
        Span { line, column, start, end }
    }

    pub(crate) fn point(&self, mark: Marker) -> Span {
        self.span(Marks::empty(mark))
    }

    /// Line and column after the last character.
    fn end_of_text(&self) -> (usize, usize) {
        let text = self.text;
        let breaks = text.matches(['\n', '\r']).count() - text.matches("\r\n").count();
        let last = text.rsplit(['\n', '\r']).next().unwrap_or_default();
        (breaks + 1, last.chars().count() + 1)
    }

    fn byte(&self, character: usize) -> usize {
        let length = self.text.len();
        if self.starts.is_empty() {
            character.min(length)
        } else {
            self.starts.get(character).copied().unwrap_or(length)
        }
    }
}
