//! Measures an engine without a server, with and without the cost of JSON: the upper limit for any server with it.

use std::hint::black_box;
use std::time::{Duration, Instant};

use bytes::Bytes;
use cudock_engine::{DeviceInfo, Engine, EngineError, Lane, OutputView};
use cudock_tensor::{InferenceResponse, RequestLimits, Signature, Tensor, predict};
use schemars::JsonSchema;
use serde::Serialize;

use crate::error::LoadError;
use crate::payload::{self, BenchProtocol, ModelInput, ShapeOfRow};

const BATCH_TIMEOUT: Duration = Duration::from_secs(600);

#[derive(Debug)]
pub struct EngineBench<'a> {
    /// Batch sizes. A model without a batch dimension runs one request at a time.
    pub batches: &'a [usize],
    /// Rows of a request, for the cost of JSON.
    pub rows: usize,
    /// Shapes of inputs with dynamic sizes.
    pub shapes: &'a [ShapeOfRow],
    pub seed: u64,
    /// The warm-up of each size.
    pub warm_up: Duration,
    pub duration: Duration,
}

impl EngineBench<'_> {
    pub const DURATION: Duration = Duration::from_secs(1);
    pub const WARM_UP: Duration = Duration::from_millis(200);
}

#[derive(Debug, Serialize)]
pub struct EngineReport {
    pub device: DeviceInfo,
    pub runs: Vec<BatchRun>,
    /// The size of the fastest run.
    pub best_batch: usize,
    /// The cost of reading a `/predict` request and writing its response; `None` if the tensors cannot be JSON.
    pub json: Option<JsonCost>,
}

/// Batches of one size, one after the other.
#[derive(Debug, Serialize, JsonSchema)]
pub struct BatchRun {
    /// Rows of a batch.
    pub batch: usize,
    pub batches: u64,
    /// The time of one batch, from input bytes to output bytes.
    pub batch_ms: f64,
    /// Rows per second of all lanes.
    pub rows_per_second: f64,
    /// The same if the thread that runs the engine also reads and writes the JSON of each request.
    pub with_json_rows_per_second: Option<f64>,
}

/// The cost of the JSON of one request on one thread.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct JsonCost {
    pub rows: usize,
    pub body_bytes: usize,
    pub read_us: f64,
    pub write_us: f64,
}

impl JsonCost {
    #[allow(clippy::cast_precision_loss, reason = "a count of rows")]
    fn seconds_per_row(&self) -> f64 {
        (self.read_us + self.write_us) / 1e6 / self.rows as f64
    }
}

#[derive(Debug, thiserror::Error)]
pub enum EngineBenchError {
    /// Inputs cannot be generated.
    #[error(transparent)]
    Payload(#[from] LoadError),
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error("the engine has no lane")]
    NoLane,
    /// An output is not a tensor.
    #[error("{0}")]
    Output(String),
}

impl EngineBench<'_> {
    /// Measures an engine; `on_batch` is called before each size.
    pub fn run(
        &self,
        engine: &mut dyn Engine,
        on_batch: &dyn Fn(usize),
    ) -> Result<EngineReport, EngineBenchError> {
        let signature = engine.signature().clone();
        let device = engine.device().clone();
        let inputs = signature.inputs.iter().map(|spec| ModelInput::resolve(spec, self.shapes));
        let inputs = inputs.collect::<Result<Vec<_>, _>>()?;
        let mut lanes = engine.take_lanes();
        let json = match lanes.first_mut() {
            Some(lane) => self.json_cost(&signature, &inputs, lane.as_mut())?,
            None => return Err(EngineBenchError::NoLane),
        };
        let batches = if signature.batched { self.batches } else { &[1] };
        let mut runs = Vec::with_capacity(batches.len());
        for batch in batches {
            on_batch(*batch);
            runs.push(self.measure(&inputs, *batch, &mut lanes, json)?);
        }
        let best = runs.iter().max_by(|one, other| one.rows_per_second.total_cmp(&other.rows_per_second));
        Ok(EngineReport { device, best_batch: best.map_or(0, |best| best.batch), runs, json })
    }

    /// Runs batches of one size on all lanes at once.
    #[allow(clippy::cast_precision_loss, reason = "counts become rates")]
    fn measure(
        &self,
        inputs: &[ModelInput],
        batch: usize,
        lanes: &mut [Box<dyn Lane>],
        json: Option<JsonCost>,
    ) -> Result<BatchRun, EngineBenchError> {
        let feed = feed(inputs, batch, self.seed)?;
        let count = lanes.len();
        let outcomes: Vec<Result<(u64, f64), EngineError>> = std::thread::scope(|scope| {
            let feed = &feed;
            let workers: Vec<_> = lanes
                .iter_mut()
                .map(|lane| scope.spawn(move || self.run_lane(lane.as_mut(), feed)))
                .collect();
            let failed = || EngineError::Failed("its thread ended early".to_owned());
            workers.into_iter().map(|worker| worker.join().unwrap_or_else(|_| Err(failed()))).collect()
        });
        let mut batches = 0;
        let (mut rate, mut time) = (0.0, 0.0);
        for outcome in outcomes {
            let (done, seconds) = outcome?;
            batches += done;
            rate += done as f64 / seconds;
            time += seconds / done as f64 / count as f64;
        }
        let rows_per_second = rate * batch as f64;
        Ok(BatchRun {
            batch,
            batches,
            batch_ms: time * 1e3,
            rows_per_second,
            with_json_rows_per_second: json
                .map(|json| 1.0 / (1.0 / rows_per_second + json.seconds_per_row())),
        })
    }

    /// The number of batches that a lane ran, and their time in seconds.
    fn run_lane(&self, lane: &mut dyn Lane, feed: &Feed) -> Result<(u64, f64), EngineError> {
        let mut run = |least: u64, duration: Duration| {
            let (started, mut batches) = (Instant::now(), 0);
            while batches < least || started.elapsed() < duration {
                black_box(fill_and_run(lane, feed)?);
                batches += 1;
            }
            Ok((batches, started.elapsed().as_secs_f64()))
        };
        // At least twice: the first run of a size may choose algorithms or record a graph.
        run(2, self.warm_up)?;
        run(1, self.duration)
    }

    fn json_cost(
        &self,
        signature: &Signature,
        inputs: &[ModelInput],
        lane: &mut dyn Lane,
    ) -> Result<Option<JsonCost>, EngineBenchError> {
        let rows = if signature.batched { self.rows } else { 1 };
        let Ok(body) = payload::body(BenchProtocol::Predict, inputs, rows, self.seed) else {
            return Ok(None);
        };
        let limits = RequestLimits::default();
        if predict::read(&body, signature, &limits).is_err() {
            return Ok(None);
        }
        let outputs = fill_and_run(lane, &feed(inputs, rows, self.seed)?)?
            .into_iter()
            .map(|view| Tensor::new(view.dtype, view.shape, Bytes::copy_from_slice(view.data)))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| EngineBenchError::Output(error.to_string()))?;
        let answer = InferenceResponse { outputs };
        let mut out = Vec::new();
        if predict::write(&answer, signature, false, &[], "cpu", &mut out).is_err() {
            return Ok(None);
        }
        let read_us = microseconds(|| drop(black_box(predict::read(black_box(&body), signature, &limits))));
        let write_us = microseconds(|| {
            out.clear();
            let _ = black_box(predict::write(black_box(&answer), signature, false, &[], "cpu", &mut out));
        });
        Ok(Some(JsonCost { rows, body_bytes: body.len(), read_us, write_us }))
    }
}

/// Shape and bytes of each input of a batch.
type Feed = Vec<(Vec<usize>, Vec<u8>)>;

fn feed(inputs: &[ModelInput], rows: usize, seed: u64) -> Result<Feed, LoadError> {
    let one = |input: &ModelInput| {
        let bytes = payload::body(BenchProtocol::Raw, std::slice::from_ref(input), rows, seed)?;
        Ok((input.with_rows(rows), bytes))
    };
    inputs.iter().map(one).collect()
}

/// Copies a batch into the lane and runs it.
fn fill_and_run<'l>(lane: &'l mut dyn Lane, feed: &Feed) -> Result<Vec<OutputView<'l>>, EngineError> {
    for (index, (shape, bytes)) in feed.iter().enumerate() {
        lane.input(index, shape, bytes.len())?.copy_from_slice(bytes);
    }
    lane.run(BATCH_TIMEOUT)
}

/// The time of some work: the best of many rounds, since disturbances only make it longer.
fn microseconds(mut work: impl FnMut()) -> f64 {
    const ROUNDS: u32 = 20;
    let started = Instant::now();
    let mut repeats: u32 = 1;
    // Enough repeats for a round of a few milliseconds.
    while started.elapsed() < Duration::from_millis(5) {
        work();
        repeats += 1;
    }
    (0..ROUNDS)
        .map(|_| {
            let started = Instant::now();
            for _ in 0..repeats {
                work();
            }
            started.elapsed().as_secs_f64() * 1e6 / f64::from(repeats)
        })
        .fold(f64::INFINITY, f64::min)
}
