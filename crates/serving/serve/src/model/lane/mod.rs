//! One lane of an engine: takes a batch, fills the buffers, runs it, and sends the replies.

mod fill;
mod outputs;
mod row_range;

use std::sync::Arc;
use std::time::{Duration, Instant};

use cudock_engine::{EngineError, InvalidRow, Lane};
use cudock_server::{Budget, HttpRejection};
use cudock_tensor::{InferenceResponse, Signature, Tensor};

use self::outputs::BatchOutputs;
use self::row_range::RowRange;
use super::queue::{Attempt, PendingRequest, Queue, RunnableBatch};
use super::shapes::{self, RowShapes};
use crate::ServeError;
use crate::metrics::{BatchTimes, RunTimes};
use crate::reply::{ReplyBatch, TimedResponse};

/// The lane's view of its model and engine.
pub(crate) struct LaneContext {
    pub(crate) queue: Arc<Queue>,
    pub(crate) signature: Arc<Signature>,
    /// Sizes to which dynamic dimensions are padded.
    pub(crate) pad_sizes: Vec<usize>,
    /// The bytes of an element of padding for each input; zero where there are none.
    pub(crate) padding: Arc<Vec<Vec<u8>>>,
    /// Longest time of the engine for one batch.
    pub(crate) limit: Duration,
    /// Memory for outputs.
    pub(crate) budget: Arc<Budget>,
    /// Number of the engine to which the lane belongs.
    pub(crate) engine: u64,
    /// Whether that engine has no other lane.
    pub(crate) is_only_lane: bool,
    /// Called with the rows of a batch that fit into the device's memory, when these are fewer than before.
    pub(crate) on_limited: Box<dyn Fn(usize) + Send>,
}

/// A suspect may take this many times the estimate, instead of the full limit.
const SUSPECT_TIME_FACTOR: u32 = 100;

impl LaneContext {
    /// Runs batches until the queue is closed and empty (`Ok`) or the engine has died (`Err`).
    pub(crate) fn run_batches(&self, lane: &mut dyn Lane) -> Result<(), EngineError> {
        let mut replies = ReplyBatch::new(Some(self.queue.clone()));
        while let Some(mut batch) = self.queue.take(self.engine) {
            let begun = self.queue.now();
            let result = self.run_valid_rows(lane, &mut batch, &mut replies);
            let ended = self.queue.now();
            self.queue.finished(batch.id, matches!(result, Ok((_, Parts::One))));
            match result {
                // All had rows that the model does not take.
                Ok(_) if batch.requests.is_empty() => {}
                Ok((outputs, _)) => {
                    let run = RunTimes { dispatched: batch.dispatched, begun, ended };
                    let BatchOutputs { of, read, .. } = outputs;
                    let answered = batch.requests.iter().zip(&of).filter(|(_, outputs)| outputs.is_ok());
                    self.queue.metrics.batch(&BatchTimes {
                        run,
                        rows: batch.rows,
                        received: answered.map(|(request, _)| request.received),
                    });
                    self.send_replies(batch.requests, of, run, &mut replies);
                    replies.deliver();
                    lane.trim();
                    drop(read);
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

    /// Runs a batch without the requests that have rows which the model does not take. They are rejected.
    fn run_valid_rows(
        &self,
        lane: &mut dyn Lane,
        batch: &mut RunnableBatch,
        replies: &mut ReplyBatch,
    ) -> Result<(BatchOutputs, Parts), EngineError> {
        loop {
            let result = self.run(lane, batch);
            let Err(EngineError::InvalidRows(rows)) = &result else { return result };
            let invalid = invalid_requests(&batch.requests, rows, self.signature.batched);
            if invalid.iter().all(Option::is_none) {
                return result;
            }
            let requests = std::mem::take(&mut batch.requests).into_iter().zip(invalid);
            for (request, invalid) in requests {
                match invalid {
                    Some(rejection) => replies.add(request.sender, Err(rejection.into())),
                    None => batch.requests.push(request),
                }
            }
            replies.deliver();
            batch.rows = batch.requests.iter().map(|request| request.rows).sum();
            batch.padded_rows = self.queue.padded_within(batch.rows, batch.padded_rows);
            if batch.requests.is_empty() {
                return Ok((BatchOutputs::new(&self.budget, 0), Parts::Several));
            }
        }
    }

    /// Runs a batch: in parts if it does not fit into the device's memory as a whole.
    fn run(&self, lane: &mut dyn Lane, batch: &RunnableBatch) -> Result<(BatchOutputs, Parts), EngineError> {
        let mut outputs = BatchOutputs::new(&self.budget, batch.requests.len());
        let can_split = self.signature.batched && batch.rows > 0;
        if let Some(limit) = batch.row_limit.filter(|limit| can_split && batch.rows > *limit) {
            self.run_parts(lane, batch, limit, &mut outputs)?;
            return Ok((outputs, Parts::Several));
        }
        let whole = RowRange { from: 0, to: batch.rows, padded: batch.padded_rows };
        match self.run_rows(lane, batch, whole, &mut outputs) {
            Err(EngineError::DeviceMemory(_)) if can_split && batch.padded_rows > 1 => {
                let most = self.queue.part_rows(batch.padded_rows);
                self.run_parts(lane, batch, most, &mut outputs)?;
                Ok((outputs, Parts::Several))
            }
            result => result.map(|()| (outputs, Parts::One)),
        }
    }

    /// Runs parts of at most `most` rows one after the other, and smaller ones if these do not fit either. Later batches
    /// are limited to as many rows.
    fn run_parts(
        &self,
        lane: &mut dyn Lane,
        batch: &RunnableBatch,
        mut most: usize,
        outputs: &mut BatchOutputs,
    ) -> Result<(), EngineError> {
        let mut from = 0;
        while from < batch.rows {
            let to = batch.rows.min(from + most);
            let range = RowRange { from, to, padded: self.queue.padded_within(to - from, most) };
            match self.run_rows(lane, batch, range, outputs) {
                Ok(()) => from = to,
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
        Ok(())
    }

    fn run_rows(
        &self,
        lane: &mut dyn Lane,
        batch: &RunnableBatch,
        range: RowRange,
        outputs: &mut BatchOutputs,
    ) -> Result<(), EngineError> {
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
        let views = lane.run_while(limit, &is_wanted).map_err(|error| range.in_batch(error))?;
        let ran = Instant::now();
        let batched = self.signature.batched;
        for (view, spec) in views.iter().zip(&self.signature.outputs).filter(|_| batched) {
            if view.shape.first() != Some(&range.padded) {
                return Err(EngineError::Failed(format!(
                    "output `{}` has shape {:?} for a batch of {} rows, so requests to this model cannot share a batch; \
                     set `batch = false` for it",
                    spec.name, view.shape, range.padded
                )));
            }
        }
        outputs.add(&batch.requests, &views, range, batched)?;
        self.queue.metrics.copied(input, ran.elapsed(), batch.requests.len());
        Ok(())
    }

    fn send_replies(
        &self,
        requests: Vec<PendingRequest>,
        outputs: Vec<Result<Vec<Tensor>, HttpRejection>>,
        run: RunTimes,
        replies: &mut ReplyBatch,
    ) {
        for (request, outputs) in requests.into_iter().zip(outputs) {
            let response =
                outputs.map(|outputs| TimedResponse { response: self.response(&request, outputs), run });
            replies.add(request.sender, response.map_err(ServeError::from));
        }
    }

    /// The outputs of a request, without what belongs to padding.
    fn response(&self, request: &PendingRequest, outputs: Vec<Tensor>) -> InferenceResponse {
        if self.pad_sizes.is_empty() {
            return InferenceResponse { outputs };
        }
        let padded = RowShapes::of(&request.inputs, &self.signature, &self.pad_sizes);
        let outputs = outputs.into_iter().zip(&self.signature.outputs).map(|(rows, spec)| {
            shapes::unpadded_shape(&rows, spec, &request.inputs, &padded, self.signature.batched)
                .and_then(|shape| shapes::crop(&rows, &shape))
                .unwrap_or(rows)
        });
        InferenceResponse { outputs: outputs.collect() }
    }

    /// Runs the requests of a failed batch again: together if the engine was lost for the first time, else each alone, so
    /// that only the one at fault fails. A request that was alone is at fault.
    fn fail_or_retry(&self, requests: Vec<PendingRequest>, error: &EngineError, replies: &mut ReplyBatch) {
        let is_first = requests.iter().all(|request| request.attempt == Attempt::First);
        // An engine that others killed does not count, unless it happens to the same requests again.
        let was_killed = matches!(error, EngineError::Killed(_));
        let is_crash = error.is_fatal() && !(was_killed && is_first);
        let is_wary = if is_crash {
            self.queue.engine_crashed(self.engine)
        } else {
            self.queue.crashes.is_wary(Instant::now())
        };
        let is_one = requests.len() == 1;
        // A batch that was stopped because all clients disconnected needs no replies.
        let awaited = requests.into_iter().filter(|request| request.sender.is_awaited());
        let was_alone = |request: &PendingRequest| {
            request.attempt == Attempt::Alone
                || !error.is_fatal()
                || (is_crash && is_wary && self.is_only_lane)
        };
        let (failed, again): (Vec<_>, Vec<_>) = awaited.partition(|request| is_one && was_alone(request));
        self.queue.metrics.failed(failed.len());
        for request in failed {
            let reply = match error {
                EngineError::DeviceMemory(reason) => ServeError::DeviceMemory(reason.clone()),
                error => ServeError::Engine(error.to_string()),
            };
            if error.is_fatal() {
                let (crashes, now) = (&self.queue.crashes, Instant::now());
                let is_certain = request.attempt == Attempt::Alone && !was_killed;
                crashes.blame(&request.inputs, is_certain, now);
                crashes.hold(request.sender, reply, now);
            } else {
                replies.add(request.sender, Err(reply));
            }
        }
        if !again.is_empty() {
            let together = is_first && !is_one && error.is_fatal() && !is_wary;
            self.queue.retry(again, if together { Attempt::Together } else { Attempt::Alone });
        }
    }
}

/// Whether a batch ran as a whole.
enum Parts {
    One,
    Several,
}

/// The error of each request's first row that the model does not accept, if there is one.
fn invalid_requests(
    requests: &[PendingRequest],
    rows: &[InvalidRow],
    batched: bool,
) -> Vec<Option<HttpRejection>> {
    let mut first = 0;
    let of = |request: &PendingRequest| {
        let own = if batched { first..first + request.rows } else { 0..usize::MAX };
        first += request.rows;
        let InvalidRow { row, reason } = rows.iter().find(|invalid| own.contains(&invalid.row))?;
        Some(HttpRejection::BadRequest(format!("row {}: {reason}", row - own.start)))
    };
    requests.iter().map(of).collect()
}

#[cfg(test)]
mod tests;
