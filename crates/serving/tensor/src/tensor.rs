//! A tensor: type, shape and bytes.

use std::ops::Range;

use bytes::Bytes;

use crate::DType;

/// An inconsistent tensor.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TensorError {
    /// The number of elements overflows.
    #[error("shape {0:?} has too many elements")]
    Uncountable(Vec<usize>),
    /// The number of bytes does not match type and shape.
    #[error("{dtype} {shape:?} takes {expected} bytes, not {found}")]
    Length { dtype: DType, shape: Vec<usize>, expected: usize, found: usize },
    /// Strings that are not a sequence of lengths and bytes.
    #[error("string {0} of the tensor runs beyond its end")]
    Strings(usize),
    /// The number of strings does not match the shape.
    #[error("shape {shape:?} takes {expected} strings, not {found}")]
    Count { shape: Vec<usize>, expected: usize, found: usize },
}

/// A tensor: elements in row-major order, little endian. Strings are each four bytes of length and then their bytes, as
/// in the binary extension of the Open Inference Protocol. Type, shape and bytes always match. Clones and slices share
/// the bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tensor {
    dtype: DType,
    shape: Vec<usize>,
    data: Bytes,
}

impl Tensor {
    /// Creates a tensor, if type, shape and bytes match.
    pub fn new(dtype: DType, shape: Vec<usize>, data: Bytes) -> Result<Self, TensorError> {
        let uncountable = || TensorError::Uncountable(shape.clone());
        let elements = elements(&shape).ok_or_else(uncountable)?;
        if let Some(size) = dtype.size() {
            let expected = elements.checked_mul(size).ok_or_else(uncountable)?;
            if expected != data.len() {
                return Err(TensorError::Length { dtype, shape, expected, found: data.len() });
            }
        } else {
            let mut found = 0;
            for string in strings(&data) {
                string.map_err(|()| TensorError::Strings(found))?;
                found += 1;
            }
            if found != elements {
                return Err(TensorError::Count { shape, expected: elements, found });
            }
        }
        Ok(Self { dtype, shape, data })
    }

    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Its shape; empty for a scalar.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    pub fn data(&self) -> &Bytes {
        &self.data
    }

    /// The first dimension; one for a scalar.
    pub fn rows(&self) -> usize {
        self.shape.first().copied().unwrap_or(1)
    }

    /// The strings of a string tensor, in order; empty for other types.
    pub fn strings(&self) -> impl Iterator<Item = &[u8]> {
        let data: &[u8] = if self.dtype == DType::String { &self.data } else { &[] };
        strings(data).filter_map(Result::ok)
    }

    /// Rows `from..to`, sharing the bytes; `None` if out of range.
    pub fn slice_rows(&self, from: usize, to: usize) -> Option<Self> {
        let range = rows_range(self.dtype, &self.shape, &self.data, from, to)?;
        let mut shape = self.shape.clone();
        *shape.first_mut()? = to - from;
        Some(Self { dtype: self.dtype, shape, data: self.data.slice(range) })
    }

    /// The rows in order, each without the row dimension and sharing the bytes.
    pub(crate) fn split_rows(&self) -> impl Iterator<Item = Self> + '_ {
        let row = self.shape.get(1..).unwrap_or_default();
        let per_row = elements(row).unwrap_or(0);
        let mut rest = self.data.clone();
        (0..self.rows()).map(move |_| {
            let length = match self.dtype.size() {
                Some(size) => per_row * size,
                None => string_offset(&rest, per_row).unwrap_or(0),
            };
            let data = rest.split_to(length.min(rest.len()));
            Self { dtype: self.dtype, shape: row.to_vec(), data }
        })
    }

    /// The same elements with another shape of equal size.
    #[must_use]
    pub fn reshaped(mut self, shape: Vec<usize>) -> Option<Self> {
        (elements(&shape)? == elements(&self.shape)?).then(|| {
            self.shape = shape;
            self
        })
    }
}

/// Where the rows `from..to` of a tensor of that type and shape are in its bytes; `None` if out of range.
pub fn rows_range(
    dtype: DType,
    shape: &[usize],
    data: &[u8],
    from: usize,
    to: usize,
) -> Option<Range<usize>> {
    let (rows, row) = shape.split_first()?;
    if from > to || to > *rows {
        return None;
    }
    let per_row = elements(row)?;
    let (from, to) = (from.checked_mul(per_row)?, to.checked_mul(per_row)?);
    let range = match dtype.size() {
        Some(size) => from.checked_mul(size)?..to.checked_mul(size)?,
        None => string_offset(data, from)?..string_offset(data, to)?,
    };
    (range.end <= data.len()).then_some(range)
}

/// Number of elements of a shape, unless it overflows.
pub fn elements(shape: &[usize]) -> Option<usize> {
    shape.iter().try_fold(1_usize, |product, &dimension| product.checked_mul(dimension))
}

/// The strings in a sequence of lengths and bytes; an error if one is truncated.
fn strings(mut data: &[u8]) -> impl Iterator<Item = Result<&[u8], ()>> {
    std::iter::from_fn(move || {
        if data.is_empty() {
            return None;
        }
        let next = data.split_first_chunk::<4>().and_then(|(length, rest)| {
            rest.split_at_checked(usize::try_from(u32::from_le_bytes(*length)).ok()?)
        });
        let Some((string, rest)) = next else {
            data = &[];
            return Some(Err(()));
        };
        data = rest;
        Some(Ok(string))
    })
}

fn string_offset(data: &[u8], number: usize) -> Option<usize> {
    let mut offset = 0;
    for string in strings(data).take(number) {
        offset += 4 + string.ok()?.len();
    }
    Some(offset)
}
