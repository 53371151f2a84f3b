//! Engines that run models.
//!
//! A server must outlive its engine: GPU kernels fault, libraries crash, a graph can loop for ever. So an engine runs
//! in a process of its own by default ([`isolated`]), sharing memory with the server: tensors are written once, where
//! the engine reads them, and a dead or hanging engine is killed and started again. The same engine runs in this
//! process for measurements.

mod engine;

pub use engine::{Device, Engine, EngineError, EngineSettings, Lane, OutputView, Provider, Usage};
