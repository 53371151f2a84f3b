//! A JSON parser that only moves forward.

use std::borrow::Cow;
use std::fmt::Display;
use std::ops::Range;

use super::{JsonError, digits, found, number, string};
use crate::RequestError;

/// The key of an object that stands for bytes, in TensorFlow Serving's format.
pub(super) const BASE64_KEY: &[u8] = b"\"b64\"";
/// Deepest nesting of skipped values.
const DEPTH: usize = 64;

/// A position in a JSON text that only moves forward.
#[derive(Clone, Debug)]
pub struct Cursor<'text> {
    pub(crate) text: &'text [u8],
    pub(crate) at: usize,
}

impl<'text> Cursor<'text> {
    pub fn new(text: &'text [u8]) -> Self {
        Self { text, at: 0 }
    }

    /// Creates a cursor at the start of a part of this text. Offsets remain those of the whole text.
    pub(crate) fn part(&self, range: Range<usize>) -> Self {
        Self { text: self.text.get(..range.end).unwrap_or(self.text), at: range.start }
    }

    /// Skips spaces and returns the next byte.
    pub(crate) fn peek(&mut self) -> Option<u8> {
        self.at = skip_space(self.text, self.at);
        self.text.get(self.at).copied()
    }

    /// Consumes this byte, if it is the next one.
    pub(crate) fn eat(&mut self, byte: u8) -> bool {
        let eaten = self.peek() == Some(byte);
        self.at += usize::from(eaten);
        eaten
    }

    pub(crate) fn expect(&mut self, byte: u8, path: &dyn Display) -> Result<(), RequestError> {
        if self.eat(byte) { Ok(()) } else { Err(self.unexpected(path, &format!("`{}`", char::from(byte)))) }
    }

    /// Checks that nothing follows.
    pub fn end(&mut self) -> Result<(), RequestError> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.unexpected(&"", "the end")),
        }
    }

    pub(crate) fn unexpected(&self, path: &dyn Display, expected: &str) -> RequestError {
        self.error(path, format!("expected {expected}, found {}", found(self.text, self.at)))
    }

    /// An error at the current offset.
    pub(crate) fn error(&self, path: &dyn Display, message: impl Into<String>) -> RequestError {
        RequestError::Body { path: path.to_string(), offset: self.at, message: message.into() }
    }

    fn json_error(&self, path: &dyn Display, message: JsonError) -> RequestError {
        self.error(path, message.describe(self.text, self.at, None))
    }

    /// Parses a value with `read`, which returns where it ends.
    fn value<T>(
        &mut self,
        path: &dyn Display,
        read: impl FnOnce(&'text [u8], usize) -> Result<(T, usize), JsonError>,
    ) -> Result<T, RequestError> {
        self.peek();
        let (value, end) = read(self.text, self.at).map_err(|message| self.json_error(path, message))?;
        self.at = end;
        Ok(value)
    }

    /// Parses a string. It is borrowed if it has no escapes.
    pub(crate) fn string(&mut self, path: &dyn Display) -> Result<Cow<'text, str>, RequestError> {
        self.value(path, string::read)
    }

    pub(crate) fn boolean(&mut self, path: &dyn Display) -> Result<bool, RequestError> {
        for (literal, value) in [(&b"true"[..], true), (b"false", false)] {
            if self.literal(literal) {
                return Ok(value);
            }
        }
        Err(self.json_error(path, JsonError::NotABoolean))
    }

    /// Consumes a null, if there is one: some clients write it for unused keys.
    pub(crate) fn null(&mut self) -> bool {
        self.literal(b"null")
    }

    /// Whether the next value is an object that stands for bytes: `{"b64": "…"}`.
    pub(crate) fn begins_base64(&self) -> bool {
        let mut ahead = self.clone();
        ahead.eat(b'{') && ahead.literal(BASE64_KEY) && ahead.eat(b':')
    }

    /// Whether the next value is an array of objects, which do not stand for bytes.
    pub(crate) fn begins_rows(&self) -> bool {
        let mut ahead = self.clone();
        ahead.eat(b'[') && ahead.peek() == Some(b'{') && !ahead.begins_base64()
    }

    pub(crate) fn number(&mut self, path: &dyn Display) -> Result<f64, RequestError> {
        self.value(path, number::read_f64)
    }

    /// Parses a non-negative integer.
    pub(crate) fn natural(&mut self, path: &dyn Display) -> Result<u64, RequestError> {
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
        let mut more = !self.eat(b'}');
        while more {
            let key = self.string(path)?;
            self.expect(b':', path)?;
            self.peek();
            value(self, key)?;
            more = self.more(path, b'}', "`,` or `}`")?;
        }
        Ok(())
    }

    /// Consumes the comma before another element, or `close` after the last one; returns whether another one follows.
    fn more(&mut self, path: &dyn Display, close: u8, expected: &str) -> Result<bool, RequestError> {
        let more = self.eat(b',');
        if more || self.eat(close) { Ok(more) } else { Err(self.unexpected(path, expected)) }
    }

    /// Parses an array with one call of `value` per element, which must consume it.
    pub(crate) fn array(
        &mut self,
        path: &dyn Display,
        mut value: impl FnMut(&mut Self, usize) -> Result<(), RequestError>,
    ) -> Result<(), RequestError> {
        self.expect(b'[', path)?;
        let (mut more, mut index) = (!self.eat(b']'), 0);
        while more {
            value(self, index)?;
            more = self.more(path, b']', "`,` or `]`")?;
            index += 1;
        }
        Ok(())
    }

    /// Skips any value and returns its span.
    pub(crate) fn span(&mut self, path: &dyn Display) -> Result<Range<usize>, RequestError> {
        self.peek();
        let first = self.at;
        self.skip(path)?;
        Ok(first..self.at)
    }

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

    /// Consumes these bytes, if they are next.
    pub(crate) fn literal(&mut self, literal: &[u8]) -> bool {
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
    /// The key if it is known, which must not be a duplicate.
    pub(crate) fn once(
        &mut self,
        known: &[&'static str],
        key: &str,
        cursor: &Cursor<'_>,
        path: &dyn Display,
    ) -> Result<Option<&'static str>, RequestError> {
        let Some(key) = known.iter().copied().find(|known| *known == key) else { return Ok(None) };
        if self.0.contains(&key) {
            return Err(cursor.error(path, format!("`{key}` is given twice")));
        }
        self.0.push(key);
        Ok(Some(key))
    }
}
