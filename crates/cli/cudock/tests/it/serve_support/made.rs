//! Models made for a test, random numbers, and the engine without a server.

use std::path::Path;
use std::time::Duration;

use cudock_base::Rng;
use cudock_engine::{Engine, EngineSettings, Lane};
use cudock_engine_onnx::{OnnxEngine, OnnxSettings};
use cudock_tensor::DType;
use cudock_testkit::onnx::OnnxModel;

/// Multiplies its input by a factor: `x` and `y` F32 [rows, 4].
pub fn times(factor: f32) -> Vec<u8> {
    OnnxModel::new("times")
        .input("x", DType::F32, &[None, Some(4)])
        .floats("factor", &[1], &[factor])
        .node("Mul", &["x", "factor"], &["y"], &[])
        .output("y", DType::F32, &[None, Some(4)])
        .bytes()
}

/// A model whose batches take longer the more rows they have, with small requests: `x` F32
/// [rows, 4], `y` F32 [rows, 4].
pub fn heavy() -> Vec<u8> {
    let width = 1536;
    let weights = |count: usize, seed: u64| {
        let mut random = Random::new(seed);
        (0..count).map(|_| random.unit() * 0.05).collect::<Vec<f32>>()
    };
    OnnxModel::new("heavy")
        .input("x", DType::F32, &[None, Some(4)])
        .floats("w1", &[4, width], &weights(4 * width, 1))
        .floats("w2", &[width, width], &weights(width * width, 2))
        .floats("w3", &[width, 4], &weights(4 * width, 3))
        .node("MatMul", &["x", "w1"], &["h1"], &[])
        .node("Relu", &["h1"], &["a1"], &[])
        .node("MatMul", &["a1", "w2"], &["h2"], &[])
        .node("Relu", &["h2"], &["a2"], &[])
        .node("MatMul", &["a2", "w3"], &["y"], &[])
        .output("y", DType::F32, &[None, Some(4)])
        .bytes()
}

/// Numbers that are the same in every run.
#[derive(Clone)]
pub struct Random(Rng);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(Rng::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d))
    }

    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.bits() % u64::try_from(end).unwrap()).unwrap()
    }

    /// A number between -1 and 1 with sixteen bits.
    pub fn unit(&mut self) -> f32 {
        f32::from(i16::from_le_bytes([self.bits().to_le_bytes()[0], self.bits().to_le_bytes()[1]])) / 32768.0
    }
}

/// The result of `times(2.0)` for a small whole number, as JSON has it.
pub fn twice(number: usize) -> f64 {
    f64::from(u32::try_from(number).unwrap()) * 2.0
}

pub fn f32_bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

pub fn f32_values(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks::<4>().0.iter().map(|four| f32::from_le_bytes(*four)).collect()
}

/// Whether two results agree but for the order in which an engine adds up.
pub fn close(found: &[f32], right: &[f32]) -> bool {
    found.len() == right.len()
        && found.iter().zip(right).all(|(found, right)| (found - right).abs() <= 1e-4 * right.abs().max(1.0))
}

/// The engine in this process, as a server without a network.
pub struct Bare {
    _engine: OnnxEngine,
    lane: Box<dyn Lane>,
}

impl Bare {
    pub fn load(model: &Path, library: &Path) -> Self {
        let settings =
            EngineSettings { threads: 1, ..EngineSettings::new(model, OnnxSettings::new(library)) };
        let mut engine = OnnxEngine::load(&settings).unwrap();
        let lane = engine.take_lanes().pop().unwrap();
        Self { _engine: engine, lane }
    }

    /// Runs one batch of one input; the bytes of each output.
    pub fn run(&mut self, shape: &[usize], input: &[u8]) -> Vec<Vec<u8>> {
        self.lane.input(0, shape, input.len()).unwrap().copy_from_slice(input);
        let outputs = self.lane.run(Duration::from_secs(120)).unwrap();
        outputs.iter().map(|output| output.data.to_vec()).collect()
    }
}
