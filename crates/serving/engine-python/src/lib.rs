//! Python models as an engine.
//!
//! The engine process is the interpreter of the user's environment. It runs the modules in `worker/`, which are part of
//! this program and speak the protocol of `cudock-engine` without a second process in between: tensors are in memory that
//! the server and Python share.

mod engine;
mod interpreter;
mod settings;

pub use engine::start;
pub use settings::PythonSettings;
