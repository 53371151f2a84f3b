//! A model without a server: what the engine alone gives, and what is left of it once JSON is read and written.

use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use bytes::Bytes;
use cudock_engine::{
    DeviceInfo, Engine, EngineError, EngineSettings, Lane, OnnxEngine, OutputView, Provider,
};
use cudock_load::payload::{self, Input, Protocol};
use cudock_tensor::{InferenceResponse, RequestLimits, Signature, Tensor, predict};
use serde::Serialize;

use super::args::{BenchArgs, EngineDevice};
use super::{bare_print, failure};
use crate::failure::{Failure, Outcome};
use crate::output::{self, Format};
use crate::verbs::serve::runtime;

/// Unless the user says so.
const DURATION: Duration = Duration::from_secs(1);
const WARM_UP: Duration = Duration::from_millis(200);
/// Longest a batch may take.
const LIMIT: Duration = Duration::from_secs(600);

/// All that was measured.
#[derive(Debug, Serialize)]
pub(super) struct Bare {
    schema: u8,
    pub(super) model: String,
    pub(super) device: DeviceInfo,
    pub(super) sessions: usize,
    pub(super) runs: Vec<BatchRun>,
    /// The number of rows of the fastest.
    pub(super) best_batch: usize,
    /// What it takes to read a request of `/predict` and to write its answer; none if the model's tensors do not go
    /// through JSON.
    pub(super) json: Option<JsonWork>,
}

/// Batches of one size, one after the other.
#[derive(Debug, Serialize)]
pub(super) struct BatchRun {
    pub(super) batch: usize,
    pub(super) batches: u64,
    /// One batch, from input bytes to output bytes.
    pub(super) batch_ms: f64,
    pub(super) rows_per_second: f64,
    /// The same if the thread that runs the engine also reads and writes the JSON of each request.
    pub(super) with_json_rows_per_second: Option<f64>,
}

/// JSON of one request, by one thread.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct JsonWork {
    pub(super) rows: usize,
    pub(super) body_bytes: usize,
    pub(super) read_us: f64,
    pub(super) write_us: f64,
}

impl JsonWork {
    #[allow(clippy::cast_precision_loss, reason = "a count of rows")]
    fn seconds_per_row(&self) -> f64 {
        (self.read_us + self.write_us) / 1e6 / self.rows as f64
    }
}

pub(super) fn run(words: &BenchArgs, model: &Path, format: Format) -> Result<Outcome, Failure> {
    if words.engine.batch.contains(&0) || words.rows.contains(&0) {
        return Err(Failure::input("a batch has at least one row"));
    }
    let mut engine = load(words, model)?;
    let signature = engine.signature().clone();
    let device = engine.device().clone();
    for (provider, reason) in &device.skipped_providers {
        anstream::eprintln!("{provider:?} is not used: {reason}");
    }
    let inputs = signature
        .inputs
        .iter()
        .map(|spec| Input::resolve(spec, &words.shape).map_err(|error| failure(&error)))
        .collect::<Result<Vec<_>, _>>()?;
    let mut lanes = engine.take_lanes();
    if lanes.is_empty() {
        return Err(Failure::outside("the engine gives no place to put a batch"));
    }
    let json = match lanes.first_mut() {
        Some(lane) => json_work(words, &signature, &inputs, lane.as_mut())?,
        None => None,
    };
    let mut runs = Vec::new();
    for batch in batches(words, &signature) {
        runs.push(measure(words, &inputs, batch, &mut lanes, json)?);
    }
    let best = runs.iter().max_by(|one, other| one.rows_per_second.total_cmp(&other.rows_per_second));
    let measured = Bare {
        schema: 1,
        model: model.display().to_string(),
        device,
        sessions: words.engine.sessions,
        best_batch: best.map_or(0, |best| best.batch),
        runs,
        json,
    };
    match format {
        Format::Text => bare_print::print(&measured),
        Format::Json | Format::Sarif => output::json(&measured),
    }
    Ok(Outcome::Yes)
}

fn load(words: &BenchArgs, model: &Path) -> Result<OnnxEngine, Failure> {
    if !model.is_file() {
        return Err(
            Failure::input(format!("{} is not there", model.display())).hint("--model names an ONNX file")
        );
    }
    let told = &words.engine;
    let on_gpu = told.device != EngineDevice::Cpu;
    let runtime = runtime::provide(on_gpu, told.offline)?;
    let settings = EngineSettings {
        library_path: runtime.library_path,
        providers: match told.device {
            EngineDevice::Cpu => vec![Provider::Cpu],
            EngineDevice::Cuda => vec![Provider::Cuda],
            EngineDevice::Tensorrt => vec![Provider::TensorRt, Provider::Cuda],
        },
        gpu: told.gpu,
        threads: told
            .engine_threads
            .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from)),
        lanes: told.lanes.unwrap_or(told.sessions).max(told.sessions).max(1),
        sessions: told.sessions.max(1),
        nhwc: told.nhwc,
        graphs: if told.graphs { told.batch.clone() } else { Vec::new() },
        pinned: on_gpu && !told.no_pinned,
        io_binding: !told.no_io_binding,
        ..EngineSettings::new(model, runtime.library)
    };
    OnnxEngine::load(&settings).map_err(|error| engine_failure(&error))
}

fn engine_failure(error: &EngineError) -> Failure {
    Failure::outside(crate::failure::chain(error))
}

/// The sizes to measure: a model that takes no batches runs one request at a time.
fn batches(words: &BenchArgs, signature: &Signature) -> Vec<usize> {
    if signature.batched {
        return words.engine.batch.clone();
    }
    vec![1]
}

/// Shape and bytes of each input of a batch.
type Feed = Vec<(Vec<usize>, Vec<u8>)>;

fn feed(inputs: &[Input], rows: usize, seed: u64) -> Result<Feed, Failure> {
    inputs
        .iter()
        .map(|input| {
            let bytes = payload::body(Protocol::Raw, std::slice::from_ref(input), rows, seed)
                .map_err(|error| failure(&error))?;
            Ok((input.with_rows(rows), bytes))
        })
        .collect()
}

/// Puts a batch into the lane and runs it.
fn fill_and_run<'l>(lane: &'l mut dyn Lane, feed: &Feed) -> Result<Vec<OutputView<'l>>, EngineError> {
    for (index, (shape, bytes)) in feed.iter().enumerate() {
        lane.input(index, shape, bytes.len())?.copy_from_slice(bytes);
    }
    lane.run(LIMIT)
}

/// Runs batches of one size on all lanes at once.
#[allow(clippy::cast_precision_loss, reason = "counts become rates for people")]
fn measure(
    words: &BenchArgs,
    inputs: &[Input],
    batch: usize,
    lanes: &mut [Box<dyn Lane>],
    json: Option<JsonWork>,
) -> Result<BatchRun, Failure> {
    anstream::eprintln!("batches of {batch} …");
    let feed = feed(inputs, batch, words.seed)?;
    let warm_up = words.warm_up.map_or(WARM_UP, |span| span.0);
    let duration = words.duration.map_or(DURATION, |span| span.0);
    let count = lanes.len();
    let outcomes: Vec<Result<(u64, f64), EngineError>> = std::thread::scope(|scope| {
        let workers: Vec<_> = lanes
            .iter_mut()
            .map(|lane| {
                let feed = &feed;
                scope.spawn(move || {
                    let started = Instant::now();
                    // At least twice: the first run of a size may choose algorithms or record it.
                    black_box(fill_and_run(lane.as_mut(), feed)?);
                    black_box(fill_and_run(lane.as_mut(), feed)?);
                    while started.elapsed() < warm_up {
                        black_box(fill_and_run(lane.as_mut(), feed)?);
                    }
                    let started = Instant::now();
                    let mut batches = 0;
                    while batches == 0 || started.elapsed() < duration {
                        black_box(fill_and_run(lane.as_mut(), feed)?);
                        batches += 1;
                    }
                    Ok((batches, started.elapsed().as_secs_f64()))
                })
            })
            .collect();
        workers
            .into_iter()
            .map(|worker| {
                worker
                    .join()
                    .unwrap_or_else(|_| Err(EngineError::Failed("its thread ended early".to_owned())))
            })
            .collect()
    });
    let mut batches = 0;
    let (mut rate, mut time) = (0.0, 0.0);
    for outcome in outcomes {
        let (done, seconds) = outcome.map_err(|error| engine_failure(&error))?;
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
        with_json_rows_per_second: json.map(|json| 1.0 / (1.0 / rows_per_second + json.seconds_per_row())),
    })
}

/// Measures the reading of a request and the writing of its answer, of the size that clients would send.
#[allow(clippy::cast_precision_loss, reason = "a count of bytes")]
fn json_work(
    words: &BenchArgs,
    signature: &Signature,
    inputs: &[Input],
    lane: &mut dyn Lane,
) -> Result<Option<JsonWork>, Failure> {
    let rows = if signature.batched { words.rows.first().copied().unwrap_or(1) } else { 1 };
    let Ok(body) = payload::body(Protocol::Predict, inputs, rows, words.seed) else { return Ok(None) };
    let limits = RequestLimits::default();
    if predict::read(&body, signature, &limits).is_err() {
        return Ok(None);
    }
    let views =
        fill_and_run(lane, &feed(inputs, rows, words.seed)?).map_err(|error| engine_failure(&error))?;
    let outputs = views
        .into_iter()
        .map(|view| Tensor::new(view.dtype, view.shape, Bytes::copy_from_slice(view.data)))
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| Failure::outside(error.to_string()))?;
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
    Ok(Some(JsonWork { rows, body_bytes: body.len(), read_us, write_us }))
}

/// What a piece of work takes: the best of many rounds, since only disturbances make it longer.
fn microseconds(mut work: impl FnMut()) -> f64 {
    const ROUNDS: u32 = 20;
    let started = Instant::now();
    let mut repeats: u32 = 1;
    // As often as gives a round of some milliseconds.
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
