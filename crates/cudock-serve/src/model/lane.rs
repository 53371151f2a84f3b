//! One lane of an engine: takes a batch, fills the buffers, runs it, and sends the replies.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use cudock_engine::{EngineError, Lane, OutputView};
use cudock_tensor::{DType, InferenceResponse, Signature, Tensor, elements};

use super::queue::{Attempt, PendingRequest, Queue, RunnableBatch};
use super::shapes::{self, RowShapes};
use crate::ServeError;
use crate::metrics::{BatchTimes, RunTimes};
use crate::reply::{ReplyBatch, TimedResponse};

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
    /// Called with the rows of a batch that fit into the device's memory, when these are fewer than before.
    pub(crate) on_limited: Box<dyn Fn(usize) + Send>,
}

/// Rows of a batch that the engine runs at once.
#[derive(Clone, Copy)]
struct RowRange {
    from: usize,
    to: usize,
    /// Rows that the engine runs: as many, or more if batches are padded.
    padded: usize,
}

impl RowRange {
    fn len(self) -> usize {
        self.to - self.from
    }
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
            self.queue.finished(batch.id, matches!(result, Ok((_, Parts::One))));
            match result {
                Ok((outputs, _)) => {
                    let run = RunTimes { dispatched: batch.dispatched, begun, ended };
                    self.queue.metrics.batch(&BatchTimes {
                        run,
                        rows: batch.rows,
                        received: batch.requests.iter().map(|request| request.received),
                    });
                    self.send_replies(batch.requests, &outputs, run, &mut replies);
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

    /// Runs a batch: in parts if it does not fit into the device's memory as a whole.
    fn run(&self, lane: &mut dyn Lane, batch: &RunnableBatch) -> Result<(Vec<Tensor>, Parts), EngineError> {
        let can_split = self.signature.batched && batch.rows > 0;
        if let Some(limit) = batch.row_limit.filter(|limit| can_split && batch.rows > *limit) {
            return Ok((self.run_parts(lane, batch, limit)?, Parts::Several));
        }
        let whole = RowRange { from: 0, to: batch.rows, padded: batch.padded_rows };
        match self.run_rows(lane, batch, whole) {
            Err(EngineError::DeviceMemory(_)) if can_split && batch.padded_rows > 1 => {
                let most = self.queue.part_rows(batch.padded_rows);
                Ok((self.run_parts(lane, batch, most)?, Parts::Several))
            }
            result => Ok((result?, Parts::One)),
        }
    }

    /// Runs parts of at most `most` rows one after the other, and smaller ones if these do not fit either. Later batches
    /// are limited to as many rows.
    fn run_parts(
        &self,
        lane: &mut dyn Lane,
        batch: &RunnableBatch,
        mut most: usize,
    ) -> Result<Vec<Tensor>, EngineError> {
        let mut parts = Vec::new();
        let mut from = 0;
        while from < batch.rows {
            let to = batch.rows.min(from + most);
            let range = RowRange { from, to, padded: self.queue.padded_within(to - from, most) };
            match self.run_rows(lane, batch, range) {
                Ok(outputs) => {
                    parts.push((outputs, range.len()));
                    from = to;
                }
                Err(EngineError::DeviceMemory(_)) if range.padded > 1 => {
                    most = self.queue.part_rows(range.padded);
                }
                Err(error) => return Err(error),
            }
        }
        self.queue.metrics.split();
        if self.queue.limit_rows(batch.bucket, most) {
            (self.on_limited)(most);
        }
        join_parts(&parts)
    }

    fn run_rows(
        &self,
        lane: &mut dyn Lane,
        batch: &RunnableBatch,
        range: RowRange,
    ) -> Result<Vec<Tensor>, EngineError> {
        let begun = Instant::now();
        self.fill(lane, batch, range)?;
        let input = begun.elapsed();
        self.queue.filled(batch.id);
        let suspect = batch.requests.iter().any(|request| request.attempt != Attempt::First);
        let limit = match batch.expected {
            Some(expected) if suspect => {
                self.limit.min((expected * SUSPECT_TIME_FACTOR).max(Duration::from_secs(1)))
            }
            _ => self.limit,
        };
        let is_wanted = || batch.requests.iter().any(|request| request.sender.is_awaited());
        let outputs = lane.run_while(limit, &is_wanted)?;
        let ran = Instant::now();
        let copied = outputs.iter().zip(&self.signature.outputs).map(|(view, spec)| {
            if self.signature.batched && view.shape.first() != Some(&range.padded) {
                return Err(EngineError::Failed(format!(
                    "output `{}` has shape {:?} for a batch of {} rows, so requests to this model cannot share a batch; \
                     set `batch = false` for it",
                    spec.name, view.shape, range.padded
                )));
            }
            copy_output(view)
        }).collect();
        self.queue.metrics.copied(input, ran.elapsed(), batch.requests.len());
        copied
    }

    /// Writes rows of the requests into the lane.
    fn fill(&self, lane: &mut dyn Lane, batch: &RunnableBatch, range: RowRange) -> Result<(), EngineError> {
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

    fn send_replies(
        &self,
        requests: Vec<PendingRequest>,
        outputs: &[Tensor],
        run: RunTimes,
        replies: &mut ReplyBatch,
    ) {
        let mut from = 0;
        let too_few = || ServeError::Engine("the engine's outputs have fewer rows than the batch".to_owned());
        for request in requests {
            let to = from + request.rows;
            let response = self.response(&request, outputs, from, to);
            from = to;
            let response = response.map(|response| TimedResponse { response, run });
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

    /// Runs the requests of a failed batch again: together if the engine was lost for the first time, else each alone, so
    /// that only the one at fault fails. A request that was alone is at fault.
    fn fail_or_retry(&self, requests: Vec<PendingRequest>, error: &EngineError, replies: &mut ReplyBatch) {
        let is_first = requests.iter().all(|request| request.attempt == Attempt::First);
        let is_one = requests.len() == 1;
        // A batch that was stopped because all clients disconnected needs no replies.
        let awaited = requests.into_iter().filter(|request| request.sender.is_awaited());
        let (failed, again): (Vec<_>, Vec<_>) =
            awaited.partition(|request| is_one && (request.attempt == Attempt::Alone || !error.is_fatal()));
        self.queue.metrics.failed(failed.len());
        for request in failed {
            let reply = match error {
                EngineError::DeviceMemory(reason) => ServeError::DeviceMemory(reason.clone()),
                error => ServeError::Engine(error.to_string()),
            };
            replies.add(request.sender, Err(reply));
        }
        if !again.is_empty() {
            let together = is_first && !is_one && error.is_fatal();
            self.queue.retry(again, if together { Attempt::Together } else { Attempt::Alone });
        }
    }
}

/// Whether a batch ran as a whole.
enum Parts {
    One,
    Several,
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

/// Joins the outputs of parts, each of which has that many rows and maybe padding.
fn join_parts(parts: &[(Vec<Tensor>, usize)]) -> Result<Vec<Tensor>, EngineError> {
    let outputs = parts.first().map_or(0, |(outputs, _)| outputs.len());
    let join = |index: usize| {
        let rows = parts.iter().map(|(outputs, rows)| outputs.get(index)?.slice_rows(0, *rows));
        let rows: Vec<Tensor> = rows.collect::<Option<_>>()?;
        let first = rows.first()?;
        let mut shape = first.shape().to_vec();
        if rows.iter().any(|rows| rows.shape().get(1..) != shape.get(1..)) {
            return None;
        }
        *shape.first_mut()? = rows.iter().map(Tensor::rows).sum();
        let data: Vec<&[u8]> = rows.iter().map(|rows| rows.data().as_ref()).collect();
        Tensor::new(first.dtype(), shape, data.concat().into()).ok()
    };
    (0..outputs)
        .map(join)
        .collect::<Option<_>>()
        .ok_or_else(|| EngineError::Failed("parts of a batch have outputs of different shapes".to_owned()))
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
            copy_at(out, &mut at, tensor.data());
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

fn copy_at(out: &mut [u8], at: &mut usize, data: &[u8]) {
    if let Some(room) = out.get_mut(*at..*at + data.len()) {
        room.copy_from_slice(data);
    }
    *at += data.len();
}

#[cfg(test)]
mod tests;
