//! Splits text into words, quoted strings and punctuation, which nearly all languages share.

use super::blocks::Block;
use super::dialect::Dialect;
use super::tree::Range;
use crate::read::names::is_name_byte;
use cudock_base::bug::Parts;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) kind: TokenKind,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl Token {
    pub(in crate::read) fn range(self) -> Range {
        (self.start, self.end)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenKind {
    /// A name, a number, or names with dots between them.
    Word,
    /// A quoted string, without the quotes.
    Text,
    /// One byte of punctuation.
    Mark(u8),
    /// The end of a line.
    Newline,
}

/// The quotes and comments of a language.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "independent features of a language")]
struct LexicalRules {
    hash: bool,
    slashes: bool,
    single: bool,
    triple: bool,
    /// Punctuation allowed in a word.
    within: &'static [u8],
}

impl LexicalRules {
    fn of(dialect: Dialect) -> Self {
        let none = Self { hash: false, slashes: false, single: false, triple: false, within: b"." };
        match dialect {
            Dialect::Python => Self { hash: true, single: true, triple: true, ..none },
            Dialect::Terraform => Self { hash: true, slashes: true, ..none },
            Dialect::Bicep => Self { slashes: true, single: true, triple: true, ..none },
            Dialect::Json => Self { slashes: true, ..none },
            Dialect::Yaml => Self { hash: true, single: true, within: b".-/$", ..none },
            Dialect::Prose | Dialect::Shell | Dialect::Plain => Self { single: true, ..none },
        }
    }
}

/// Iterates over the tokens of a block, and collects its comments.
pub(in crate::read) struct Lexer<'t, 'c> {
    bytes: &'t [u8],
    at: usize,
    end: usize,
    rules: LexicalRules,
    comments: &'c mut Vec<Range>,
}

impl<'t, 'c> Lexer<'t, 'c> {
    pub(in crate::read) fn new(text: &'t str, block: &Block, comments: &'c mut Vec<Range>) -> Self {
        let Block { start, end, dialect } = *block;
        Self { bytes: text.as_bytes(), at: start, end, rules: LexicalRules::of(dialect), comments }
    }

    fn byte(&self, offset: usize) -> Option<u8> {
        let at = self.at.checked_add(offset)?;
        (at < self.end).then(|| self.bytes.get(at).copied())?
    }

    /// Skips a comment to the end of the line.
    fn comment(&mut self, start: usize) {
        let rest = self.bytes.part(start..self.end);
        self.at = start + rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
        self.comments.push((start, self.at));
    }

    fn block_comment(&mut self, start: usize) {
        self.at = start + 2;
        while self.at < self.end && !(self.byte(0) == Some(b'*') && self.byte(1) == Some(b'/')) {
            self.at += 1;
        }
        self.at = (self.at + 2).min(self.end);
        self.comments.push((start, self.at));
    }

    fn is_word(&self, byte: u8) -> bool {
        is_name_byte(byte) || byte >= 0x80 || self.rules.within.contains(&byte)
    }

    fn word(&mut self) -> Token {
        let start = self.at;
        while self.byte(0).is_some_and(|byte| self.is_word(byte)) {
            self.at += 1;
        }
        Token { kind: TokenKind::Word, start, end: self.at }
    }

    /// Reads a quoted string. One that is not closed ends with its line.
    fn quoted(&mut self, quote: u8) -> Token {
        let triple = self.rules.triple && self.byte(1) == Some(quote) && self.byte(2) == Some(quote);
        let width = if triple { 3 } else { 1 };
        self.at += width;
        let start = self.at;
        while let Some(byte) = self.byte(0) {
            let closes =
                byte == quote && (!triple || self.byte(1) == Some(quote) && self.byte(2) == Some(quote));
            if closes {
                let end = self.at;
                self.at += width;
                return Token { kind: TokenKind::Text, start, end };
            }
            if byte == b'\n' && !triple {
                break;
            }
            self.at =
                (self.at + if byte == b'\\' && self.byte(1) != Some(b'\n') { 2 } else { 1 }).min(self.end);
        }
        let before_break = self.bytes.get(start..self.at).is_some_and(|text| text.ends_with(b"\r"));
        Token { kind: TokenKind::Text, start, end: self.at - usize::from(before_break) }
    }
}

impl Iterator for Lexer<'_, '_> {
    type Item = Token;

    fn next(&mut self) -> Option<Token> {
        loop {
            let start = self.at;
            let byte = self.byte(0)?;
            match byte {
                b'\n' => {
                    self.at += 1;
                    return Some(Token { kind: TokenKind::Newline, start, end: self.at });
                }
                b' ' | b'\t' | b'\r' => self.at += 1,
                b'#' if self.rules.hash => self.comment(start),
                b'/' if self.rules.slashes && self.byte(1) == Some(b'/') => self.comment(start),
                b'/' if self.rules.slashes && self.byte(1) == Some(b'*') => self.block_comment(start),
                b'"' => return Some(self.quoted(byte)),
                b'\'' if self.rules.single => return Some(self.quoted(byte)),
                _ if self.is_word(byte) => {
                    let word = self.word();
                    let quote = matches!(self.byte(0), Some(b'"' | b'\''));
                    // r"…" and f'…' are strings in Python.
                    if quote && word.end - word.start <= 2 && self.rules.triple {
                        continue;
                    }
                    return Some(word);
                }
                _ => {
                    self.at += 1;
                    return Some(Token { kind: TokenKind::Mark(byte), start, end: self.at });
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str, dialect: Dialect) -> Vec<(TokenKind, &str)> {
        let mut comments = Vec::new();
        let lexer = Lexer::new(text, &Block { start: 0, end: text.len(), dialect }, &mut comments);
        lexer.map(|token| (token.kind, &text[token.start..token.end])).collect()
    }

    #[test]
    fn quotes_and_comments_are_those_of_the_language() {
        use TokenKind::{Mark, Newline, Text, Word};
        type Tokens = &'static [(TokenKind, &'static str)];
        let cases: [(Dialect, &str, Tokens); 4] = [
            (
                Dialect::Terraform,
                "size = \"a # b\" # it's\n",
                &[(Word, "size"), (Mark(b'='), "="), (Text, "a # b"), (Newline, "\n")],
            ),
            (Dialect::Python, "f'x' + '''y\nz'''", &[(Text, "x"), (Mark(b'+'), "+"), (Text, "y\nz")]),
            (Dialect::Bicep, "a /* b\n */ c // d", &[(Word, "a"), (Word, "c")]),
            // A quote that is not closed ends with its line.
            (Dialect::Json, "\"a\\\"b\r\nc", &[(Text, "a\\\"b"), (Newline, "\n"), (Word, "c")]),
        ];
        for (dialect, text, expected) in cases {
            assert_eq!(tokens(text, dialect), expected, "{text}");
        }
    }
}
