//! The engine's library: the one that is installed, or fetched on first need.

use std::path::PathBuf;
use std::sync::Arc;

use cudock_facts::Facts;
use cudock_pypi::Package;
use cudock_pypi::runtime::{Installer, SearchContext, cuda_libraries, ensure};

use crate::failure::Failure;
use crate::output::{DIM, YELLOW, styled};
use crate::verbs::progress::Lines;

/// A library, and where those it needs are.
pub(crate) struct EngineLibrary {
    pub(crate) library: PathBuf,
    pub(crate) library_path: Vec<PathBuf>,
}

/// The library for the device asked for.
pub(crate) fn provide(on_gpu: bool, offline: bool) -> Result<EngineLibrary, Failure> {
    let facts = Facts::embedded();
    let package = if on_gpu { Package::OnnxruntimeGpu } else { Package::Onnxruntime };
    let environment = cudock_base::Environment::of_process();
    let cache = Installer::directory_in(&environment);
    let machine = SearchContext::of_process(environment.clone(), std::env::current_dir().ok(), cache);
    // A server that finds its library needs no home and writes nothing.
    let installer = || {
        let mut installer = Installer::from_environment(&environment)?;
        installer.offline = offline;
        installer.progress = Arc::new(Lines::default());
        Ok(installer)
    };
    let provided = ensure(package, &machine, &facts, installer)?;
    if provided.fresh {
        anstream::eprintln!("{} {}", styled(DIM, "installed"), provided.found.library.display());
    }
    let mut library_path = Vec::new();
    if on_gpu {
        let cuda = cuda_libraries(&machine, &provided.found, &facts);
        if let Some(hint) = cuda.hint(&provided.found) {
            anstream::eprintln!("{}: {hint}", styled(YELLOW, "warning"));
        }
        library_path = cuda.directories;
    }
    Ok(EngineLibrary { library: provided.found.library, library_path })
}
