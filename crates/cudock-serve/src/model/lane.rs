//! One lane of an engine: takes a batch, fills the buffers, runs it, and sends the replies.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cudock_engine::{EngineError, Lane, OutputView};
use cudock_tensor::{DType, InferenceResponse, Signature, Tensor, elements};

use super::queue::{PendingRequest, Queue, RunnableBatch};
use super::shapes::{self, RowShapes};
use crate::ServeError;
use crate::metrics::BatchTimes;
use crate::reply::ReplyBatch;

/// What a lane needs to know about its model.
pub(crate) struct LaneContext {
    pub(crate) queue: Arc<Queue>,
    pub(crate) signature: Arc<Signature>,
    /// Sizes to which dynamic dimensions are padded.
    pub(crate) pad_sizes: Vec<usize>,
    /// The bytes of an element of padding for each input; zero where there are none.
    pub(crate) padding: Arc<Vec<Vec<u8>>>,
    /// Longest time of the engine for one batch.
    pub(crate) limit: Duration,
    /// Number of the engine to which the lane belongs.
    pub(crate) engine: u64,
}

/// A suspect may take this many times the estimate, instead of the full limit.
const SUSPECT_TIME_FACTOR: u32 = 100;

impl LaneContext {
    /// Runs batches until the queue is closed and empty (`Ok`) or the engine has died (`Err`).
    pub(crate) fn run_batches(&self, lane: &mut dyn Lane) -> Result<(), EngineError> {
        let mut replies = ReplyBatch::new(Some(Arc::clone(&self.queue)));
        while let Some(batch) = self.queue.take(self.engine) {
            let begun = self.queue.now();
            let result = self.run(lane, &batch);
            let ended = self.queue.now();
            self.queue.finished(batch.id, result.is_ok());
            match result {
                Ok(outputs) => {
                    self.queue.metrics.batch(&BatchTimes {
                        dispatched: batch.dispatched,
                        begun,
                        ended,
                        rows: batch.rows,
                        received: batch.requests.iter().map(|request| request.received),
                    });
                    self.send_replies(batch.requests, &outputs, &mut replies);
                    replies.deliver();
                    lane.trim();
                }
                Err(error) => {
                    let fatal = error.is_fatal();
                    self.fail_or_retry(batch.requests, &error, &mut replies);
                    replies.deliver();
                    if fatal {
                        return Err(error);
                    }
                }
            }
        }
        Ok(())
    }

    fn run(&self, lane: &mut dyn Lane, batch: &RunnableBatch) -> Result<Vec<Tensor>, EngineError> {
        self.fill(lane, batch)?;
        self.queue.filled(batch.id);
        let suspect = batch.requests.iter().any(|request| request.suspect);
        let limit = match batch.expected {
            Some(expected) if suspect => {
                self.limit.min((expected * SUSPECT_TIME_FACTOR).max(Duration::from_secs(1)))
            }
            _ => self.limit,
        };
        let is_wanted = || batch.requests.iter().any(|request| request.sender.is_awaited());
        let outputs = lane.run_while(limit, &is_wanted)?;
        outputs.iter().zip(&self.signature.outputs).map(|(view, spec)| {
            if self.signature.batched && view.shape.first() != Some(&batch.padded_rows) {
                return Err(EngineError::Failed(format!(
                    "output `{}` has shape {:?} for a batch of {} rows, so requests to this model cannot share a batch; \
                     set `batch = false` for it",
                    spec.name, view.shape, batch.padded_rows
                )));
            }
            copy_output(view)
        }).collect()
    }

    /// Writes the rows of all requests into the lane.
    fn fill(&self, lane: &mut dyn Lane, batch: &RunnableBatch) -> Result<(), EngineError> {
        let Some(first) = batch.requests.first() else { return Ok(()) };
        let rows = RowShapes::of(&first.inputs, &self.signature, &self.pad_sizes);
        for (index, row_shape) in rows.0.iter().enumerate() {
            let dtype = first.inputs.get(index).map_or(DType::F32, Tensor::dtype);
            let shape = with_rows(batch.padded_rows, row_shape, self.signature.batched);
            let tensors = batch.requests.iter().filter_map(|request| request.inputs.get(index));
            if let Some(size) = dtype.size() {
                let bytes = elements(&shape).and_then(|count| count.checked_mul(size)).unwrap_or(usize::MAX);
                let out = lane.input(index, &shape, bytes)?;
                let padding = self.padding.get(index).map(Vec::as_slice).unwrap_or_default();
                fill_numbers(tensors, row_shape, self.signature.batched, size, padding, out)
                    .ok_or_else(|| EngineError::Failed("rows of different shapes in one batch".to_owned()))?;
            } else {
                let strings: usize = tensors.clone().map(|tensor| tensor.data().len()).sum();
                let padding = (batch.padded_rows - batch.rows) * elements(row_shape).unwrap_or(1) * 4;
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

    fn send_replies(&self, requests: Vec<PendingRequest>, outputs: &[Tensor], replies: &mut ReplyBatch) {
        let mut from = 0;
        let too_few = || ServeError::Engine("the engine's outputs have fewer rows than the batch".to_owned());
        for request in requests {
            let to = from + request.rows;
            let response = self.response(&request, outputs, from, to);
            from = to;
            replies.add(request.sender, response.ok_or_else(too_few));
        }
    }

    fn response(
        &self,
        request: &PendingRequest,
        outputs: &[Tensor],
        from: usize,
        to: usize,
    ) -> Option<InferenceResponse> {
        let batched = self.signature.batched;
        let padded = (!self.pad_sizes.is_empty())
            .then(|| RowShapes::of(&request.inputs, &self.signature, &self.pad_sizes));
        let outputs = outputs.iter().zip(&self.signature.outputs).map(|(output, spec)| {
            let rows = if batched { output.slice_rows(from, to)? } else { output.clone() };
            let narrow = padded
                .as_ref()
                .and_then(|padded| shapes::unpadded_shape(&rows, spec, &request.inputs, padded, batched));
            match narrow {
                Some(shape) => shapes::crop(&rows, &shape),
                None => Some(rows),
            }
        });
        Some(InferenceResponse { outputs: outputs.collect::<Option<_>>()? })
    }

    /// Retries the requests of a failed batch in isolation, so that only the one at fault fails. A request that was
    /// alone is at fault.
    fn fail_or_retry(&self, requests: Vec<PendingRequest>, error: &EngineError, replies: &mut ReplyBatch) {
        let alone = requests.len() == 1;
        // A batch that was stopped because all clients disconnected needs no replies.
        let awaited = requests.into_iter().filter(|request| request.sender.is_awaited());
        let (failed, again): (Vec<_>, Vec<_>) =
            awaited.partition(|request| alone && (request.suspect || !error.is_fatal()));
        self.queue.metrics.failed(failed.len());
        for request in failed {
            replies.add(request.sender, Err(ServeError::Engine(error.to_string())));
        }
        if !again.is_empty() {
            self.queue.retry(again);
        }
    }
}

/// Copies an output out of memory that the next batch will reuse.
fn copy_output(view: &OutputView<'_>) -> Result<Tensor, EngineError> {
    Tensor::new(view.dtype, view.shape.clone(), Bytes::copy_from_slice(view.data))
        .map_err(|error| EngineError::Failed(format!("the engine returned an invalid tensor: {error}")))
}

/// The shape of a batch of `rows`, or that of the row itself if the model is not batched.
fn with_rows(rows: usize, row_shape: &[usize], batched: bool) -> Vec<usize> {
    batched.then_some(rows).into_iter().chain(row_shape.iter().copied()).collect()
}

fn fill_numbers<'a>(
    tensors: impl Iterator<Item = &'a Tensor>,
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
            copy_at(out, &mut at, tensor.data());
            continue;
        }
        let rows = if batched { tensor.rows() } else { 1 };
        let bytes = rows * elements(row_shape).unwrap_or(0) * size;
        let wide = with_rows(rows, row_shape, batched);
        let room = out.get_mut(at..at + bytes)?;
        shapes::fill_padding(padding, room);
        shapes::pad_into(tensor, &wide, room)?;
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
