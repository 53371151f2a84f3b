//! The outputs of a batch, copied out of the memory of its lane request by request.
//!
//! They may be much larger than the inputs, and how large is only known when they are there. So the memory for them is
//! reserved here, and stays so until the last byte of a response is written. A request without memory for its outputs is
//! rejected like one without memory for its inputs, and the others of its batch are answered.

use std::sync::Arc;

use bytes::Bytes;
use cudock_engine::{EngineError, OutputView};
use cudock_server::{Budget, HttpRejection, Reservation, SMALL_BODY};
use cudock_tensor::Tensor;

use super::row_range::RowRange;
use crate::model::queue::PendingRequest;

pub(super) struct BatchOutputs {
    budget: Arc<Budget>,
    /// Outputs of each request, in the order of the batch.
    pub(super) of: Vec<Result<Vec<Tensor>, HttpRejection>>,
    /// Reservations for output memory of the lane that was read, which stays in the memory of this
    /// process until the lane is trimmed.
    pub(super) read: Vec<Reservation>,
}

impl BatchOutputs {
    pub(super) fn new(budget: &Arc<Budget>, requests: usize) -> Self {
        Self { budget: Arc::clone(budget), of: vec![Ok(Vec::new()); requests], read: Vec::new() }
    }

    /// Adds the outputs of a range of rows; those of a model whose outputs have no rows belong to the only request.
    pub(super) fn add(
        &mut self,
        requests: &[PendingRequest],
        views: &[OutputView<'_>],
        range: RowRange,
        batched: bool,
    ) -> Result<(), EngineError> {
        let mut first = 0;
        let Self { budget, of, read } = self;
        for (request, outputs) in requests.iter().zip(of) {
            let (from, to) = (range.from.max(first), range.to.min(first + request.rows));
            first += request.rows;
            let Ok(known) = outputs else { continue };
            if from >= to {
                continue;
            }
            let rows = views.iter().map(|view| {
                if batched { view.rows(from - range.from, to - range.from) } else { Some(view.clone()) }
            });
            let parts: Option<Vec<_>> = rows.collect();
            let parts = parts.ok_or_else(|| EngineError::Failed("an output has too few rows".to_owned()))?;
            match copy(budget, &parts, known, read) {
                Ok(copied) => *known = copied,
                Err(CopyError::NoMemory(rejection)) => *outputs = Err(rejection),
                Err(CopyError::Invalid(reason)) => return Err(EngineError::Failed(reason)),
            }
        }
        Ok(())
    }
}

enum CopyError {
    NoMemory(HttpRejection),
    Invalid(String),
}

impl From<HttpRejection> for CopyError {
    fn from(rejection: HttpRejection) -> Self {
        Self::NoMemory(rejection)
    }
}

/// Copies the outputs of a request, or some more rows of them.
fn copy(
    budget: &Arc<Budget>,
    parts: &[OutputView<'_>],
    known: &[Tensor],
    read: &mut Vec<Reservation>,
) -> Result<Vec<Tensor>, CopyError> {
    let size = parts.iter().map(|part| part.data.len()).sum();
    let is_large = size > SMALL_BODY;
    if is_large {
        read.push(reserve(budget, size)?);
    }
    let mut copied = Vec::with_capacity(parts.len());
    for (index, part) in parts.iter().enumerate() {
        let before = known.get(index);
        let data = [before.map_or(&[][..], |before| before.data()), part.data];
        let size = data.iter().map(|data| data.len()).sum();
        let reservation = if is_large { Some(reserve(budget, size)?) } else { None };
        let data = if before.is_some() { data.concat().into() } else { Bytes::copy_from_slice(part.data) };
        let data = reservation.into_iter().fold(data, |data, reservation| reservation.attach(data));
        let shape = joined_shape(before, part).ok_or_else(|| {
            CopyError::Invalid("parts of a batch have outputs of different shapes".to_owned())
        })?;
        copied.push(Tensor::new(part.dtype, shape, data).map_err(|error| {
            CopyError::Invalid(format!("the engine returned an invalid tensor: {error}"))
        })?);
    }
    Ok(copied)
}

fn reserve(budget: &Arc<Budget>, bytes: usize) -> Result<Reservation, HttpRejection> {
    let mut reservation = Reservation::new(budget);
    reservation.resize(bytes)?;
    Ok(reservation)
}

/// The shape of rows that follow others.
fn joined_shape(before: Option<&Tensor>, part: &OutputView<'_>) -> Option<Vec<usize>> {
    let mut shape = part.shape.clone();
    if let Some(before) = before {
        if before.shape().get(1..) != shape.get(1..) {
            return None;
        }
        *shape.first_mut()? += before.rows();
    }
    Some(shape)
}

#[cfg(test)]
mod tests {
    use cudock_batcher::Time;
    use cudock_tensor::DType;

    use super::*;
    use crate::model::queue::Attempt;
    use crate::reply;

    const KIB: usize = 1 << 10;

    /// Requests with these numbers of rows.
    fn requests(rows: &[usize]) -> Vec<PendingRequest> {
        let request = |&rows| PendingRequest {
            inputs: Vec::new(),
            rows,
            bucket: 0,
            priority: 0,
            deadline: None,
            received: Time(0),
            attempt: Attempt::First,
            sender: reply::channel().0,
        };
        rows.iter().map(request).collect()
    }

    /// Rows of that many bytes.
    fn view(rows: usize, width: usize, data: &[u8]) -> OutputView<'_> {
        OutputView { dtype: DType::U8, shape: vec![rows, width], data: &data[..rows * width] }
    }

    #[test]
    fn outputs_are_reserved_until_their_last_byte_is_dropped_and_what_was_read_until_the_batch_ends() {
        let budget = Arc::new(Budget::new(1024 * KIB));
        let data = vec![7; 200 * KIB];
        let mut outputs = BatchOutputs::new(&budget, 2);
        let range = RowRange { from: 0, to: 2, padded: 2 };
        outputs.add(&requests(&[1, 1]), &[view(2, 100 * KIB, &data)], range, true).unwrap();
        assert_eq!(budget.held(), 400 * KIB);
        let BatchOutputs { of, read, .. } = outputs;
        drop(read);
        assert_eq!(budget.held(), 200 * KIB);
        let byte = of[1].as_ref().unwrap()[0].data().slice(..1);
        drop(of);
        assert_eq!(budget.held(), 100 * KIB);
        drop(byte);
        assert_eq!(budget.held(), 0);
    }

    #[test]
    fn requests_without_memory_for_their_outputs_are_rejected_and_others_are_not() {
        let budget = Arc::new(Budget::new(1024 * KIB));
        let data = vec![7; 2000 * KIB];
        // One that fits, one that never will, small ones.
        let rows = [3, 10, 1, 1];
        let mut outputs = BatchOutputs::new(&budget, rows.len());
        let range = RowRange { from: 0, to: 15, padded: 16 };
        outputs.add(&requests(&rows), &[view(16, 100 * KIB, &data)], range, true).unwrap();
        let rejected = |index: usize| outputs.of[index].as_ref().err();
        assert!(rejected(0).is_none());
        assert!(matches!(rejected(1), Some(HttpRejection::MemoryExceeded { .. })), "{:?}", outputs.of);
        assert!(rejected(2).is_none());
        assert!(matches!(rejected(3), Some(HttpRejection::Overloaded { .. })), "{:?}", outputs.of);
        assert!(budget.held() <= 1024 * KIB);
    }

    #[test]
    fn parts_whose_rows_have_different_shapes_are_not_joined() {
        let budget = Arc::new(Budget::new(1024 * KIB));
        let (requests, data) = (requests(&[2]), [1, 2, 3, 4, 5, 6]);
        for (width, is_joined) in [(3, true), (2, false)] {
            let mut outputs = BatchOutputs::new(&budget, 1);
            let range = |from| RowRange { from, to: from + 1, padded: 1 };
            outputs.add(&requests, &[view(1, 3, &data)], range(0), true).unwrap();
            let second = outputs.add(&requests, &[view(1, width, &data[3..])], range(1), true);
            assert_eq!(second.is_ok(), is_joined);
            if is_joined {
                let joined = &outputs.of[0].as_ref().unwrap()[0];
                assert_eq!((joined.shape(), joined.data().as_ref()), (&[2, 3][..], &data[..]));
            }
        }
    }
}
