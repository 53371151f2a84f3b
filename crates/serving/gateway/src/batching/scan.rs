//! The structure of a JSON text: where its values begin and end.
//!
//! Only brackets, strings and separators are checked; numbers and words are skipped as they are. So values come back byte
//! for byte, `NaN`, which Python writes, passes, and yet no value can end anywhere but where any parser ends it.

use cudock_base::bug::Parts;
use std::ops::Range;

use memchr::memchr2;

/// Deepest nesting.
const DEPTH: usize = 64;

/// A text that is not JSON, or nested too deeply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

/// The properties that two values must share to be rows of one tensor, as seen at the first element
/// of each list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ValueShape {
    /// Levels of lists.
    pub(crate) rank: usize,
    /// Combines the lengths of these lists and the kind of their elements.
    digest: u64,
}

impl ValueShape {
    const SCALAR: Self = Self { rank: 0, digest: 1 << 61 };
    const STRING: Self = Self { rank: 0, digest: 2 << 61 };
    const OBJECT: Self = Self { rank: 0, digest: 3 << 61 };

    /// A list of `length` values, of which the first has that shape.
    pub(crate) fn list(length: usize, first: Option<Self>) -> Self {
        let first = first.unwrap_or(Self { rank: 0, digest: 0 });
        // A collision costs a batch that the upstream rejects and that then runs in parts.
        let digest = (first.digest ^ length as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
        Self { rank: first.rank + 1, digest }
    }
}

/// A position in a text.
pub(crate) struct Scanner<'text> {
    text: &'text [u8],
    at: usize,
}

impl<'text> Scanner<'text> {
    /// Scans a text that is one [object](Self::object). Keys are as written, with their escapes.
    pub(crate) fn scan_object(
        text: &'text [u8],
        field: impl FnMut(&mut Self, &'text [u8]) -> Result<(), Malformed>,
    ) -> Result<(), Malformed> {
        let mut scanner = Self::new(text);
        scanner.object(field)?;
        scanner.end()
    }

    pub(crate) fn new(text: &'text [u8]) -> Self {
        Self { text, at: 0 }
    }

    /// Fails if anything but spaces is left.
    pub(crate) fn end(&mut self) -> Result<(), Malformed> {
        if self.peek().is_none() { Ok(()) } else { Err(Malformed) }
    }

    /// Skips spaces and returns the next byte.
    pub(crate) fn peek(&mut self) -> Option<u8> {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.text.get(self.at) {
            self.at += 1;
        }
        self.text.get(self.at).copied()
    }

    /// Skips a value and returns its span and shape.
    pub(crate) fn value(&mut self) -> Result<(Range<usize>, ValueShape), Malformed> {
        self.nested(DEPTH)
    }

    /// Skips a list, with a call of `item` per element, and returns its span.
    pub(crate) fn list(
        &mut self,
        item: impl FnMut(Range<usize>, ValueShape),
    ) -> Result<Range<usize>, Malformed> {
        self.peek();
        let start = self.at;
        self.items(DEPTH, item)?;
        Ok(start..self.at)
    }

    fn nested(&mut self, depth: usize) -> Result<(Range<usize>, ValueShape), Malformed> {
        let first = self.peek().ok_or(Malformed)?;
        let start = self.at;
        let shape = match first {
            b'[' => {
                let (mut length, mut shape) = (0, None);
                self.items(depth, |_, item| {
                    length += 1;
                    shape.get_or_insert(item);
                })?;
                ValueShape::list(length, shape)
            }
            b'{' => {
                let depth = depth.checked_sub(1).ok_or(Malformed)?;
                self.object(|scanner, _| scanner.nested(depth).map(drop))?;
                ValueShape::OBJECT
            }
            b'"' => {
                self.string()?;
                ValueShape::STRING
            }
            _ => {
                self.scalar()?;
                ValueShape::SCALAR
            }
        };
        Ok((start..self.at, shape))
    }

    fn items(
        &mut self,
        depth: usize,
        mut item: impl FnMut(Range<usize>, ValueShape),
    ) -> Result<(), Malformed> {
        let depth = depth.checked_sub(1).ok_or(Malformed)?;
        self.expect(b'[')?;
        if self.eat(b']') {
            return Ok(());
        }
        loop {
            let (span, shape) = self.nested(depth)?;
            item(span, shape);
            if !self.eat(b',') {
                return self.expect(b']');
            }
        }
    }

    /// Skips an object, with a call of `field` per key, which must consume the value.
    pub(crate) fn object(
        &mut self,
        mut field: impl FnMut(&mut Self, &'text [u8]) -> Result<(), Malformed>,
    ) -> Result<(), Malformed> {
        self.expect(b'{')?;
        if self.eat(b'}') {
            return Ok(());
        }
        loop {
            let key = self.string()?;
            self.expect(b':')?;
            field(self, key)?;
            if !self.eat(b',') {
                return self.expect(b'}');
            }
        }
    }

    /// Skips a string and returns what is between its quotes.
    fn string(&mut self) -> Result<&'text [u8], Malformed> {
        self.expect(b'"')?;
        let start = self.at;
        loop {
            let rest = self.text.part(self.at..);
            let found = memchr2(b'"', b'\\', rest).ok_or(Malformed)?;
            let end = self.at + found;
            if rest.get(found) == Some(&b'"') {
                self.at = end + 1;
                return self.text.get(start..end).ok_or(Malformed);
            }
            self.at = end + 2;
        }
    }

    /// Skips a number or a word.
    fn scalar(&mut self) -> Result<(), Malformed> {
        let rest = self.text.part(self.at..);
        let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
        let length = rest.iter().position(|byte| !is_part(byte)).unwrap_or(rest.len());
        self.at += length;
        if length > 0 { Ok(()) } else { Err(Malformed) }
    }

    fn eat(&mut self, byte: u8) -> bool {
        let eaten = self.peek() == Some(byte);
        self.at += usize::from(eaten);
        eaten
    }

    fn expect(&mut self, byte: u8) -> Result<(), Malformed> {
        if self.eat(byte) { Ok(()) } else { Err(Malformed) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scan(value: &str) -> Result<(String, ValueShape), Malformed> {
        let text = format!("{{\"k\":{value}}}");
        let mut found = Err(Malformed);
        Scanner::scan_object(text.as_bytes(), |scanner, _| {
            found = scanner.value().map(|(span, shape)| (text[span].to_owned(), shape));
            found.clone().map(drop)
        })?;
        found
    }

    #[test]
    fn values_are_found_as_they_are_written() {
        for value in [
            "1",
            "-1.50e+03",
            "NaN",
            "-Infinity",
            "null",
            "\"a\\\"],{b\"",
            "\"\\\\\"",
            "[ ]",
            "[1 , [2,\n3]]",
            "{ }",
            "{\"a\":{\"b\":[\"}\"]}, \"c\" : 1}",
        ] {
            assert_eq!(scan(&format!("  {value}\n")).unwrap().0, value);
        }
    }

    #[test]
    fn a_text_that_is_not_json_is_rejected() {
        for value in [
            "",
            ",",
            "]",
            "[",
            "[1",
            "[1,]",
            "[,1]",
            "[1 2]",
            "[1]]",
            "{",
            "{1:2}",
            "{\"a\"}",
            "{\"a\":}",
            "{\"a\":1,}",
            "\"",
            "\"\\\"",
            "\"a\\",
            "1 2",
            "1:2",
            "[}",
            "{\"a\":1]",
            "\u{1}",
            "'a'",
        ] {
            assert_eq!(scan(value), Err(Malformed), "{value}");
        }
        assert!(scan(&format!("{}1{}", "[".repeat(DEPTH), "]".repeat(DEPTH))).is_ok());
        assert!(scan(&format!("{}1{}", "[".repeat(DEPTH + 1), "]".repeat(DEPTH + 1))).is_err());
        assert!(scan(&"[".repeat(1 << 20)).is_err());
        for text in ["", "[]", "{}x", "{\"a\":1}{\"a\":1}"] {
            assert!(
                Scanner::scan_object(text.as_bytes(), |scanner, _| scanner.value().map(drop)).is_err(),
                "{text}"
            );
        }
    }

    #[test]
    fn shapes_differ_by_rank_lengths_and_kind() {
        let shape = |value| scan(value).unwrap().1;
        for (value, rank) in
            [("1", 0), ("\"[\"", 0), ("{\"a\":[1]}", 0), ("[]", 1), ("[1,2]", 1), ("[[[1]],2]", 3)]
        {
            assert_eq!(shape(value).rank, rank, "{value}");
        }
        assert_eq!(shape("[[1,2],[3]]"), shape("[[NaN, null], 5]"));
        let different =
            ["1", "\"1\"", "{}", "[1]", "[1,1]", "[\"1\"]", "[[1]]", "[[1,1]]", "[[1],[1]]", "[]", "[[]]"];
        for (index, one) in different.iter().enumerate() {
            for other in &different[index + 1..] {
                assert_ne!(shape(one), shape(other), "{one} {other}");
            }
        }
    }
}
