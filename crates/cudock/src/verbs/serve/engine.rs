//! The engine's process: `serve` starts this program again with the hidden verb `engine`.

use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::time::Duration;

use cudock_engine::{Engine, EngineError, IsolatedEngine, serve_child};
use cudock_serve::StartEngine;

use crate::failure::{Failure, Outcome};

/// The hidden verb.
pub(crate) const VERB: &str = "engine";

/// How long a model may take to load.
const LOADING: Duration = Duration::from_secs(600);

/// What the hidden verb does.
pub(crate) fn run() -> Outcome {
    if serve_child() == ExitCode::SUCCESS { Outcome::Yes } else { Outcome::No }
}

/// Starts engines in processes of their own.
pub(super) fn starter() -> Result<StartEngine, Failure> {
    let program = std::env::current_exe()
        .map_err(|error| Failure::outside(format!("cannot find this program's own file: {error}")))?;
    Ok(Arc::new(move |settings| {
        let mut command = Command::new(&program);
        command.arg(VERB);
        let engine = IsolatedEngine::start(settings, command, LOADING)?;
        Ok::<Box<dyn Engine>, EngineError>(Box::new(engine))
    }))
}
