//! Engines that run models.
//!
//! A server must outlive its engine: GPU kernels fault, libraries crash, a graph can loop forever. So an engine runs in
//! a process of its own by default ([`IsolatedEngine`]) and shares memory with the server: tensors are written once,
//! where the engine reads them, and a dead or hanging engine is killed and restarted. The same engine can run in this
//! process for measurements ([`OnnxEngine`]).
//!
//! A lane is the memory of one batch (inputs and outputs), and a thread that waits for a batch to run. With several
//! lanes, one batch is filled while the engine runs another. What it takes to run a batch of certain shapes (views of
//! the lane's memory, device buffers, captured CUDA graphs) is created once and kept.
//!
//! `unsafe` is denied except in three modules: `ort_tensor` (ONNX Runtime), `cuda` (the driver), and in `cudock-map`
//! the shared memory. All others are plain code over those.

mod cancel;
mod channel;
mod child;
mod cuda;
mod engine;
mod gpu;
mod graph_capture;
mod independence;
mod isolated;
mod onnx;
pub mod onnx_file;
mod ort_tensor;
mod process;
mod providers;
mod run_plan;
mod runner;
mod signature;
mod usage;
mod warm_up;
mod wire;

pub use child::serve_child;
pub use engine::{
    DeviceInfo, Engine, EngineError, EngineSettings, ExitCheck, Lane, OutputView, ProcessUsage, Provider,
};
pub use independence::{RowCheck, check_rows};
pub use isolated::IsolatedEngine;
pub use onnx::{OnnxEngine, environment};
pub use warm_up::warm_up;
