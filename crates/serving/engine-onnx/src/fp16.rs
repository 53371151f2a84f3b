//! Loads a model converted to fp16, and compares it with the original.
//!
//! The original runs first, on its own, and is gone before the converted one is opened: both never need memory at the same
//! time. A converted model that cannot be loaded, or that returns infinities where the original does not, is not used.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::time::Duration;

use cudock_engine::{Difference, Engine, EngineError, PrecisionReport, Provider, Sample, run_sample};
use cudock_model::onnx::fp16::{Fp16Model, Fp16Stats, Weights, to_fp16};

use crate::cuda::CudaGpu;
use crate::engine::environment;
use crate::model_data::{MODEL_FILE, ModelData};
use crate::{OnnxEngine, OnnxEngineSettings};

/// The file of a converted model's weights, if they do not fit into the model itself.
const WEIGHTS_FILE: &str = "weights";
/// Maximum number of bytes of a model with its weights in memory; protobuf allows 2 GiB.
const MAX_INLINE: u64 = i32::MAX.unsigned_abs() as u64 - (1 << 20);
/// Rows of the batch that is compared.
const SAMPLE_ROWS: usize = 4;
/// Longest time of that batch. An engine in this process cannot be stopped anyway.
const SAMPLE_LIMIT: Duration = Duration::from_secs(600);

pub(crate) fn load(settings: &OnnxEngineSettings) -> Result<OnnxEngine, EngineError> {
    environment(settings)?;
    let original = ModelData::of_file(&settings.model);
    let with_original = |report: PrecisionReport| {
        let mut engine = OnnxEngine::open(settings, &original)?;
        engine.device.precision = Some(report);
        Ok(engine)
    };
    let Converted { data, stats } = match convert(settings, MAX_INLINE) {
        Ok(converted) => converted,
        Err(reason) => return with_original(unused(report(&Fp16Stats::default()), reason)),
    };
    let report = report(&stats);
    let sample = run_original(settings, &original);
    let mut engine = match OnnxEngine::open(settings, &data) {
        Ok(engine) => engine,
        Err(error) => {
            return with_original(unused(report, format!("the converted model is rejected: {error}")));
        }
    };
    let difference = match sample.and_then(|sample| compare(&engine, &sample)) {
        Ok(difference) => difference,
        Err(reason) => {
            let reason = Some(format!("not compared with fp32: {reason}"));
            engine.device.precision = Some(PrecisionReport { reason, ..report });
            return Ok(engine);
        }
    };
    if let Some(output) = &difference.not_finite {
        drop(engine);
        let reason = format!("output `{output}` has infinities or NaN in fp16, and none in fp32");
        return with_original(unused(PrecisionReport { difference: Some(difference), ..report }, reason));
    }
    engine.device.precision = Some(PrecisionReport { difference: Some(difference), ..report });
    Ok(engine)
}

struct Converted {
    data: ModelData,
    stats: Fp16Stats,
}

/// Converts the model: in memory, or into files if the original has more than `max_inline` bytes.
fn convert(settings: &OnnxEngineSettings, max_inline: u64) -> Result<Converted, String> {
    let model = cudock_mmap::map(&settings.model).map_err(|error| format!("{error}: {}", error.source))?;
    let directory = settings.model.parent();
    if fp32_bytes(settings) <= max_inline {
        let Fp16Model { bytes, stats } = to_fp16(&model, directory, Weights::Inline)?;
        return Ok(Converted { data: ModelData::Memory(bytes), stats });
    }
    let io_error = |error: std::io::Error| format!("cannot write the converted model: {error}");
    let target = tempfile::Builder::new().prefix("cudock-fp16-").tempdir().map_err(io_error)?;
    let mut file = BufWriter::new(File::create(target.path().join(WEIGHTS_FILE)).map_err(io_error)?);
    let weights = Weights::File { location: WEIGHTS_FILE, file: &mut file };
    let Fp16Model { bytes, stats } = to_fp16(&model, directory, weights)?;
    file.flush().map_err(io_error)?;
    std::fs::write(target.path().join(MODEL_FILE), bytes).map_err(io_error)?;
    Ok(Converted { data: ModelData::Directory(target), stats })
}

/// The bytes of the original with its external weights.
fn fp32_bytes(settings: &OnnxEngineSettings) -> u64 {
    let graph = cudock_model::onnx::open(&settings.model).unwrap_or_default();
    let inside = settings.model.metadata().map_or(0, |about| about.len());
    graph.external.values().fold(inside, |sum, end| sum.saturating_add(*end))
}

/// Runs random rows through the original.
fn run_original(settings: &OnnxEngineSettings, original: &ModelData) -> Result<Sample, String> {
    let mut settings = settings.clone();
    // TensorRT would take minutes to build an engine that runs once.
    settings.providers.retain(|provider| *provider != Provider::TensorRt);
    if settings.providers.contains(&Provider::Cuda)
        && let Ok(gpu) = CudaGpu::open(settings.gpu)
    {
        let needed = fp32_bytes(&settings).saturating_mul(2);
        let free = gpu.free_memory()? as u64;
        if free < needed {
            return Err(format!("{free} bytes of device memory are free, and fp32 needs about {needed}"));
        }
    }
    settings.lanes = 1;
    let graphs = std::mem::take(&mut settings.kind.graphs);
    // A batch of another size is not captured as a CUDA graph.
    let rows =
        (SAMPLE_ROWS..=SAMPLE_ROWS + graphs.len()).find(|rows| !graphs.contains(rows)).unwrap_or(SAMPLE_ROWS);
    let engine = OnnxEngine::open(&settings, original).map_err(|error| error.to_string())?;
    let sample = engine
        .spare_lane()
        .and_then(|mut lane| run_sample(&mut lane, engine.signature(), rows, SAMPLE_LIMIT));
    sample.map_err(|error| error.to_string())
}

fn compare(engine: &OnnxEngine, sample: &Sample) -> Result<Difference, String> {
    let difference =
        engine.spare_lane().and_then(|mut lane| sample.compare(&mut lane, engine.signature(), SAMPLE_LIMIT));
    difference.map_err(|error| error.to_string())
}

fn report(stats: &Fp16Stats) -> PrecisionReport {
    PrecisionReport {
        requested: "fp16".to_owned(),
        used: "fp16".to_owned(),
        reason: None,
        fp32_operators: stats.full_nodes.iter().map(|(name, count)| format!("{name} {count}")).collect(),
        clamped_weights: stats.clamped,
        raised_weights: stats.raised,
        difference: None,
    }
}

/// The report of a model that stays in fp32.
fn unused(report: PrecisionReport, reason: String) -> PrecisionReport {
    PrecisionReport { used: "fp32".to_owned(), reason: Some(reason), ..report }
}

#[cfg(test)]
mod tests {
    use cudock_engine::EngineSettings;
    use cudock_testkit::{onnx, require_onnxruntime};

    use super::*;
    use crate::OnnxSettings;

    #[test]
    fn a_model_with_weights_in_a_file_runs_after_the_file_is_gone() {
        let Some(library) = require_onnxruntime() else { return };
        let directory = tempfile::tempdir().unwrap();
        let model = directory.path().join("mlp.onnx");
        std::fs::write(&model, onnx::mlp()).unwrap();
        let settings = EngineSettings::new(model, OnnxSettings::new(library));
        let Converted { data, stats } = convert(&settings, 0).unwrap();
        let ModelData::Directory(files) = &data else { panic!("in memory") };
        let weights = files.path().join(WEIGHTS_FILE);
        // All weights but the last bias, of ten numbers.
        let parameters = 512 * 1024 + 1024 + 1024 * 1024 + 1024 + 1024 * 10;
        assert_eq!((weights.metadata().unwrap().len(), stats.half_nodes), (2 * parameters, 5));
        let mut engine = OnnxEngine::open(&settings, &data).unwrap();
        drop(data);
        assert!(!weights.exists());
        let mut lane = engine.take_lanes().pop().unwrap();
        lane.input(0, &[1, 512], 2048).unwrap().fill(0);
        assert_eq!(lane.run(SAMPLE_LIMIT).unwrap()[0].shape, [1, 10]);
    }
}
