//! Starts workers with models that a test writes.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use cudock_engine::{Engine, EngineError, EngineSettings, IsolatedEngine, Lane, OutputSink};
use cudock_engine_python::PythonSettings;
use cudock_tensor::{DType, TensorSpec};
use cudock_testkit::client::eventually;

/// Far longer than anything takes on a busy machine.
pub(crate) const LONG: Duration = Duration::from_secs(120);

/// Annotations for the models of these tests.
const IMPORTS: &str = "from typing import Annotated, TypedDict
import numpy as np
def floats(*shape):
    return Annotated[np.ndarray, f'float32{list(shape)}']
";

/// A directory of models, and the Python that runs them.
pub(crate) struct Models {
    python: PathBuf,
    directory: tempfile::TempDir,
}

/// A worker with its model loaded.
pub(crate) struct Worker {
    pub(crate) engine: IsolatedEngine,
    pub(crate) lanes: Vec<Box<dyn Lane>>,
    printed: Printed,
}

/// What workers print, as `stream: line`.
#[derive(Clone, Default)]
pub(crate) struct Printed(Arc<Mutex<Vec<String>>>);

impl Printed {
    pub(crate) fn sink(&self) -> OutputSink {
        let lines = Arc::clone(&self.0);
        Arc::new(move |stream, line| lines.lock().unwrap().push(format!("{stream}: {line}")))
    }

    /// Waits for a line that contains a text; returns all lines.
    #[track_caller]
    pub(crate) fn wait_for(&self, text: &str) -> Vec<String> {
        let start = Instant::now();
        loop {
            let lines = self.0.lock().unwrap().clone();
            if lines.iter().any(|line| line.contains(text)) {
                return lines;
            }
            assert!(start.elapsed() < LONG, "{text:?} was not printed: {lines:?}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Models {
    /// `None` where no Python has numpy.
    #[track_caller]
    pub(crate) fn new() -> Option<Self> {
        Some(Self { python: cudock_testkit::require_numpy()?, directory: tempfile::tempdir().unwrap() })
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Settings for a model of that name; what the test wants to be different is changed.
    pub(crate) fn settings(
        &self,
        name: &str,
        change: impl FnOnce(&mut EngineSettings<PythonSettings>),
    ) -> EngineSettings<PythonSettings> {
        let kind = PythonSettings { python: Some(self.python.clone()), ..PythonSettings::default() };
        let mut settings = EngineSettings { threads: 1, ..EngineSettings::new(self.path(name), kind) };
        change(&mut settings);
        settings
    }

    /// Starts a worker for a class, whose source is written to `model.py`.
    pub(crate) fn try_start(
        &self,
        source: &str,
        change: impl FnOnce(&mut EngineSettings<PythonSettings>),
    ) -> Result<Worker, EngineError> {
        std::fs::write(self.path("model.py"), format!("{IMPORTS}{source}")).unwrap();
        start(&self.settings("model.py", change))
    }

    #[track_caller]
    pub(crate) fn start(&self, source: &str) -> Worker {
        self.try_start(source, |_| ()).unwrap_or_else(|error| panic!("{error}"))
    }

    /// The reason why a class cannot be loaded.
    #[track_caller]
    pub(crate) fn load_error(&self, source: &str) -> String {
        reason(self.try_start(source, |_| ()))
    }

    /// The interpreter as messages name it.
    pub(crate) fn python(&self) -> &Path {
        &self.python
    }
}

pub(crate) fn start(settings: &EngineSettings<PythonSettings>) -> Result<Worker, EngineError> {
    let printed = Printed::default();
    let mut engine = start_within(settings, LONG, &printed)?;
    let lanes = engine.take_lanes();
    Ok(Worker { engine, lanes, printed })
}

pub(crate) fn start_within(
    settings: &EngineSettings<PythonSettings>,
    limit: Duration,
    printed: &Printed,
) -> Result<IsolatedEngine, EngineError> {
    start_by(settings, limit, printed, |_| ())
}

/// Starts a worker by an owner that is changed before.
pub(crate) fn start_by(
    settings: &EngineSettings<PythonSettings>,
    limit: Duration,
    printed: &Printed,
    change: impl FnOnce(&mut Command),
) -> Result<IsolatedEngine, EngineError> {
    let mut owner = Command::new(cudock_testkit::process::example("engine_owner"));
    change(&mut owner);
    cudock_engine_python::start(settings, owner, limit, Some(&printed.sink()))
}

#[track_caller]
pub(crate) fn reason(started: Result<Worker, EngineError>) -> String {
    match started.err() {
        Some(EngineError::Load { reason, .. }) => reason,
        other => panic!("{other:?}"),
    }
}

impl Worker {
    pub(crate) fn run(&mut self, inputs: &[Plain]) -> Result<Vec<Plain>, EngineError> {
        run(&mut *self.lanes[0], inputs, LONG)
    }

    /// Runs a batch of `F32[rows, 2]` on a model that returns one output of floats.
    pub(crate) fn run_floats(&mut self, values: &[f32]) -> Result<Vec<f32>, EngineError> {
        Ok(as_floats(&self.run(&[floats(&[values.len() / 2, 2], values)])?[0]))
    }

    /// The message of a batch of ones that fails.
    #[track_caller]
    pub(crate) fn failure(&mut self) -> String {
        match self.run_floats(&[1.0, 1.0]) {
            Err(EngineError::Failed(text)) => text,
            other => panic!("{other:?}"),
        }
    }

    /// The processes that the model has printed as `child ID`, once there are so many.
    #[track_caller]
    pub(crate) fn children(&self, count: usize) -> Vec<u32> {
        let mut ids = Vec::new();
        eventually("the children are printed", || {
            let lines = self.printed.0.lock().unwrap();
            let children = lines.iter().filter_map(|line| line.strip_prefix("stdout: child "));
            ids = children.map(|id| id.parse().unwrap()).collect();
            ids.len() == count
        });
        ids
    }

    #[track_caller]
    pub(crate) fn wait_for_line(&self, text: &str) -> Vec<String> {
        self.printed.wait_for(text)
    }
}

/// A tensor in tests: shape and bytes.
pub(crate) type Plain = (Vec<usize>, Vec<u8>);

pub(crate) fn run(lane: &mut dyn Lane, inputs: &[Plain], limit: Duration) -> Result<Vec<Plain>, EngineError> {
    for (index, (shape, data)) in inputs.iter().enumerate() {
        lane.input(index, shape, data.len())?.copy_from_slice(data);
    }
    let outputs = lane.run(limit)?;
    Ok(outputs.into_iter().map(|output| (output.shape, output.data.to_vec())).collect())
}

pub(crate) fn floats(shape: &[usize], values: &[f32]) -> Plain {
    assert_eq!(shape.iter().product::<usize>(), values.len());
    (shape.to_vec(), values.iter().flat_map(|value| value.to_le_bytes()).collect())
}

pub(crate) fn as_floats(plain: &Plain) -> Vec<f32> {
    plain.1.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
}

pub(crate) fn strings(texts: &[&str]) -> Plain {
    let encode =
        |text: &&str| [&u32::try_from(text.len()).unwrap().to_le_bytes()[..], text.as_bytes()].concat();
    (vec![texts.len()], texts.iter().flat_map(encode).collect())
}

pub(crate) fn spec(name: &str, dtype: DType, shape: &[i64]) -> TensorSpec {
    let shape: Vec<_> = shape.iter().map(|size| usize::try_from(*size).ok()).collect();
    TensorSpec::new(name, dtype, shape)
}
