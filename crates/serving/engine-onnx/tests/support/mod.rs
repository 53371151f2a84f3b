//! Helpers for engine tests.

#![allow(dead_code, reason = "each test file uses its part")]

use std::path::Path;
use std::time::Duration;

use cudock_engine::{Engine, EngineError, EngineSettings, Lane};
use cudock_engine_onnx::{OnnxEngine, OnnxSettings};
use cudock_testkit::require_onnxruntime;

/// Far longer than any run takes on a busy machine.
pub(crate) const LONG: Duration = Duration::from_secs(120);

/// A tensor in tests: shape and bytes.
pub(crate) type Plain = (Vec<usize>, Vec<u8>);

/// Settings for a model that is written to the directory.
pub(crate) fn settings(library: &Path, directory: &Path, model: &[u8]) -> EngineSettings<OnnxSettings> {
    let file = directory.join("model.onnx");
    std::fs::write(&file, model).unwrap();
    EngineSettings { threads: 1, ..EngineSettings::new(file, OnnxSettings::new(library)) }
}

/// An engine with its lanes, and the directory of its model.
pub(crate) struct Loaded {
    pub(crate) engine: OnnxEngine,
    pub(crate) lanes: Vec<Box<dyn Lane>>,
    _directory: tempfile::TempDir,
}

/// Loads a model with changed settings; `None` without ONNX Runtime.
#[track_caller]
pub(crate) fn load(model: &[u8], change: impl FnOnce(&mut EngineSettings<OnnxSettings>)) -> Option<Loaded> {
    let directory = tempfile::tempdir().unwrap();
    let mut settings = settings(&require_onnxruntime()?, directory.path(), model);
    change(&mut settings);
    let mut engine = OnnxEngine::load(&settings).unwrap();
    let lanes = engine.take_lanes();
    Some(Loaded { engine, lanes, _directory: directory })
}

/// Runs one batch and copies the outputs.
pub(crate) fn run(lane: &mut dyn Lane, inputs: &[Plain]) -> Result<Vec<Plain>, EngineError> {
    for (index, (shape, data)) in inputs.iter().enumerate() {
        lane.input(index, shape, data.len())?.copy_from_slice(data);
    }
    let outputs = lane.run(LONG)?;
    Ok(outputs.into_iter().map(|output| (output.shape, output.data.to_vec())).collect())
}

pub(crate) fn floats(shape: &[usize], data: &[f32]) -> Plain {
    assert_eq!(shape.iter().product::<usize>(), data.len());
    (shape.to_vec(), data.iter().flat_map(|value| value.to_le_bytes()).collect())
}

pub(crate) fn integers(shape: &[usize], data: &[i64]) -> Plain {
    assert_eq!(shape.iter().product::<usize>(), data.len());
    (shape.to_vec(), data.iter().flat_map(|value| value.to_le_bytes()).collect())
}

pub(crate) fn strings(shape: &[usize], data: &[&[u8]]) -> Plain {
    assert_eq!(shape.iter().product::<usize>(), data.len());
    let lay_out = |string: &&[u8]| {
        let length = u32::try_from(string.len()).unwrap();
        [&length.to_le_bytes()[..], string].concat()
    };
    (shape.to_vec(), data.iter().flat_map(lay_out).collect())
}

/// Floats between minus one and one that differ from seed to seed.
pub(crate) fn noise(seed: usize, shape: &[usize]) -> Plain {
    let count = shape.iter().product();
    let value = |buffer: usize| {
        let mixed =
            (buffer + 1).wrapping_mul(0x9e37_79b9).wrapping_add(seed.wrapping_mul(0x85eb_ca6b)) % 20_011;
        f32::from(u16::try_from(mixed).unwrap()) / 10_005.5 - 1.0
    };
    floats(shape, &(0..count).map(value).collect::<Vec<_>>())
}

pub(crate) fn as_floats(plain: &Plain) -> Vec<f32> {
    plain.1.chunks_exact(4).map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap())).collect()
}
