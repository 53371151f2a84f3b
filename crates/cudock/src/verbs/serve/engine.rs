//! The engine process: `serve` starts this program again with the hidden verb `engine`.

use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::time::Duration;

use cudock_engine::{Engine, EngineError, EngineSettings, IsolatedEngine, SharedEngine, serve_child};
use cudock_engine_onnx::OnnxEngine;
use cudock_serve::{EngineKind, StartEngine};

use crate::failure::{Failure, Outcome};

/// The hidden verb.
const VERB: &str = "engine";

/// Longest time to load a model.
const LOAD_TIMEOUT: Duration = Duration::from_secs(600);

/// Runs the hidden verb.
pub(crate) fn run() -> Outcome {
    if serve_child(load) == ExitCode::SUCCESS { Outcome::Yes } else { Outcome::No }
}

fn load(settings: EngineSettings<EngineKind>) -> Result<Box<dyn SharedEngine>, EngineError> {
    match settings.kind.clone() {
        EngineKind::Onnx(onnx) => Ok(Box::new(OnnxEngine::load(&settings.with_kind(onnx))?)),
    }
}

/// Starts engines in processes of their own.
pub(super) fn starter() -> Result<StartEngine, Failure> {
    let program = std::env::current_exe()
        .map_err(|error| Failure::outside(format!("cannot locate the cudock executable: {error}")))?;
    Ok(Arc::new(move |settings| {
        let mut command = Command::new(&program);
        command.arg(VERB);
        let engine = IsolatedEngine::start(settings, command, LOAD_TIMEOUT)?;
        Ok::<Box<dyn Engine>, EngineError>(Box::new(engine))
    }))
}
