//! ONNX Runtime as an engine.
//!
//! Everything needed to run a batch of certain shapes (views of the lane's memory, device buffers,
//! captured CUDA graphs) is created once and kept. The library is loaded at run time, so that the
//! program is built and runs without it.
//!
//! `unsafe` is denied except in two modules: `ort_tensor` (ONNX Runtime) and `cuda` (the driver).

mod cancel;
mod cuda;
mod engine;
mod fp16;
mod gpu;
mod graph_capture;
mod load;
mod memory_limit;
mod model_data;
mod ort_tensor;
mod providers;
mod run_plan;
mod runner;
mod settings;
mod signature;

pub use engine::{OnnxEngine, environment};
pub use settings::OnnxSettings;

/// All settings of this engine.
type OnnxEngineSettings = cudock_engine::EngineSettings<OnnxSettings>;
