//! One lane of an engine: take a batch, fill it, run it, hand out the answers.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cudock_engine::{EngineError, Lane, OutputView};
use cudock_tensor::{Answer, DType, Signature, Tensor, elements};

use super::queue::{Queue, Waiting, Work};
use super::shapes::{self, RowShapes};
use crate::ServeError;
use crate::metrics::BatchTimes;
use crate::reply::Post;

/// What a lane needs to know of its model.
pub(crate) struct LaneContext {
    pub(crate) queue: Arc<Queue>,
    pub(crate) signature: Arc<Signature>,
    /// Sizes open dimensions are padded up to.
    pub(crate) pad_sizes: Vec<usize>,
    /// How long the engine may take for one batch.
    pub(crate) limit: Duration,
    /// Number of the engine the lane belongs to.
    pub(crate) engine: u64,
}

/// A suspect is given this many times what its like took before, instead of the whole limit.
const PATIENCE_WITH_SUSPECTS: u32 = 100;

impl LaneContext {
    /// Runs batches until the queue is closed and empty (`Ok`) or the engine is gone (`Err`).
    pub(crate) fn work(&self, lane: &mut dyn Lane) -> Result<(), EngineError> {
        let mut post = Post::new(Some(Arc::clone(&self.queue)));
        while let Some(work) = self.queue.take(self.engine) {
            let begun = self.queue.now();
            let outcome = self.run(lane, &work);
            let ended = self.queue.now();
            self.queue.finished(work.id, outcome.is_ok());
            match outcome {
                Ok(outputs) => {
                    self.queue.metrics.batch(&BatchTimes {
                        dispatched: work.dispatched,
                        begun,
                        ended,
                        rows: work.rows,
                        received: work.requests.iter().map(|request| request.received),
                    });
                    self.hand_out(work.requests, &outputs, &mut post);
                    post.deliver();
                    lane.trim();
                }
                Err(error) => {
                    let fatal = error.is_fatal();
                    self.give_back(work.requests, &error, &mut post);
                    post.deliver();
                    if fatal {
                        return Err(error);
                    }
                }
            }
        }
        Ok(())
    }

    fn run(&self, lane: &mut dyn Lane, work: &Work) -> Result<Vec<Tensor>, EngineError> {
        self.fill(lane, work)?;
        self.queue.filled(work.id);
        let suspect = work.requests.iter().any(|request| request.suspect);
        let limit = match work.expected {
            Some(expected) if suspect => {
                self.limit.min((expected * PATIENCE_WITH_SUSPECTS).max(Duration::from_secs(1)))
            }
            _ => self.limit,
        };
        let is_wanted = || work.requests.iter().any(|request| request.sender.is_awaited());
        let outputs = lane.run_while(limit, &is_wanted)?;
        outputs.iter().zip(&self.signature.outputs).map(|(view, spec)| {
            if self.signature.batched && view.shape.first() != Some(&work.padded_rows) {
                return Err(EngineError::Failed(format!(
                    "output `{}` has the shape {:?} for a batch of {} rows, so this model's rows cannot share a batch; \
                     set `batch = false` for it",
                    spec.name, view.shape, work.padded_rows
                )));
            }
            own(view)
        }).collect()
    }

    /// Writes the rows of all requests into the lane.
    fn fill(&self, lane: &mut dyn Lane, work: &Work) -> Result<(), EngineError> {
        let Some(first) = work.requests.first() else { return Ok(()) };
        let rows = RowShapes::of(&first.inputs, &self.signature, &self.pad_sizes);
        for (index, row_shape) in rows.0.iter().enumerate() {
            let dtype = first.inputs.get(index).map_or(DType::F32, Tensor::dtype);
            let shape = if self.signature.batched {
                std::iter::once(work.padded_rows).chain(row_shape.iter().copied()).collect()
            } else {
                row_shape.clone()
            };
            let tensors = work.requests.iter().filter_map(|request| request.inputs.get(index));
            if let Some(size) = dtype.size() {
                let bytes = elements(&shape).and_then(|count| count.checked_mul(size)).unwrap_or(usize::MAX);
                let out = lane.input(index, &shape, bytes)?;
                fill_numbers(tensors, row_shape, self.signature.batched, size, out)
                    .ok_or_else(|| EngineError::Failed("rows of different shapes in one batch".to_owned()))?;
            } else {
                let strings: usize = tensors.clone().map(|tensor| tensor.data().len()).sum();
                let padding = (work.padded_rows - work.rows) * elements(row_shape).unwrap_or(1) * 4;
                let out = lane.input(index, &shape, strings + padding)?;
                let mut at = 0;
                for tensor in tensors {
                    copy_at(out, &mut at, tensor.data());
                }
                // An empty string is four bytes of length zero.
                out.get_mut(at..).unwrap_or_default().fill(0);
            }
        }
        Ok(())
    }

    fn hand_out(&self, requests: Vec<Waiting>, outputs: &[Tensor], post: &mut Post) {
        let mut from = 0;
        for request in requests {
            let to = from + request.rows;
            let answer = self.answer(&request, outputs, from, to);
            from = to;
            let outcome = answer.ok_or_else(|| {
                ServeError::Engine("the engine's outputs have fewer rows than the batch".to_owned())
            });
            post.add(request.sender, outcome);
        }
    }

    fn answer(&self, request: &Waiting, outputs: &[Tensor], from: usize, to: usize) -> Option<Answer> {
        let batched = self.signature.batched;
        let padded = (!self.pad_sizes.is_empty())
            .then(|| RowShapes::of(&request.inputs, &self.signature, &self.pad_sizes));
        let outputs = outputs.iter().zip(&self.signature.outputs).map(|(output, spec)| {
            let rows = if batched { output.slice_rows(from, to)? } else { output.clone() };
            let narrow = padded
                .as_ref()
                .and_then(|padded| shapes::wanted_shape(&rows, spec, &request.inputs, padded, batched));
            match narrow {
                Some(shape) => shapes::cut(&rows, &shape),
                None => Some(rows),
            }
        });
        Some(Answer { outputs: outputs.collect::<Option<_>>()? })
    }

    /// Requests of a batch that failed run again alone, so that the one at fault fails by itself. One that was alone
    /// is at fault.
    fn give_back(&self, requests: Vec<Waiting>, error: &EngineError, post: &mut Post) {
        let alone = requests.len() == 1;
        // Nobody is told of a batch that was stopped because everybody left.
        let awaited = requests.into_iter().filter(|request| request.sender.is_awaited());
        let (failed, again): (Vec<_>, Vec<_>) =
            awaited.partition(|request| alone && (request.suspect || !error.is_fatal()));
        self.queue.metrics.failed(failed.len());
        for request in failed {
            post.add(request.sender, Err(ServeError::Engine(error.to_string())));
        }
        if !again.is_empty() {
            self.queue.retry(again);
        }
    }
}

/// Copies an output out of memory the next batch will use.
fn own(view: &OutputView<'_>) -> Result<Tensor, EngineError> {
    Tensor::new(view.dtype, view.shape.clone(), Bytes::copy_from_slice(view.data))
        .map_err(|error| EngineError::Failed(format!("the engine's answer does not hold together: {error}")))
}

fn fill_numbers<'a>(
    tensors: impl Iterator<Item = &'a Tensor>,
    row_shape: &[usize],
    batched: bool,
    size: usize,
    out: &mut [u8],
) -> Option<()> {
    let mut at = 0;
    for tensor in tensors {
        let own_row = tensor.shape().get(usize::from(batched)..).unwrap_or_default();
        if own_row == row_shape {
            copy_at(out, &mut at, tensor.data());
            continue;
        }
        let rows = if batched { tensor.rows() } else { 1 };
        let bytes = rows * elements(row_shape).unwrap_or(0) * size;
        let wide: Vec<usize> = if batched {
            std::iter::once(rows).chain(row_shape.iter().copied()).collect()
        } else {
            row_shape.to_vec()
        };
        let room = out.get_mut(at..at + bytes)?;
        room.fill(0);
        shapes::place(tensor, &wide, room)?;
        at += bytes;
    }
    out.get_mut(at..)?.fill(0);
    Some(())
}

fn copy_at(out: &mut [u8], at: &mut usize, data: &[u8]) {
    if let Some(room) = out.get_mut(*at..*at + data.len()) {
        room.copy_from_slice(data);
    }
    *at += data.len();
}
