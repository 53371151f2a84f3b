//! The engine process: `serve` starts this program again with the hidden verb `engine`.

use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::time::Duration;

use cudock_engine::{EngineError, EngineSettings, IsolatedEngine, SharedEngine, serve_child};
use cudock_engine_onnx::{OnnxEngine, OnnxSettings};
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

#[allow(clippy::needless_pass_by_value, reason = "the type of a loader")]
fn load(settings: EngineSettings<OnnxSettings>) -> Result<Box<dyn SharedEngine>, EngineError> {
    Ok(Box::new(OnnxEngine::load(&settings)?))
}

/// Starts engines in processes of their own.
pub(super) fn starter() -> Result<StartEngine, Failure> {
    let program = std::env::current_exe()
        .map_err(|error| Failure::outside(format!("cannot locate the cudock executable: {error}")))?;
    Ok(Arc::new(move |settings, output| {
        let engine = match settings.kind.clone() {
            EngineKind::Onnx(onnx) => {
                let mut command = Command::new(&program);
                command.arg(VERB);
                IsolatedEngine::start(&settings.clone().with_kind(onnx), command, LOAD_TIMEOUT, Some(output))?
            }
            EngineKind::Python(python) => {
                cudock_engine_python::start(&settings.clone().with_kind(python), LOAD_TIMEOUT, Some(output))?
            }
        };
        Ok(Box::new(engine))
    }))
}
