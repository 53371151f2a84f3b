//! A JSON parser that only moves forward.

use std::borrow::Cow;
use std::fmt::Display;
use std::ops::Range;

use super::{JsonError, digits, found, number, string};
use crate::RequestError;

/// Deepest nesting of skipped values.
const DEPTH: usize = 64;

/// A position in a JSON text that only moves forward.
#[derive(Clone, Debug)]
pub struct Cursor<'text> {
    pub(super) text: &'text [u8],
    pub(super) at: usize,
}

impl<'text> Cursor<'text> {
    /// Creates a cursor at the start of a text.
    pub fn new(text: &'text [u8]) -> Self {
        Self { text, at: 0 }
    }

    /// Creates a cursor at the start of a part of this text. Offsets remain those of the whole text.
    #[must_use]
    pub fn part(&self, range: Range<usize>) -> Self {
        Self { text: self.text.get(..range.end).unwrap_or(self.text), at: range.start }
    }

    /// The current offset.
    pub fn offset(&self) -> usize {
        self.at
    }

    /// Skips spaces and returns the next byte.
    pub fn peek(&mut self) -> Option<u8> {
        self.at = skip_space(self.text, self.at);
        self.text.get(self.at).copied()
    }

    /// Consumes this byte, if it is the next one.
    pub fn eat(&mut self, byte: u8) -> bool {
        let eaten = self.peek() == Some(byte);
        self.at += usize::from(eaten);
        eaten
    }

    /// Consumes this byte, or returns an error.
    pub(crate) fn expect(&mut self, byte: u8, path: &dyn Display) -> Result<(), RequestError> {
        if self.eat(byte) {
            return Ok(());
        }
        Err(self.error(path, format!("expected `{}`, found {}", char::from(byte), found(self.text, self.at))))
    }

    /// Checks that nothing follows.
    pub fn end(&mut self) -> Result<(), RequestError> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.error(&"", format!("expected the end, found {}", found(self.text, self.at)))),
        }
    }

    /// An error at the current offset.
    pub(crate) fn error(&self, path: &dyn Display, message: impl Into<String>) -> RequestError {
        RequestError::Body { path: path.to_string(), offset: self.at, message: message.into() }
    }

    pub(super) fn json_error(&self, path: &dyn Display, message: JsonError) -> RequestError {
        self.error(path, message.describe(self.text, self.at, None))
    }

    /// Parses a string. It is borrowed if it has no escapes.
    pub fn string(&mut self, path: &dyn Display) -> Result<Cow<'text, str>, RequestError> {
        self.peek();
        let (text, end) =
            string::read(self.text, self.at).map_err(|message| self.json_error(path, message))?;
        self.at = end;
        Ok(text)
    }

    /// Parses a boolean.
    pub fn boolean(&mut self, path: &dyn Display) -> Result<bool, RequestError> {
        for (literal, value) in [(&b"true"[..], true), (b"false", false)] {
            if self.literal(literal) {
                return Ok(value);
            }
        }
        Err(self.json_error(path, JsonError::NotABoolean))
    }

    /// Consumes a null, if there is one: some clients write it for unused keys.
    pub fn null(&mut self) -> bool {
        self.literal(b"null")
    }

    /// Parses a number.
    pub fn number(&mut self, path: &dyn Display) -> Result<f64, RequestError> {
        self.peek();
        let (value, end) =
            number::read_f64(self.text, self.at).map_err(|message| self.json_error(path, message))?;
        self.at = end;
        Ok(value)
    }

    /// Parses a non-negative integer.
    pub fn natural(&mut self, path: &dyn Display) -> Result<u64, RequestError> {
        self.peek();
        let (value, end) = number::read_integer::<u64>(self.text, self.at).map_err(|message| {
            let found = message.describe(self.text, self.at, None);
            match message {
                JsonError::NotWhole | JsonError::OutOfRange => {
                    self.error(path, format!("expected a non-negative integer: {found}"))
                }
                _ => self.error(path, found),
            }
        })?;
        self.at = end;
        Ok(value)
    }

    /// Parses an object with one call of `value` per key, which must consume the value.
    pub(crate) fn object(
        &mut self,
        path: &dyn Display,
        mut value: impl FnMut(&mut Self, Cow<'text, str>) -> Result<(), RequestError>,
    ) -> Result<(), RequestError> {
        self.expect(b'{', path)?;
        if self.eat(b'}') {
            return Ok(());
        }
        loop {
            let key = self.string(path)?;
            self.expect(b':', path)?;
            self.peek();
            value(self, key)?;
            if self.eat(b',') {
                continue;
            }
            if self.eat(b'}') {
                return Ok(());
            }
            return Err(
                self.error(path, format!("expected `,` or `}}`, found {}", found(self.text, self.at)))
            );
        }
    }

    /// Parses an array with one call of `value` per element, which must consume it.
    pub(crate) fn array(
        &mut self,
        path: &dyn Display,
        mut value: impl FnMut(&mut Self, usize) -> Result<(), RequestError>,
    ) -> Result<(), RequestError> {
        self.expect(b'[', path)?;
        if self.eat(b']') {
            return Ok(());
        }
        for index in 0.. {
            value(self, index)?;
            if self.eat(b',') {
                continue;
            }
            if self.eat(b']') {
                return Ok(());
            }
            return Err(self.error(path, format!("expected `,` or `]`, found {}", found(self.text, self.at))));
        }
        Ok(())
    }

    /// Skips any value and returns its span.
    pub fn span(&mut self, path: &dyn Display) -> Result<Range<usize>, RequestError> {
        self.peek();
        let first = self.at;
        self.skip(path)?;
        Ok(first..self.at)
    }

    /// Skips any value.
    pub fn skip(&mut self, path: &dyn Display) -> Result<(), RequestError> {
        // Open brackets, as the bytes that close them.
        let mut open: Vec<u8> = Vec::new();
        loop {
            match self.peek() {
                Some(byte @ (b'[' | b'{')) => {
                    if open.len() == DEPTH {
                        return Err(self.error(path, format!("nested deeper than {DEPTH}")));
                    }
                    self.at += 1;
                    // Two further in ASCII.
                    let close = byte + 2;
                    if !self.eat(close) {
                        open.push(close);
                        if close == b'}' {
                            self.key(path)?;
                        }
                        continue;
                    }
                }
                Some(b'"') => _ = self.string(path)?,
                Some(b't' | b'f') => _ = self.boolean(path)?,
                Some(b'n') if self.null() => {}
                _ => {
                    let parts = digits::split_number(self.text, self.at);
                    self.at = parts.map_err(|message| self.json_error(path, message))?.end;
                }
            }
            loop {
                let Some(&close) = open.last() else { return Ok(()) };
                if self.eat(b',') {
                    if close == b'}' {
                        self.key(path)?;
                    }
                    break;
                }
                self.expect(close, path)?;
                open.pop();
            }
        }
    }

    fn key(&mut self, path: &dyn Display) -> Result<(), RequestError> {
        self.string(path)?;
        self.expect(b':', path)
    }

    fn literal(&mut self, literal: &[u8]) -> bool {
        self.peek();
        let there = self.text.get(self.at..).is_some_and(|rest| rest.starts_with(literal));
        self.at += if there { literal.len() } else { 0 };
        there
    }
}

/// The first offset from `at` on that is not a space.
#[inline]
pub(super) fn skip_space(text: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\n' | b'\r' | b'\t') = text.get(at) {
        at += 1;
    }
    at
}

/// The keys of an object so far, to reject duplicates.
#[derive(Debug, Default)]
pub(crate) struct SeenKeys(Vec<&'static str>);

impl SeenKeys {
    /// Returns an error if the key is a duplicate.
    pub(crate) fn once(
        &mut self,
        key: &'static str,
        cursor: &Cursor<'_>,
        path: &dyn Display,
    ) -> Result<(), RequestError> {
        if self.0.contains(&key) {
            return Err(cursor.error(path, format!("`{key}` is given twice")));
        }
        self.0.push(key);
        Ok(())
    }
}
