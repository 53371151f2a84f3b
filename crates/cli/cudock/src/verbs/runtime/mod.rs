//! `cudock runtime`: finds or installs the inference library.

mod install;
mod list;

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use cudock_facts::Facts;
use cudock_pypi::runtime::{CudaLibraries, SearchContext};
use cudock_pypi::{Package, RuntimeLibrary};

pub(super) use self::install::InstallReport;
pub(super) use self::list::ListReport;
use crate::failure::{Failure, Outcome};
use crate::output::{BLUE, Format, YELLOW, line, styled, wrapped};

/// Find or install ONNX Runtime, the engine of `serve`
///
/// Wheels come from the indexes that pip is configured for, and are pinned by hash.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cudock runtime list
  cudock runtime install onnxruntime
  cudock runtime install onnxruntime-gpu
  PIP_FIND_LINKS=./wheels cudock runtime install onnxruntime --offline
  CUDOCK_ONNXRUNTIME=/opt/onnxruntime/lib/libonnxruntime.so cudock runtime list")]
pub(crate) struct RuntimeArgs {
    #[command(subcommand)]
    pub(crate) verb: RuntimeVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RuntimeVerb {
    /// Download a library into the cache
    Install(InstallArgs),
    /// List libraries on this machine, and those that can be installed
    List,
}

#[derive(Debug, Args)]
pub(crate) struct InstallArgs {
    /// Install this build
    #[arg(value_enum)]
    pub(crate) package: Build,

    /// Use local directories of wheels only, not the network
    #[arg(long)]
    pub(crate) offline: bool,
}

/// The builds, by their names on package indexes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Build {
    /// For the CPU
    Onnxruntime,
    /// For NVIDIA GPUs and the CPU
    OnnxruntimeGpu,
}

impl From<Build> for Package {
    fn from(build: Build) -> Self {
        match build {
            Build::Onnxruntime => Self::Onnxruntime,
            Build::OnnxruntimeGpu => Self::OnnxruntimeGpu,
        }
    }
}

pub(super) fn run(facts: &Facts, args: &RuntimeArgs, format: Format) -> Result<Outcome, Failure> {
    match &args.verb {
        RuntimeVerb::Install(args) => install::run(facts, args, format),
        RuntimeVerb::List => list::run(facts, format),
    }
}

/// This machine, with the project in the working directory.
fn machine(cache: Option<PathBuf>) -> SearchContext {
    SearchContext::of_process(cudock_base::Environment::of_process(), std::env::current_dir().ok(), cache)
}

/// Prints which libraries a GPU build lacks.
fn print_cuda(found: &RuntimeLibrary, cuda: &CudaLibraries) {
    let missing: Vec<&str> = cuda.missing.iter().map(|library| library.soname.as_str()).collect();
    if !missing.is_empty() {
        let first = format!("{}: ", styled(YELLOW, "warning"));
        let text = format!("{first}not found: {}; sessions will run on the CPU", missing.join(", "));
        line(wrapped("", &text));
    }
    if !cuda.driver {
        line(format!("{}: not found: libcuda.so.1, which comes with the driver", styled(YELLOW, "warning")));
    }
    if let Some(hint) = cuda.hint(found) {
        line(format!("{}: {hint}", styled(BLUE, "hint")));
    }
}
