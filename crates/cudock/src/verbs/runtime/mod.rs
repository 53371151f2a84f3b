//! `cudock runtime`: the inference library, found or installed.

mod install;
mod list;

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use cudock_facts::Facts;
use cudock_pypi::runtime::{CudaLibraries, Machine};
use cudock_pypi::{Found, Package};

use crate::failure::{Failure, Outcome};
use crate::output::{BLUE, Format, YELLOW, line, styled, wrapped};

/// Find or install ONNX Runtime, which `serve` runs models with
///
/// Wheels come from the indexes that pip is set up for, and are pinned by hash.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cudock runtime list
  cudock runtime install onnxruntime
  cudock runtime install onnxruntime-gpu
  PIP_FIND_LINKS=./wheels cudock runtime install onnxruntime --offline
  CUDOCK_ONNXRUNTIME=/opt/onnxruntime/lib/libonnxruntime.so cudock runtime list")]
pub(crate) struct RuntimeArgs {
    #[command(subcommand)]
    pub(crate) what: RuntimeVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RuntimeVerb {
    /// Fetch a library into the cache, once
    Install(InstallArgs),
    /// Tell which libraries are on this machine, and which can be installed
    List,
}

#[derive(Debug, Args)]
pub(crate) struct InstallArgs {
    /// Which build
    #[arg(value_enum)]
    pub(crate) package: Build,

    /// Use folders of wheels on this machine, and no network
    #[arg(long)]
    pub(crate) offline: bool,
}

/// The builds, in the words of package indexes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Build {
    /// For the CPU
    Onnxruntime,
    /// For NVIDIA's GPUs and the CPU
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

pub(super) fn run(facts: &Facts, words: &RuntimeArgs, format: Format) -> Result<Outcome, Failure> {
    match &words.what {
        RuntimeVerb::Install(words) => install::run(facts, words, format),
        RuntimeVerb::List => list::run(facts, format),
    }
}

/// This machine, with the project in the working directory.
fn machine(cache: Option<PathBuf>) -> Machine {
    Machine::this(cudock_base::Environment::of_process(), std::env::current_dir().ok(), cache)
}

/// What a GPU build needs beside it.
fn print_cuda(found: &Found, cuda: &CudaLibraries) {
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
