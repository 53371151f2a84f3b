//! Engines that run models.
//!
//! A server must outlive its engine: GPU kernels fault, libraries crash, a graph can loop for ever. So an engine runs
//! in a process of its own by default ([`IsolatedEngine`]), sharing memory with the server: tensors are written once,
//! where the engine reads them, and a dead or hanging engine is killed and started again. The same engine runs in this
//! process for measurements ([`OnnxEngine`]).
//!
//! A lane is memory for one batch: its inputs, its outputs, and a thread that waits for one to be run. Several lanes
//! let one batch be filled while the engine works on another. What it takes to run a batch of certain shapes (views of
//! the lane's memory, places on the device, recorded launches) is made once and kept.
//!
//! `unsafe` is denied but for three modules: `value` (ONNX Runtime), `cuda` (the driver), and in `cudock-map` the shared
//! memory. All others are plain code over those.

mod cancel;
mod channel;
mod child;
mod cuda;
mod engine;
mod gpu;
mod independence;
mod isolated;
mod onnx;
pub mod onnx_file;
mod plan;
mod process;
mod providers;
mod recording;
mod runner;
mod signature;
mod usage;
mod value;
mod warm;
mod wire;

pub use child::serve_child;
pub use engine::{Device, Engine, EngineError, EngineSettings, ExitCheck, Lane, OutputView, Provider, Usage};
pub use independence::{RowCheck, check_rows};
pub use isolated::IsolatedEngine;
pub use onnx::{OnnxEngine, environment};
pub use warm::warm;
