//! Batches that do not fit into the device's memory: every request gets its own rows back.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use cudock_base::lock;
use cudock_batcher::{BatcherSettings, Time};
use cudock_engine::{EngineError, Lane, OutputView};
use cudock_server::Budget;
use cudock_tensor::{DType, InferenceResponse, Signature, Tensor, TensorSpec};
use futures_util::FutureExt;
use proptest::prelude::*;

use super::{LaneContext, Queue};
use crate::ServeError;
use crate::metrics::ModelMetrics;
use crate::model::queue::{Attempt, PendingRequest, Submission};
use crate::reply::Unanswered;

/// Returns its inputs, numbers and strings, if a batch has at most that many rows.
#[derive(Default)]
struct LimitedLane {
    fits: usize,
    rows: usize,
    inputs: [Vec<u8>; 2],
    /// Rows of all batches.
    runs: Vec<usize>,
}

impl Lane for LimitedLane {
    fn input(&mut self, index: usize, shape: &[usize], bytes: usize) -> Result<&mut [u8], EngineError> {
        self.rows = shape[0];
        // What an earlier batch left there must not matter.
        self.inputs[index] = vec![0xee; bytes];
        Ok(&mut self.inputs[index])
    }

    fn run_while(
        &mut self,
        _limit: Duration,
        _is_wanted: &dyn Fn() -> bool,
    ) -> Result<Vec<OutputView<'_>>, EngineError> {
        self.runs.push(self.rows);
        if self.rows > self.fits {
            return Err(EngineError::DeviceMemory("too many rows".to_owned()));
        }
        let [numbers, strings] = &self.inputs;
        Ok(vec![
            OutputView { dtype: DType::U8, shape: vec![self.rows, 2], data: numbers },
            OutputView { dtype: DType::String, shape: vec![self.rows], data: strings },
        ])
    }
}

fn signature() -> Signature {
    let specs = vec![
        TensorSpec::new("numbers", DType::U8, [None, Some(2)]),
        TensorSpec::new("strings", DType::String, [None]),
    ];
    Signature { inputs: specs.clone(), outputs: specs, batched: true }
}

/// Rows that no other request has. The strings have different lengths.
fn rows_of(request: usize, rows: usize) -> Vec<Tensor> {
    let number = |row: usize| u8::try_from((request * 16 + row) % 251).unwrap();
    let numbers: Vec<u8> = (0..rows).flat_map(|row| [number(row), number(row) ^ 0xff]).collect();
    let strings: Vec<u8> = (0..rows)
        .flat_map(|row| {
            let text = format!("{request}.{row}").repeat(row % 3);
            [&u32::try_from(text.len()).unwrap().to_le_bytes(), text.as_bytes()].concat()
        })
        .collect();
    vec![
        Tensor::new(DType::U8, vec![rows, 2], Bytes::from(numbers)).unwrap(),
        Tensor::new(DType::String, vec![rows], Bytes::from(strings)).unwrap(),
    ]
}

struct Outcome {
    responses: Vec<Result<InferenceResponse, ServeError>>,
    runs: Vec<usize>,
    limits: Vec<usize>,
    queue: Arc<Queue>,
}

/// Runs requests with these rows on a lane on which `fits` rows fit.
fn run(fits: usize, settings: BatcherSettings, requests: &[usize]) -> Outcome {
    let queue = Arc::new(Queue::new(settings, ModelMetrics::default()));
    let submissions: Vec<Submission> = requests
        .iter()
        .enumerate()
        .map(|(request, &rows)| {
            let make = |sender| PendingRequest {
                inputs: rows_of(request, rows),
                rows,
                bucket: 0,
                priority: 0,
                deadline: None,
                received: Time(0),
                attempt: Attempt::First,
                sender,
            };
            Submission::submit(&queue, make).unwrap_or_else(|_| panic!("rejected"))
        })
        .collect();
    let engine = queue.engine_started();
    let limits = Arc::new(Mutex::new(Vec::new()));
    let limited = Arc::clone(&limits);
    let context = LaneContext {
        queue: Arc::clone(&queue),
        signature: Arc::new(signature()),
        pad_sizes: Vec::new(),
        padding: Arc::default(),
        limit: Duration::from_secs(1),
        budget: Arc::new(Budget::new(1 << 30)),
        engine,
        is_only_lane: true,
        on_limited: Box::new(move |rows| lock(&limited).push(rows)),
    };
    queue.close();
    let mut lane = LimitedLane { fits, ..LimitedLane::default() };
    context.run_batches(&mut lane).unwrap();
    let responses = submissions
        .into_iter()
        .map(|submission| {
            let result = submission.result(None).now_or_never().expect("all have run");
            result.map(|timed| timed.response).map_err(|unanswered| match unanswered {
                Unanswered::Failed(error) => error,
                Unanswered::Returned(_) => panic!("a request did not run"),
            })
        })
        .collect();
    let limits = lock(&limits).clone();
    Outcome { responses, runs: lane.runs, limits, queue }
}

fn batcher(max_rows: usize, preferred_rows: &[usize], pad: bool) -> BatcherSettings {
    let max_wait = Duration::ZERO;
    BatcherSettings {
        max_rows,
        preferred_rows: preferred_rows.to_vec(),
        pad,
        max_wait,
        ..BatcherSettings::default()
    }
}

proptest! {
    #[test]
    fn every_request_gets_its_own_rows(
        fits in 1_usize..12,
        max_rows in 1_usize..24,
        preferred in prop::sample::select(vec![vec![], vec![1, 4], vec![2, 8], vec![16]]),
        pad: bool,
        requests in prop::collection::vec(1_usize..9, 1..14),
    ) {
        let outcome = run(fits, batcher(max_rows, &preferred, pad), &requests);
        for (request, (response, &rows)) in outcome.responses.iter().zip(&requests).enumerate() {
            let response = response.as_ref().map_err(|error| TestCaseError::fail(error.to_string()))?;
            prop_assert_eq!(&response.outputs, &rows_of(request, rows));
        }
        let failed: Vec<usize> = outcome.runs.iter().copied().filter(|rows| *rows > fits).collect();
        let halves = failed.windows(2).all(|pair| pair[1] * 2 <= pair[0]);
        prop_assert!(halves, "what has failed is not tried again: {:?}", outcome.runs);
        prop_assert_eq!(failed.is_empty(), outcome.limits.is_empty());
        if let (Some(limit), Some(rows)) = (outcome.limits.last(), failed.last()) {
            prop_assert!(limit * 2 <= *rows, "limited to {} after {:?}", limit, outcome.runs);
        }
        prop_assert_eq!(outcome.queue.row_limit(), outcome.limits.last().copied());
    }
}

#[test]
fn a_batch_is_halved_until_it_fits_and_later_ones_are_not_larger() {
    let outcome = run(3, batcher(8, &[], false), &[4, 4, 8, 1, 1, 1, 1, 1]);
    assert_eq!(outcome.runs, [8, 4, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1]);
    assert_eq!(outcome.limits, [2]);
    assert_eq!(outcome.queue.metrics.totals().splits, 2);
}

#[test]
fn parts_have_preferred_sizes() {
    let outcome = run(5, batcher(8, &[1, 4, 8], true), &[7, 3]);
    assert_eq!(outcome.runs, [8, 4, 4, 4]);
    assert_eq!(outcome.limits, [4]);
}

#[test]
fn a_row_that_does_not_fit_alone_is_an_error_of_its_request() {
    let outcome = run(0, batcher(8, &[], false), &[2, 1]);
    for response in outcome.responses {
        assert!(matches!(response, Err(ServeError::DeviceMemory(_))), "{response:?}");
    }
    assert_eq!((outcome.limits, outcome.queue.metrics.totals().counts.failed), (vec![], 2));
}
