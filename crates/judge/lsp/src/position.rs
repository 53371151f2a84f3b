//! Converts between bytes of a text and the lines and UTF-16 columns of the protocol.

use cudock_base::bug::Parts;
use std::ops::Range;

use cudock_base::Span;
use lsp_types::Position;

/// The lines of a text, as the protocol counts them: `\n`, `\r\n` and `\r` end one.
pub(crate) struct Lines<'t> {
    text: &'t str,
    /// The bytes of each line without its end.
    lines: Vec<Range<usize>>,
}

impl<'t> Lines<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        let mut lines = Vec::new();
        let mut start = 0;
        let bytes = text.as_bytes();
        for (at, byte) in bytes.iter().enumerate() {
            // The `\n` of `\r\n` is before the start of the next line.
            if at < start || !matches!(byte, b'\n' | b'\r') {
                continue;
            }
            lines.push(start..at);
            start = if *byte == b'\r' && bytes.get(at + 1) == Some(&b'\n') { at + 2 } else { at + 1 };
        }
        lines.push(start..text.len());
        Self { text, lines }
    }

    /// The byte at a position; one beyond its line or the text is the end of it.
    pub(crate) fn offset(&self, position: Position) -> usize {
        let line = usize::try_from(position.line).ok().and_then(|line| self.lines.get(line));
        let Some(line) = line else { return self.text.len() };
        let mut units = 0;
        let text = self.text.part(line.clone());
        for (at, character) in text.char_indices() {
            if units >= position.character {
                return line.start + at;
            }
            units += u32::try_from(character.len_utf16()).unwrap_or(1);
        }
        line.end
    }

    pub(crate) fn position(&self, at: usize) -> Position {
        let index = self.lines.partition_point(|line| line.start <= at).saturating_sub(1);
        let start = self.lines.get(index).map_or(0, |line| line.start);
        let units = self.text.part(start..at).chars().map(char::len_utf16).sum();
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        Position { line: number(index), character: number(units) }
    }

    pub(crate) fn range(&self, bytes: Range<usize>) -> lsp_types::Range {
        lsp_types::Range { start: self.position(bytes.start), end: self.position(bytes.end) }
    }

    pub(crate) fn span(&self, span: Span) -> lsp_types::Range {
        self.range(span.bytes())
    }

    pub(crate) fn bytes(&self, range: lsp_types::Range) -> Range<usize> {
        let start = self.offset(range.start);
        start..self.offset(range.end).max(start)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn columns_count_utf_16_units_and_positions_beyond_a_line_are_its_end() {
        let lines = Lines::new("aé𝄞b\r\nc\rd\n");
        for (line, character, offset) in [
            (0, 0, 0),
            (0, 1, 1),
            (0, 2, 3),
            (0, 4, 7),
            (0, 5, 8),
            (1, 0, 10),
            (1, 1, 11),
            (2, 1, 13),
            (3, 0, 14),
        ] {
            assert_eq!(lines.offset(Position { line, character }), offset, "{line}:{character}");
            assert_eq!(lines.position(offset), Position { line, character }, "{offset}");
        }
        // Inside of a surrogate pair, beyond a line, beyond the text.
        for (line, character, offset) in [(0, 3, 7), (0, 99, 8), (9, 0, 14), (u32::MAX, u32::MAX, 14)] {
            assert_eq!(lines.offset(Position { line, character }), offset, "{line}:{character}");
        }
    }

    proptest! {
        #[test]
        fn positions_convert_back(text in "[a-c é𝄞\r\n]{0,30}", at in 0..100_usize) {
            let lines = Lines::new(&text);
            let at = (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap();
            let is_inside_of_an_end = text[..at].ends_with('\r') && text[at..].starts_with('\n');
            if !is_inside_of_an_end {
                prop_assert_eq!(lines.offset(lines.position(at)), at);
            }
        }
    }
}
