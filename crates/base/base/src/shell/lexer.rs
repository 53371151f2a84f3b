//! Splits shell text into words, quotes and substitutions.

use crate::bug::Parts;
use std::ops::Range;

use smallvec::SmallVec;

use super::word::{Part, Word};

/// The limit for text in braces, so that many unclosed braces cost no more than one.
const MAX_VARIABLE: usize = 4096;
/// The limit in snippets, where a `$` is often a literal.
const MAX_IN_SNIPPET: usize = 200;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    Script,
    /// A command in another text, in any shell, and the quote around it. Quotes that are not closed are apostrophes.
    Snippet {
        quote: Option<u8>,
    },
}

#[derive(Debug)]
pub(super) struct Lexer<'t> {
    text: &'t str,
    at: usize,
    /// The end of the text, or of the current quotes.
    limit: usize,
    style: Style,
}

impl<'t> Lexer<'t> {
    pub(super) fn new(text: &'t str, at: usize, style: Style) -> Self {
        Self { text, at, limit: text.len(), style }
    }

    pub(super) fn position(&self) -> usize {
        self.at
    }

    pub(super) fn set_position(&mut self, at: usize) {
        self.at = at;
    }

    pub(super) fn text(&self) -> &'t str {
        self.text
    }

    pub(super) fn rest(&self) -> &'t str {
        self.text.part(self.at..self.limit)
    }

    pub(super) fn byte(&self, offset: usize) -> Option<u8> {
        self.text.as_bytes().get(..self.limit)?.get(self.at + offset).copied()
    }

    fn is_script(&self) -> bool {
        self.style == Style::Script
    }

    /// The length of a line continuation: the escape of a shell, then the end of the line.
    fn continuation(&self) -> Option<usize> {
        let is_escape = match self.byte(0)? {
            b'\\' => true,
            b'`' | b'^' => !self.is_script(),
            _ => false,
        };
        match (is_escape, self.byte(1), self.byte(2)) {
            (true, Some(b'\n'), _) => Some(2),
            (true, Some(b'\r'), Some(b'\n')) => Some(3),
            _ => None,
        }
    }

    /// Goes to the next word, operator, comment or end of a line.
    pub(super) fn skip_blanks(&mut self) {
        loop {
            match self.byte(0) {
                Some(b' ' | b'\t') => self.at += 1,
                Some(b'\r') if self.is_script() => self.at += 1,
                _ => match self.continuation() {
                    Some(length) => self.at += length,
                    None => return,
                },
            }
        }
    }

    /// Whether the command ends here.
    pub(super) fn is_at_end(&self) -> bool {
        match self.byte(0) {
            None | Some(b'\n' | b'\r' | b'#') => true,
            Some(byte) => self.is_operator(byte),
        }
    }

    fn is_operator(&self, byte: u8) -> bool {
        match byte {
            b';' | b'|' | b'&' | b'(' | b')' | b'<' | b'>' => true,
            b'`' => !self.is_script(),
            _ => self.is_closing_quote(byte),
        }
    }

    /// Whether it is the quote around a snippet.
    fn is_closing_quote(&self, byte: u8) -> bool {
        matches!(self.style, Style::Snippet { quote: Some(quote) } if quote == byte)
    }

    /// The word that starts here.
    pub(super) fn word(&mut self) -> Word<'t> {
        let start = self.at;
        let mut parts = SmallVec::new();
        while let Some(byte) = self.byte(0) {
            if let Some(length) = self.continuation() {
                // A word continues if the next line starts without a blank.
                self.at += length;
                continue;
            }
            if matches!(byte, b' ' | b'\t' | b'\n' | b'\r') || self.is_operator(byte) {
                break;
            }
            let part = match byte {
                b'\'' | b'"' => self.quoted(byte),
                b'$' | b'`' => self.substitution(),
                b'\\' => {
                    self.at += 1;
                    self.rest().chars().next().map(|escaped| self.literal(escaped.len_utf8()))
                }
                _ => None,
            };
            match part {
                Some(part) => parts.push(part),
                None if self.byte(0).is_none() => {}
                None => {
                    let length =
                        self.length_until(|byte| ends_literal(*byte) || self.is_closing_quote(*byte));
                    let literal = self.literal(length);
                    parts.push(literal);
                }
            }
        }
        Word { parts, span: start..self.at }
    }

    /// The length of literal text up to a byte that ends it; at least one character.
    fn length_until(&self, ends: impl Fn(&u8) -> bool) -> usize {
        let rest = self.rest();
        let first = rest.chars().next().map_or(0, char::len_utf8);
        first + rest.bytes().skip(first).take_while(|byte| !ends(byte)).count()
    }

    fn literal(&mut self, length: usize) -> Part<'t> {
        let span = self.at..(self.at + length).min(self.text.len());
        self.at = span.end;
        Part::Literal { text: self.text.get(span.clone()).unwrap_or_default(), span }
    }

    /// The quoted part at this position; `None` for an unclosed quote in a snippet.
    fn quoted(&mut self, quote: u8) -> Option<Part<'t>> {
        let start = self.at + 1;
        let end = self.closing(quote);
        if end.is_none() && !self.is_script() {
            return None;
        }
        self.at = start;
        let limit = self.limit;
        self.limit = end.unwrap_or(limit);
        let mut parts = Vec::new();
        if quote == b'"' {
            self.double(&mut parts);
        } else if self.at < self.limit {
            parts.push(self.literal(self.limit - self.at));
        }
        let inside = start..self.limit;
        self.at = end.map_or(limit, |end| end + 1);
        self.limit = limit;
        Some(Part::Quoted { quote, parts, span: inside })
    }

    /// The position of the closing quote.
    fn closing(&self, quote: u8) -> Option<usize> {
        let rest = self.rest();
        if quote == b'\'' {
            return rest.get(1..)?.find('\'').map(|length| self.at + 1 + length);
        }
        let bytes = rest.as_bytes();
        let mut offset = 1;
        loop {
            match bytes.get(offset)? {
                b'"' => return Some(self.at + offset),
                b'\\' => offset += 2,
                // Quotes within a substitution do not close it.
                b'$' if self.is_script() && bytes.get(offset + 1) == Some(&b'(') => {
                    offset += parentheses(rest.get(offset..)?)?;
                }
                _ => offset += 1,
            }
        }
    }

    /// The parts of a text in double quotes, up to the limit.
    fn double(&mut self, parts: &mut Vec<Part<'t>>) {
        while let Some(byte) = self.byte(0) {
            match byte {
                b'\\' if matches!(self.byte(1), Some(b'"' | b'\\' | b'$' | b'`')) => {
                    self.at += 1;
                    parts.push(self.literal(1));
                }
                b'\\' if self.continuation().is_some() => self.at += self.continuation().unwrap_or(1),
                _ => {
                    let part = if matches!(byte, b'$' | b'`') { self.substitution() } else { None };
                    let part = part.unwrap_or_else(|| {
                        let length = self.length_until(|byte| b"\\$`".contains(byte));
                        self.literal(length)
                    });
                    parts.push(part);
                }
            }
        }
    }

    /// The variable or substitution at this position; `None` for a literal sign.
    fn substitution(&mut self) -> Option<Part<'t>> {
        let rest = self.rest();
        let is_script = self.is_script();
        let is_substitution = rest.starts_with('`') || rest.starts_with("$(");
        let length = match (self.byte(0)?, self.byte(1)) {
            (b'`', _) if is_script => rest.get(1..)?.find('`').map_or(rest.len(), |end| end + 2),
            (b'`', _) => return None,
            (_, Some(b'(')) if is_script => parentheses(rest).unwrap_or(rest.len()),
            (_, Some(b'(')) => parentheses(nearby(rest))?,
            (_, Some(b'{')) if is_script => match closing_brace(rest.get(2..)?, MAX_VARIABLE) {
                Ok(length) => length + 3,
                Err(seen) => seen + 2,
            },
            (_, Some(b'{')) => closing_brace(nearby(rest).get(2..)?, MAX_IN_SNIPPET).ok()? + 3,
            (_, Some(b'@' | b'*' | b'?' | b'#' | b'!' | b'$' | b'-')) if is_script => 2,
            (_, Some(first)) if first.is_ascii_digit() => 2,
            (_, Some(first)) if is_name_byte(first) => {
                1 + rest.bytes().skip(1).take_while(|byte| is_name_byte(*byte)).count()
            }
            _ => return None,
        };
        let span: Range<usize> = self.at..self.at + length;
        self.at = span.end;
        Some(if is_substitution { Part::Substitution { span } } else { Part::Variable { span } })
    }
}

/// Whether literal text outside quotes ends before this byte.
fn ends_literal(byte: u8) -> bool {
    let is_special = matches!(byte, b'\'' | b'"' | b'$' | b'`' | b'\\' | b'^');
    is_special
        || matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | b';' | b'|' | b'&' | b'(' | b')' | b'<' | b'>')
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// The line, up to the limit for variables.
fn nearby(text: &str) -> &str {
    let line = text.split('\n').next().unwrap_or_default();
    line.get(..line.floor_char_boundary(MAX_IN_SNIPPET)).unwrap_or_default()
}

/// The length of `$(…)` with nested ones; `None` if it is not closed.
fn parentheses(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    let mut quote = None;
    let mut is_escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        let was_escaped = std::mem::take(&mut is_escaped);
        match (quote, byte) {
            _ if was_escaped => {}
            (None | Some(b'"'), b'\\') => is_escaped = true,
            (Some(open), _) => quote = Some(open).filter(|open| *open != byte),
            (None, b'\'' | b'"') => quote = Some(byte),
            (None, b'(') => depth += 1,
            (None, b')') if depth <= 1 => return Some(at + 1),
            (None, b')') => depth -= 1,
            _ => {}
        }
    }
    None
}

/// The length of the text inside braces, or the number of bytes scanned.
fn closing_brace(inside: &str, max: usize) -> Result<usize, usize> {
    let mut depth = 0_usize;
    for (at, ch) in inside.char_indices() {
        match ch {
            _ if at >= max => return Err(at),
            '{' => depth += 1,
            '}' if depth == 0 => return Ok(at),
            '}' => depth -= 1,
            _ => {}
        }
    }
    Err(inside.len())
}
