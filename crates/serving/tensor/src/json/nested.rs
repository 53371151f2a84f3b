//! Parses nested arrays into a tensor.

use std::fmt::{self, Display};

use bytes::Bytes;

use super::cursor::skip_space;
use super::element::{self, Element, for_dtype, noun};
use super::{Cursor, JsonError};
use crate::{DType, RequestError, RequestLimits, Tensor};

impl Cursor<'_> {
    /// Parses arrays of any depth as a tensor of that type; a single value is a scalar. The first innermost array
    /// determines the shape; the rest must match. `likely` is the expected number of elements.
    pub fn tensor(
        &mut self,
        dtype: DType,
        likely: usize,
        limits: &RequestLimits,
        path: &dyn Display,
    ) -> Result<Tensor, RequestError> {
        for_dtype!(dtype, read(self, dtype, likely, limits, path))
    }
}

/// The path of an element: the index in each open array.
struct ElementPath<'a> {
    name: &'a dyn Display,
    indices: &'a [usize],
    last: Option<usize>,
}

impl Display for ElementPath<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.name.fmt(out)?;
        self.indices.iter().chain(&self.last).try_for_each(|index| write!(out, "[{index}]"))
    }
}

struct NestedReader<'a> {
    dtype: DType,
    limits: &'a RequestLimits,
    name: &'a dyn Display,
    /// The index in each open array.
    indices: Vec<usize>,
    /// The size of each dimension, as far as an array of it has been read to its end.
    sizes: Vec<Option<usize>>,
    /// Whether the number of dimensions is known.
    settled: bool,
    elements: usize,
    out: Vec<u8>,
}

fn read<E: Element>(
    cursor: &mut Cursor<'_>,
    dtype: DType,
    likely: usize,
    limits: &RequestLimits,
    name: &dyn Display,
) -> Result<Tensor, RequestError> {
    // An element takes two bytes of text, but for the last.
    let most = cursor.text.len().saturating_sub(cursor.at) / 2 + 1;
    let capacity = likely.min(most).min(limits.elements) * dtype.size().unwrap_or(4);
    let mut reader = NestedReader {
        dtype,
        limits,
        name,
        indices: Vec::new(),
        sizes: Vec::new(),
        settled: false,
        elements: 0,
        out: Vec::with_capacity(capacity),
    };
    reader.value::<E>(cursor)?;
    let shape = reader.sizes.into_iter().flatten().collect();
    Tensor::new(dtype, shape, Bytes::from(reader.out))
        .map_err(|error| RequestError::Mismatch(error.to_string()))
}

impl NestedReader<'_> {
    fn value<E: Element>(&mut self, cursor: &mut Cursor<'_>) -> Result<(), RequestError> {
        if cursor.peek() != Some(b'[') {
            let end = E::read(cursor.text, cursor.at, &mut self.out);
            cursor.at = end.map_err(|message| self.json_error(cursor, None, message))?;
            return Ok(());
        }
        loop {
            self.open::<E>(cursor)?;
            loop {
                let Some(index) = self.indices.last_mut() else { return Ok(()) };
                match cursor.peek() {
                    Some(b',') => {
                        *index += 1;
                        cursor.at += 1;
                        break;
                    }
                    Some(b']') => {
                        let size = *index + 1;
                        cursor.at += 1;
                        self.indices.pop();
                        self.close(cursor, size)?;
                    }
                    _ => return Err(self.no_bracket(cursor, None)),
                }
            }
        }
    }

    /// Reads from a `[` to the end of the first array without arrays in it.
    fn open<E: Element>(&mut self, cursor: &mut Cursor<'_>) -> Result<(), RequestError> {
        loop {
            let depth = self.indices.len();
            if cursor.peek() != Some(b'[') {
                return Err(cursor.unexpected(&self.path(None), "an array"));
            }
            if depth >= self.limits.rank {
                let path = self.name.to_string();
                return Err(RequestError::TooLarge { path, what: "dimensions", most: self.limits.rank });
            }
            if !self.settled {
                self.sizes.push(None);
            }
            cursor.at += 1;
            let next = cursor.peek();
            self.settled |= next != Some(b'[');
            if depth + 1 == self.sizes.len() && self.settled {
                let size = self.row::<E>(cursor)?;
                return self.close(cursor, size);
            }
            if next == Some(b']') {
                cursor.at += 1;
                return self.close(cursor, 0);
            }
            self.indices.push(0);
        }
    }

    /// Reads the elements of an innermost array and its `]`.
    fn row<E: Element>(&mut self, cursor: &mut Cursor<'_>) -> Result<usize, RequestError> {
        if cursor.eat(b']') {
            return Ok(0);
        }
        let text = cursor.text;
        let (from, room) = (cursor.at, self.limits.elements - self.elements);
        let (mut at, mut count) = (from, 0);
        loop {
            if count == room {
                let path = self.name.to_string();
                return Err(RequestError::TooLarge { path, what: "elements", most: self.limits.elements });
            }
            match E::read(text, at, &mut self.out) {
                Ok(end) => at = end,
                Err(message) => {
                    cursor.at = at;
                    return Err(self.json_error(cursor, Some(count), message));
                }
            }
            count += 1;
            if text.get(at) != Some(&b',') {
                at = skip_space(text, at);
                match text.get(at) {
                    Some(b',') => {}
                    Some(b']') => break,
                    _ => {
                        cursor.at = at;
                        return Err(self.no_bracket(cursor, Some(count - 1)));
                    }
                }
            }
            // Most writers put one space after a comma or none.
            at += 1;
            at += usize::from(text.get(at) == Some(&b' '));
            if text.get(at).is_some_and(|byte| *byte <= b' ') {
                at = skip_space(text, at);
            }
        }
        cursor.at = at;
        cursor.at += 1;
        if self.elements == 0 {
            self.make_room(cursor, from, count);
        }
        self.elements += count;
        Ok(count)
    }

    /// Reserves memory after the first row: for as many rows as fit into the rest of the text, if
    /// they are as long.
    fn make_room(&mut self, cursor: &Cursor<'_>, from: usize, count: usize) {
        let rows = (cursor.text.len() - cursor.at) / (cursor.at - from).max(1);
        let elements = rows.saturating_mul(count).min(self.limits.elements);
        if elements > 0 {
            let bytes = self.out.len().div_ceil(count.max(1)).saturating_mul(elements + count);
            self.out.reserve(bytes.saturating_sub(self.out.len()));
        }
    }

    /// Notes the size of the array that ended, or compares it to those of the same dimension before.
    fn close(&mut self, cursor: &Cursor<'_>, size: usize) -> Result<(), RequestError> {
        let depth = self.indices.len();
        let innermost = depth + 1 == self.sizes.len();
        let Some(known) = self.sizes.get_mut(depth) else { return Ok(()) };
        match *known {
            None => *known = Some(size),
            Some(before) if before != size => {
                let noun = if innermost { noun(self.dtype) } else { "arrays" };
                let noun = if size == 1 { noun.trim_end_matches('s') } else { noun };
                let message = format!("{size} {noun} where the rows before have {before}");
                return Err(cursor.error(&self.path(None), message));
            }
            Some(_) => {}
        }
        Ok(())
    }

    fn path(&self, last: Option<usize>) -> ElementPath<'_> {
        ElementPath { name: self.name, indices: &self.indices, last }
    }

    #[cold]
    fn json_error(&self, cursor: &Cursor<'_>, last: Option<usize>, message: JsonError) -> RequestError {
        cursor.error(&self.path(last), message.describe(cursor.text, cursor.at, Some(self.dtype)))
    }

    #[cold]
    fn no_bracket(&self, cursor: &Cursor<'_>, last: Option<usize>) -> RequestError {
        cursor.unexpected(&self.path(last), "`,` or `]`")
    }
}
