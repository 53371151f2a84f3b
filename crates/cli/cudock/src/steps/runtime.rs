//! Provides the engine's library: an installed one, or a download on first use.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cudock_engine::EngineSettings;
use cudock_engine_onnx::OnnxSettings;
use cudock_facts::Facts;
use cudock_pypi::Package;
use cudock_pypi::runtime::{Installer, SearchContext, cuda_libraries, ensure};

use crate::failure::Failure;
use crate::output::{DIM, status, styled, warning};
use crate::steps::progress::Lines;

/// Settings to run a model with the library for a GPU or the CPU.
pub(crate) fn provide(
    model: &Path,
    on_gpu: bool,
    offline: bool,
) -> Result<EngineSettings<OnnxSettings>, Failure> {
    let facts = Facts::embedded();
    let package = if on_gpu { Package::OnnxruntimeGpu } else { Package::Onnxruntime };
    let environment = cudock_base::Environment::of_process();
    let cache = Installer::directory_in(&environment);
    let machine = machine(cache);
    // A server that finds its library needs no home and writes nothing.
    let installer = || {
        let mut installer = Installer::from_environment(&environment)?;
        installer.offline = offline;
        installer.progress = Arc::new(Lines::default());
        Ok(installer)
    };
    let provided = ensure(package, &machine, &facts, installer)?;
    if provided.fresh {
        status(format!("{} {}", styled(DIM, "installed"), provided.found.library.display()));
    }
    let mut settings = EngineSettings::new(model, OnnxSettings::new(&provided.found.library));
    if on_gpu {
        let cuda = cuda_libraries(&machine, &provided.found, &facts);
        if let Some(hint) = cuda.hint(&provided.found) {
            warning(hint);
        }
        settings.library_path = cuda.directories;
    }
    Ok(settings)
}

/// This machine, with the project in the working directory.
pub(crate) fn machine(cache: Option<PathBuf>) -> SearchContext {
    SearchContext::of_process(cudock_base::Environment::of_process(), std::env::current_dir().ok(), cache)
}
