//! Words, quoted texts and marks, which nearly all languages are made of.

use super::dialect::Dialect;
use super::names::is_name_byte;

/// A piece of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) start: usize,
    pub(super) end: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A name, a number, or names with dots between them.
    Word,
    /// What stands between quotes, without them.
    Text,
    /// A mark of one byte.
    Mark(u8),
    /// The end of a line.
    Newline,
}

/// What a language has for quotes and comments.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "a language has each or has it not")]
struct Habits {
    hash: bool,
    slashes: bool,
    single: bool,
    triple: bool,
    /// Marks that a word may hold.
    within: &'static [u8],
}

impl Habits {
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

/// Takes a part of a text apart.
pub(super) struct Lexer<'t, 'c> {
    bytes: &'t [u8],
    at: usize,
    end: usize,
    habits: Habits,
    comments: &'c mut Vec<(usize, usize)>,
}

impl<'t, 'c> Lexer<'t, 'c> {
    pub(super) fn new(
        text: &'t str,
        start: usize,
        end: usize,
        dialect: Dialect,
        comments: &'c mut Vec<(usize, usize)>,
    ) -> Self {
        Self { bytes: text.as_bytes(), at: start, end, habits: Habits::of(dialect), comments }
    }

    fn byte(&self, offset: usize) -> Option<u8> {
        let at = self.at.checked_add(offset)?;
        (at < self.end).then(|| self.bytes.get(at).copied())?
    }

    /// The rest of the line is a comment.
    fn comment(&mut self, start: usize) {
        let rest = self.bytes.get(start..self.end).unwrap_or_default();
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
        is_name_byte(byte) || byte >= 0x80 || self.habits.within.contains(&byte)
    }

    fn word(&mut self) -> Token {
        let start = self.at;
        while self.byte(0).is_some_and(|byte| self.is_word(byte)) {
            self.at += 1;
        }
        Token { kind: Kind::Word, start, end: self.at }
    }

    /// A text between quotes. One that is not closed ends with its line.
    fn quoted(&mut self, quote: u8) -> Token {
        let triple = self.habits.triple && self.byte(1) == Some(quote) && self.byte(2) == Some(quote);
        let width = if triple { 3 } else { 1 };
        self.at += width;
        let start = self.at;
        while let Some(byte) = self.byte(0) {
            let closes =
                byte == quote && (!triple || self.byte(1) == Some(quote) && self.byte(2) == Some(quote));
            if closes {
                let end = self.at;
                self.at += width;
                return Token { kind: Kind::Text, start, end };
            }
            if byte == b'\n' && !triple {
                break;
            }
            self.at =
                (self.at + if byte == b'\\' && self.byte(1) != Some(b'\n') { 2 } else { 1 }).min(self.end);
        }
        let mut end = self.at;
        if end > start && self.bytes.get(end - 1) == Some(&b'\r') {
            end -= 1;
        }
        Token { kind: Kind::Text, start, end }
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
                    return Some(Token { kind: Kind::Newline, start, end: self.at });
                }
                b' ' | b'\t' | b'\r' => self.at += 1,
                b'#' if self.habits.hash => self.comment(start),
                b'/' if self.habits.slashes && self.byte(1) == Some(b'/') => self.comment(start),
                b'/' if self.habits.slashes && self.byte(1) == Some(b'*') => self.block_comment(start),
                b'"' => return Some(self.quoted(byte)),
                b'\'' if self.habits.single => return Some(self.quoted(byte)),
                _ if self.is_word(byte) => {
                    let word = self.word();
                    let quote = matches!(self.byte(0), Some(b'"' | b'\''));
                    // r"…" and f'…' of Python are texts.
                    if quote && word.end - word.start <= 2 && self.habits.triple {
                        continue;
                    }
                    return Some(word);
                }
                _ => {
                    self.at += 1;
                    return Some(Token { kind: Kind::Mark(byte), start, end: self.at });
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str, dialect: Dialect) -> Vec<(Kind, &str)> {
        let mut comments = Vec::new();
        let lexer = Lexer::new(text, 0, text.len(), dialect, &mut comments);
        lexer.map(|token| (token.kind, &text[token.start..token.end])).collect()
    }

    #[test]
    fn quotes_and_comments_are_those_of_the_language() {
        assert_eq!(
            tokens("size = \"a # b\" # it's\n", Dialect::Terraform),
            [(Kind::Word, "size"), (Kind::Mark(b'='), "="), (Kind::Text, "a # b"), (Kind::Newline, "\n"),]
        );
        assert_eq!(
            tokens("f'x' + '''y\nz'''", Dialect::Python),
            [(Kind::Text, "x"), (Kind::Mark(b'+'), "+"), (Kind::Text, "y\nz")]
        );
        assert_eq!(tokens("a /* b\n */ c // d", Dialect::Bicep), [(Kind::Word, "a"), (Kind::Word, "c")]);
    }

    #[test]
    fn a_quote_that_is_not_closed_ends_with_its_line() {
        assert_eq!(
            tokens("\"a\\\"b\r\nc", Dialect::Json),
            [(Kind::Text, "a\\\"b"), (Kind::Newline, "\n"), (Kind::Word, "c")]
        );
    }
}
