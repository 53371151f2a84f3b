//! The engine process and its owner: `serve` starts this program again with the hidden verbs `engine` and `engine-owner`.

use std::ffi::OsString;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::time::Duration;

use cudock_engine::{EngineError, EngineSettings, IsolatedEngine, SharedEngine, own_engine, serve_child};
use cudock_engine_onnx::{OnnxEngine, OnnxSettings};
use cudock_serve::{EngineKind, StartEngine};

use crate::failure::{Failure, Outcome};

/// The hidden verbs.
const ENGINE: &str = "engine";
const OWNER: &str = "engine-owner";

/// Longest time to load a model.
const LOAD_TIMEOUT: Duration = Duration::from_secs(600);

/// Runs the hidden verb `engine-owner`.
pub(crate) fn run_owner(command: Vec<OsString>) -> Outcome {
    Outcome::Program(own_engine(command).into())
}

/// Runs the hidden verb `engine`.
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
    let command = move |verb: &str| {
        let mut command = Command::new(&program);
        command.arg(verb);
        command
    };
    Ok(Arc::new(move |settings, output| {
        let owner = command(OWNER);
        let engine = match settings.kind.clone() {
            EngineKind::Onnx(onnx) => {
                let settings = settings.clone().with_kind(onnx);
                IsolatedEngine::start(&settings, owner, &command(ENGINE), LOAD_TIMEOUT, Some(output))?
            }
            EngineKind::Python(python) => {
                let settings = settings.clone().with_kind(python);
                cudock_engine_python::start(&settings, owner, LOAD_TIMEOUT, Some(output))?
            }
        };
        Ok(Box::new(engine))
    }))
}
