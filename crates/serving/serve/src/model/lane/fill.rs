//! Writes the rows of a batch into the memory of its lane.

use std::borrow::Cow;

use cudock_engine::{EngineError, Lane};
use cudock_tensor::{DType, Tensor, elements};

use super::LaneContext;
use super::row_range::RowRange;
use crate::model::queue::{PendingRequest, RunnableBatch};
use crate::model::shapes::{self, RowShapes};

impl LaneContext {
    /// Writes rows of the requests into the lane.
    pub(super) fn fill(
        &self,
        lane: &mut dyn Lane,
        batch: &RunnableBatch,
        range: RowRange,
    ) -> Result<(), EngineError> {
        let Some(first) = batch.requests.first() else { return Ok(()) };
        let rows = RowShapes::of(&first.inputs, &self.signature, &self.pad_sizes);
        for (index, row_shape) in rows.0.iter().enumerate() {
            let dtype = first.inputs.get(index).map_or(DType::F32, Tensor::dtype);
            let shape = with_rows(range.padded, row_shape, self.signature.batched);
            let tensors = input_rows(&batch.requests, index, range);
            if let Some(size) = dtype.size() {
                let bytes = elements(&shape).and_then(|count| count.checked_mul(size)).unwrap_or(usize::MAX);
                let out = lane.input(index, &shape, bytes)?;
                let padding = self.padding.get(index).map(Vec::as_slice).unwrap_or_default();
                fill_numbers(tensors, row_shape, self.signature.batched, size, padding, out)
                    .ok_or_else(|| EngineError::Failed("rows of different shapes in one batch".to_owned()))?;
            } else {
                let strings: usize = tensors.clone().map(|tensor| tensor.data().len()).sum();
                let padding = (range.padded - range.len()) * elements(row_shape).unwrap_or(1) * 4;
                let out = lane.input(index, &shape, strings + padding)?;
                fill_strings(tensors, out)
                    .ok_or_else(|| EngineError::Failed("strings are longer than they were".to_owned()))?;
            }
        }
        Ok(())
    }
}

/// The rows of an input within a range, request by request.
fn input_rows(
    requests: &[PendingRequest],
    index: usize,
    range: RowRange,
) -> impl Iterator<Item = Cow<'_, Tensor>> + Clone {
    let mut start = 0;
    requests.iter().filter_map(move |request| {
        let first = start;
        start += request.rows;
        let tensor = request.inputs.get(index)?;
        if first >= range.from && start <= range.to {
            return Some(Cow::Borrowed(tensor));
        }
        let rows = range.from.max(first)..range.to.min(start);
        if rows.is_empty() {
            return None;
        }
        tensor.slice_rows(rows.start - first, rows.end - first).map(Cow::Owned)
    })
}

/// The shape of a batch of `rows`, or that of the row itself if the model is not batched.
fn with_rows(rows: usize, row_shape: &[usize], batched: bool) -> Vec<usize> {
    batched.then_some(rows).into_iter().chain(row_shape.iter().copied()).collect()
}

fn fill_numbers<'a>(
    tensors: impl Iterator<Item = Cow<'a, Tensor>>,
    row_shape: &[usize],
    batched: bool,
    size: usize,
    padding: &[u8],
    out: &mut [u8],
) -> Option<()> {
    let mut at = 0;
    for tensor in tensors {
        let own_row = tensor.shape().get(usize::from(batched)..).unwrap_or_default();
        if own_row == row_shape {
            copy_at(out, &mut at, tensor.data())?;
            continue;
        }
        let rows = if batched { tensor.rows() } else { 1 };
        let bytes = rows * elements(row_shape).unwrap_or(0) * size;
        let wide = with_rows(rows, row_shape, batched);
        let room = out.get_mut(at..at + bytes)?;
        shapes::fill_padding(padding, room);
        shapes::pad_into(&tensor, &wide, room)?;
        at += bytes;
    }
    out.get_mut(at..)?.fill(0);
    Some(())
}

fn fill_strings<'a>(tensors: impl Iterator<Item = Cow<'a, Tensor>>, out: &mut [u8]) -> Option<()> {
    let mut at = 0;
    for tensor in tensors {
        copy_at(out, &mut at, tensor.data())?;
    }
    // An empty string is four bytes of length zero.
    out.get_mut(at..)?.fill(0);
    Some(())
}

/// Copies data behind what was copied before; none if there is no room, so that nothing computes on old bytes.
fn copy_at(out: &mut [u8], at: &mut usize, data: &[u8]) -> Option<()> {
    let end = at.checked_add(data.len())?;
    out.get_mut(*at..end)?.copy_from_slice(data);
    *at = end;
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_an_error_and_not_old_bytes() {
        let (mut out, mut at) = ([9; 4], 0);
        assert_eq!(copy_at(&mut out, &mut at, &[1, 2, 3]), Some(()));
        assert_eq!((copy_at(&mut out, &mut at, &[4, 5]), at), (None, 3));
        at = usize::MAX;
        assert_eq!(copy_at(&mut out, &mut at, &[1]), None);
    }
}
