//! A place in a JSON text that only moves forward.

use std::borrow::Cow;
use std::fmt::Display;
use std::ops::Range;

use super::{Problem, digits, found, number, string};
use crate::Malformed;

/// How deep the values may nest that are passed over.
const DEPTH: usize = 64;

/// A place in a JSON text that only moves forward.
#[derive(Clone, Debug)]
pub struct Cursor<'text> {
    pub(super) text: &'text [u8],
    pub(super) at: usize,
}

impl<'text> Cursor<'text> {
    /// At the beginning of a text.
    pub fn new(text: &'text [u8]) -> Self {
        Self { text, at: 0 }
    }

    /// At the beginning of a part of this text. Offsets stay those of the whole.
    #[must_use]
    pub fn part(&self, range: Range<usize>) -> Self {
        Self { text: self.text.get(..range.end).unwrap_or(self.text), at: range.start }
    }

    /// How far it has come.
    pub fn offset(&self) -> usize {
        self.at
    }

    /// The next byte that is no space; the cursor is then at it.
    pub fn peek(&mut self) -> Option<u8> {
        self.at = skip_space(self.text, self.at);
        self.text.get(self.at).copied()
    }

    /// Goes past this byte, if it is the next one.
    pub fn eat(&mut self, byte: u8) -> bool {
        let eaten = self.peek() == Some(byte);
        self.at += usize::from(eaten);
        eaten
    }

    /// Goes past this byte, which has to be there.
    pub(crate) fn expect(&mut self, byte: u8, place: &dyn Display) -> Result<(), Malformed> {
        if self.eat(byte) {
            return Ok(());
        }
        Err(self
            .wrong(place, format!("expected `{}`, found {}", char::from(byte), found(self.text, self.at))))
    }

    /// Makes sure that nothing follows.
    pub fn end(&mut self) -> Result<(), Malformed> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.wrong(&"", format!("expected the end, found {}", found(self.text, self.at)))),
        }
    }

    /// An error about what is here.
    pub(crate) fn wrong(&self, place: &dyn Display, problem: impl Into<String>) -> Malformed {
        Malformed::Body { place: place.to_string(), offset: self.at, problem: problem.into() }
    }

    pub(super) fn trouble(&self, place: &dyn Display, problem: Problem) -> Malformed {
        self.wrong(place, problem.describe(self.text, self.at, None))
    }

    /// A string. It is borrowed if it has no escapes.
    pub fn string(&mut self, place: &dyn Display) -> Result<Cow<'text, str>, Malformed> {
        self.peek();
        let (text, end) = string::read(self.text, self.at).map_err(|problem| self.trouble(place, problem))?;
        self.at = end;
        Ok(text)
    }

    /// True or false.
    pub fn boolean(&mut self, place: &dyn Display) -> Result<bool, Malformed> {
        for (word, value) in [(&b"true"[..], true), (b"false", false)] {
            if self.word(word) {
                return Ok(value);
            }
        }
        Err(self.trouble(place, Problem::NotABoolean))
    }

    /// Goes past a null, if it is there: what some writers put for a key that is not used.
    pub fn null(&mut self) -> bool {
        self.word(b"null")
    }

    /// A number of any kind.
    pub fn number(&mut self, place: &dyn Display) -> Result<f64, Malformed> {
        self.peek();
        let (value, end) =
            number::read_f64(self.text, self.at).map_err(|problem| self.trouble(place, problem))?;
        self.at = end;
        Ok(value)
    }

    /// A whole number from zero up.
    pub fn natural(&mut self, place: &dyn Display) -> Result<u64, Malformed> {
        self.peek();
        let (value, end) = number::read_integer::<u64>(self.text, self.at).map_err(|problem| {
            let found = problem.describe(self.text, self.at, None);
            match problem {
                Problem::NotWhole | Problem::OutOfRange => {
                    self.wrong(place, format!("expected a whole number from 0 up: {found}"))
                }
                _ => self.wrong(place, found),
            }
        })?;
        self.at = end;
        Ok(value)
    }

    /// The values of an object, one call of `value` for each key. It is called at the value and has to go past it.
    pub(crate) fn object(
        &mut self,
        place: &dyn Display,
        mut value: impl FnMut(&mut Self, Cow<'text, str>) -> Result<(), Malformed>,
    ) -> Result<(), Malformed> {
        self.expect(b'{', place)?;
        if self.eat(b'}') {
            return Ok(());
        }
        loop {
            let key = self.string(place)?;
            self.expect(b':', place)?;
            self.peek();
            value(self, key)?;
            if self.eat(b',') {
                continue;
            }
            if self.eat(b'}') {
                return Ok(());
            }
            return Err(
                self.wrong(place, format!("expected `,` or `}}`, found {}", found(self.text, self.at)))
            );
        }
    }

    /// The values of an array, one call of `value` for each, which has to go past it.
    pub(crate) fn array(
        &mut self,
        place: &dyn Display,
        mut value: impl FnMut(&mut Self, usize) -> Result<(), Malformed>,
    ) -> Result<(), Malformed> {
        self.expect(b'[', place)?;
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
            return Err(
                self.wrong(place, format!("expected `,` or `]`, found {}", found(self.text, self.at)))
            );
        }
        Ok(())
    }

    /// Goes past a value of any kind and tells where it was.
    pub fn span(&mut self, place: &dyn Display) -> Result<Range<usize>, Malformed> {
        self.peek();
        let first = self.at;
        self.skip(place)?;
        Ok(first..self.at)
    }

    /// Goes past a value of any kind.
    pub fn skip(&mut self, place: &dyn Display) -> Result<(), Malformed> {
        // The brackets that are open, as the bytes that will close them.
        let mut open: Vec<u8> = Vec::new();
        loop {
            match self.peek() {
                Some(byte @ (b'[' | b'{')) => {
                    if open.len() == DEPTH {
                        return Err(self.wrong(place, format!("nested deeper than {DEPTH}")));
                    }
                    self.at += 1;
                    // Two further in ASCII.
                    let close = byte + 2;
                    if !self.eat(close) {
                        open.push(close);
                        if close == b'}' {
                            self.key(place)?;
                        }
                        continue;
                    }
                }
                Some(b'"') => _ = self.string(place)?,
                Some(b't' | b'f') => _ = self.boolean(place)?,
                Some(b'n') if self.null() => {}
                _ => {
                    let parts = digits::take_apart(self.text, self.at);
                    self.at = parts.map_err(|problem| self.trouble(place, problem))?.end;
                }
            }
            loop {
                let Some(&close) = open.last() else { return Ok(()) };
                if self.eat(b',') {
                    if close == b'}' {
                        self.key(place)?;
                    }
                    break;
                }
                self.expect(close, place)?;
                open.pop();
            }
        }
    }

    fn key(&mut self, place: &dyn Display) -> Result<(), Malformed> {
        self.string(place)?;
        self.expect(b':', place)
    }

    fn word(&mut self, word: &[u8]) -> bool {
        self.peek();
        let there = self.text.get(self.at..).is_some_and(|rest| rest.starts_with(word));
        self.at += if there { word.len() } else { 0 };
        there
    }
}

/// The first place from `at` on that is no space.
#[inline]
pub(super) fn skip_space(text: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\n' | b'\r' | b'\t') = text.get(at) {
        at += 1;
    }
    at
}

/// Keys an object has had, so that none comes twice.
#[derive(Debug, Default)]
pub(crate) struct Keys(Vec<&'static str>);

impl Keys {
    /// An error if the key has been there before.
    pub(crate) fn once(
        &mut self,
        key: &'static str,
        cursor: &Cursor<'_>,
        place: &dyn Display,
    ) -> Result<(), Malformed> {
        if self.0.contains(&key) {
            return Err(cursor.wrong(place, format!("`{key}` is given twice")));
        }
        self.0.push(key);
        Ok(())
    }
}
