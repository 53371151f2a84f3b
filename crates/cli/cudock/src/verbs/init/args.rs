//! The arguments of `cudock init`.

use std::path::PathBuf;

use clap::Args;
use cudock_facts::version::{CudaVersion, DriverVersion};
use cudock_init::{InitOptions, Installer, ProjectKind};

/// Start a project: write its Dockerfile, cudock.toml and .dockerignore, or copy an example
///
/// Looks at a directory and writes files whose versions run on the target: a CUDA program built by CMake or make, a
/// program with PyTorch, TensorFlow, JAX or other CUDA packages, or an ONNX model. See docs/init.md.
#[derive(Debug, Args)]
#[allow(clippy::doc_markdown, reason = "shown as help")]
#[command(after_help = "Examples:
  cudock init --for T4
  cudock init my-app --for Standard_NC40ads_H100_v5 --print
  cudock init --for H100 --driver R550 --python 3.12 --command \"python train.py\"
  cudock init --for cpu --kind torch --installer pip --force
  cudock init --example digits && cudock up digits")]
pub(crate) struct InitArgs {
    /// Directory of the project [default: this one; with --example, one with the name of the example]
    pub(super) dir: Option<PathBuf>,

    /// Choose versions for this GPU, Azure size, or `cpu` [default: the GPU of this machine]
    #[arg(long = "for", value_name = "TARGET", conflicts_with = "example")]
    pub(super) target: Option<String>,

    /// Assume this driver: 535.161.08, or the last release of a branch: 580, R580
    #[arg(long, value_name = "VERSION", requires = "target")]
    pub(super) driver: Option<DriverVersion>,

    /// Set the kind of project, if there are several
    #[arg(long, value_enum, conflicts_with = "example")]
    pub(super) kind: Option<ProjectKind>,

    /// Set what installs Python packages, if there are several
    #[arg(long, value_enum, conflicts_with = "example")]
    pub(super) installer: Option<Installer>,

    /// Use this Python version
    #[arg(long, value_name = "VERSION", conflicts_with = "example")]
    python: Option<String>,

    /// Use this CUDA version
    #[arg(long, value_name = "VERSION", conflicts_with = "example")]
    cuda: Option<CudaVersion>,

    /// Start this command in the container [default: the program that is found]
    #[arg(long, value_name = "COMMAND", conflicts_with = "example")]
    command: Option<String>,

    /// Replace existing files
    #[arg(long, conflicts_with = "example")]
    pub(super) force: bool,

    /// Print the files and write nothing
    #[arg(long, conflicts_with_all = ["example", "force"])]
    pub(super) print: bool,

    /// Copy this example instead: digits, a model that recognizes handwritten digits
    #[arg(long, value_name = "NAME")]
    pub(super) example: Option<String>,
}

impl InitArgs {
    pub(super) fn options(&self) -> InitOptions {
        InitOptions { python: self.python.clone(), cuda: self.cuda, command: self.command.clone() }
    }
}
