//! Starts the worker process.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;

use cudock_base::Environment;
use cudock_engine::{EngineError, EngineSettings, IsolatedEngine, OutputSink};

use crate::{PythonSettings, interpreter};

/// Reads the settings and runs the worker in them. It is an argument of the interpreter, so that nothing is written to
/// disk.
const BOOTSTRAP: &str = include_str!("../worker/bootstrap.py");
const WORKER: &str = include_str!("../worker/worker.py");
/// Modules that the worker imports.
const MODULES: [(&str, &str); 6] = [
    ("cudock_arrays", include_str!("../worker/arrays.py")),
    ("cudock_lane", include_str!("../worker/lane.py")),
    ("cudock_loader", include_str!("../worker/loader.py")),
    ("cudock_pretrained", include_str!("../worker/pretrained.py")),
    ("cudock_signature", include_str!("../worker/signature.py")),
    ("cudock_tensors", include_str!("../worker/tensors.py")),
];

/// The settings sent to the worker.
#[derive(Clone, Debug, serde::Serialize)]
struct WorkerSettings {
    #[serde(flatten)]
    settings: PythonSettings,
    worker: &'static str,
    modules: BTreeMap<&'static str, &'static str>,
}

/// Starts a worker by `owner`, as [`IsolatedEngine::start`] does, and makes it load the model within the limit. What it
/// prints goes to `output`.
pub fn start(
    settings: &EngineSettings<PythonSettings>,
    owner: Command,
    limit: Duration,
    output: Option<&OutputSink>,
) -> Result<IsolatedEngine, EngineError> {
    let environment = Environment::of_process();
    let current = std::env::current_dir().ok();
    let find = || interpreter::find(&settings.model, current.as_deref(), &environment);
    let python = settings.kind.python.clone().or_else(find).ok_or_else(|| EngineError::Load {
        model: settings.model.clone(),
        reason: "no Python found; activate an environment, or pass --python".to_owned(),
    })?;
    let mut command = Command::new(python);
    command.args(["-c", BOOTSTRAP, "cudock-engine"]).arg(&settings.model);
    let is_gpu = settings.providers.iter().any(|provider| provider.is_gpu());
    let inherited = environment.get(VISIBLE_GPUS).and_then(|gpus| gpus.to_str());
    command.env(VISIBLE_GPUS, visible_gpu(inherited, is_gpu.then_some(settings.gpu)));
    if settings.threads > 0 && environment.get(THREADS).is_none() {
        command.env(THREADS, settings.threads.to_string());
    }
    let worker = WorkerSettings {
        settings: settings.kind.clone(),
        worker: WORKER,
        modules: MODULES.into_iter().collect(),
    };
    IsolatedEngine::start(&settings.clone().with_kind(worker), owner, &command, limit, output)
}

const VISIBLE_GPUS: &str = "CUDA_VISIBLE_DEVICES";
/// The number of threads of numpy's and scikit-learn's libraries.
const THREADS: &str = "OMP_NUM_THREADS";

/// The GPU that the worker sees, so that all of its code uses this one: one of those that this process sees, or none.
fn visible_gpu(inherited: Option<&str>, gpu: Option<u32>) -> String {
    let Some(gpu) = gpu else { return String::new() };
    let index = usize::try_from(gpu).unwrap_or(usize::MAX);
    match inherited {
        Some(gpus) => gpus.split(',').nth(index).unwrap_or_default().trim().to_owned(),
        None => gpu.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::visible_gpu;

    #[test]
    fn a_worker_sees_only_its_own_gpu() {
        let cases = [
            (None, None, ""),
            (None, Some(2), "2"),
            (Some("GPU-a, GPU-b"), Some(1), "GPU-b"),
            (Some("3"), Some(1), ""),
            (Some("3"), None, ""),
        ];
        for (inherited, gpu, expected) in cases {
            assert_eq!(visible_gpu(inherited, gpu), expected, "{inherited:?} {gpu:?}");
        }
    }
}
