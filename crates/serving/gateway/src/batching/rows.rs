//! Finds the rows of requests and joins them to a batch, as text.
//!
//! A row is copied from one text to another and never parsed, so numbers keep their digits. What is around the rows of a
//! request, other keys and spaces included, is part of what requests must have in common to share a batch.

use cudock_base::bug::Parts;
use std::hash::{Hash, Hasher};
use std::ops::Range;

use bytes::{Bytes, BytesMut};

pub use crate::batching::answer::SplitError;
use crate::batching::scan::{Malformed, Scanner, ValueShape};

/// Where the rows are in requests and answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowFormat {
    /// Key of a request's rows.
    pub input_key: String,
    /// Keys of an answer whose lists have one element per row.
    pub output_keys: Vec<String>,
    /// Keys of an answer whose lists and objects are about all rows.
    pub shared_keys: Vec<String>,
    /// Levels of lists in one row: 0 for a number or a text, 1 for a list of numbers.
    pub row_rank: usize,
}

impl Default for RowFormat {
    fn default() -> Self {
        Self {
            input_key: "input".to_owned(),
            output_keys: vec!["prediction".to_owned()],
            shared_keys: Vec::new(),
            row_rank: 1,
        }
    }
}

/// The rows of a request.
#[derive(Clone, Debug)]
pub struct RequestRows {
    body: Bytes,
    /// The value of the input key.
    value: Range<usize>,
    /// The rows within it: without the brackets around them, if it has any.
    rows: Range<usize>,
    count: usize,
    /// Whether the value is one row and not a list of rows.
    is_single: bool,
    /// The shape of one row.
    shape: ValueShape,
}

impl RowFormat {
    /// Finds the rows of a request; `None` if it is not one that can share a batch. Such a request is forwarded as it is,
    /// so that the upstream reports what is wrong with it.
    pub fn read_request(&self, body: Bytes) -> Option<RequestRows> {
        let mut found = None;
        let mut is_unclear = false;
        let mut input = |scanner: &mut Scanner<'_>, key: &[u8]| {
            // A key with an escape may be any key.
            is_unclear |= key.contains(&b'\\');
            if key != self.input_key.as_bytes() {
                return scanner.value().map(drop);
            }
            is_unclear |= found.is_some();
            found = Some(read_input(scanner, self.row_rank)?);
            Ok(())
        };
        Scanner::scan_object(&body, &mut input).ok()?;
        let InputRows { value, rows, count, is_single, shape } = found.flatten().filter(|_| !is_unclear)?;
        Some(RequestRows { body, value, rows, count, is_single, shape })
    }
}

impl RequestRows {
    /// Number of rows.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The request itself.
    pub fn body(&self) -> &Bytes {
        &self.body
    }

    /// Whether the request has one row that is not in a list.
    pub(crate) fn is_single(&self) -> bool {
        self.is_single
    }

    /// Hashes the text around the rows.
    pub(crate) fn hash_envelope(&self, state: &mut impl Hasher) {
        self.around().hash(state);
    }

    /// Hashes the shape of the rows.
    pub(crate) fn hash_shape(&self, state: &mut impl Hasher) {
        self.shape.hash(state);
    }

    /// The text before and after the value.
    fn around(&self) -> (&[u8], &[u8]) {
        let body = &self.body;
        let part = |range: Range<usize>| body.part(range);
        (part(0..self.value.start), part(self.value.end..body.len()))
    }
}

/// Joins requests that have everything but their rows in common to one.
pub fn join(requests: &[&RequestRows]) -> Bytes {
    let Some((before, after)) = requests.first().map(|first| first.around()) else { return Bytes::new() };
    let rows: usize = requests.iter().map(|request| request.rows.len() + 1).sum();
    let mut joined = BytesMut::with_capacity(before.len() + after.len() + rows + 1);
    joined.extend_from_slice(before);
    for (index, request) in requests.iter().enumerate() {
        joined.extend_from_slice(if index == 0 { b"[" } else { b"," });
        joined.extend_from_slice(request.body.get(request.rows.clone()).unwrap_or_default());
    }
    joined.extend_from_slice(b"]");
    joined.extend_from_slice(after);
    joined.freeze()
}

/// The input of a request.
struct InputRows {
    value: Range<usize>,
    rows: Range<usize>,
    count: usize,
    is_single: bool,
    shape: ValueShape,
}

/// Reads the value of the input key; `None` if it is neither one row nor a list of rows of one shape.
fn read_input(scanner: &mut Scanner<'_>, row_rank: usize) -> Result<Option<InputRows>, Malformed> {
    let single = |value: Range<usize>, shape: ValueShape| {
        (shape.rank == row_rank).then(|| InputRows {
            rows: value.clone(),
            value,
            count: 1,
            is_single: true,
            shape,
        })
    };
    if scanner.peek() != Some(b'[') {
        let (value, shape) = scanner.value()?;
        return Ok(single(value, shape));
    }
    let (mut count, mut rows, mut first, mut is_even) = (0, 0..0, None, true);
    let value = scanner.list(|span, shape| {
        if count == 0 {
            rows.start = span.start;
        }
        rows.end = span.end;
        count += 1;
        is_even &= *first.get_or_insert(shape) == shape;
    })?;
    match first {
        Some(shape) if shape.rank == row_rank => {
            Ok(is_even.then_some(InputRows { value, rows, count, is_single: false, shape }))
        }
        first => Ok(single(value, ValueShape::list(count, first))),
    }
}
