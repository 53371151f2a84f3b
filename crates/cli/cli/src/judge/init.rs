//! `cudock init`.

use std::path::PathBuf;

use clap::Args;
use cudock_facts::version::{CudaVersion, DriverVersion};
use cudock_init::{Installer, ProjectKind};

use cudock_project::choice;

/// The values of `--kind`: name, help and kind.
const KINDS: &[(&str, &str, ProjectKind)] = &[
    ("cmake", "CUDA program, built by CMake", ProjectKind::Cmake),
    ("make", "CUDA program, built by make", ProjectKind::Make),
    ("torch", "PyTorch", ProjectKind::Torch),
    ("tensorflow", "TensorFlow", ProjectKind::Tensorflow),
    ("jax", "JAX", ProjectKind::Jax),
    ("cuda-python", "Other Python packages that use CUDA: cupy, numba, cuda-python", ProjectKind::CudaPython),
    ("onnx", "ONNX model, served by cudock", ProjectKind::Onnx),
];

/// The values of `--installer`: name, help and installer.
const INSTALLERS: &[(&str, &str, Installer)] = &[
    ("pip", "pip, from requirements.txt or pyproject.toml", Installer::Pip),
    ("uv", "uv, from uv.lock", Installer::Uv),
    ("conda", "conda, mamba or micromamba, from environment.yml", Installer::Conda),
];

#[derive(Debug, Args)]
#[allow(clippy::doc_markdown, reason = "shown as help")]
#[command(after_help = "Examples:
  cudock init --for T4
  cudock init my-app --for Standard_NC40ads_H100_v5 --print
  cudock init --for H100 --driver R550 --python 3.12 --command \"python train.py\"
  cudock init --for cpu --kind torch --installer pip --force
  cudock init --example digits && cudock up digits")]
pub struct InitArgs {
    /// Directory of the project [default: this one; with --example, one with the name of the example]
    pub dir: Option<PathBuf>,

    /// Choose versions for this GPU, Azure size, or `cpu` [default: the GPU of this machine]
    #[arg(long = "for", value_name = "TARGET", conflicts_with = "example")]
    pub target: Option<String>,

    /// Assume this driver: 535.161.08, or the last release of a branch: 580, R580
    #[arg(long, value_name = "VERSION", requires = "target")]
    pub driver: Option<DriverVersion>,

    /// Set the kind of project, if there are several
    #[arg(long, conflicts_with = "example", value_parser = choice(KINDS))]
    pub kind: Option<ProjectKind>,

    /// Set what installs Python packages, if there are several
    #[arg(long, conflicts_with = "example", value_parser = choice(INSTALLERS))]
    pub installer: Option<Installer>,

    /// Use this Python version
    #[arg(long, value_name = "VERSION", conflicts_with = "example")]
    pub python: Option<String>,

    /// Use this CUDA version
    #[arg(long, value_name = "VERSION", conflicts_with = "example")]
    pub cuda: Option<CudaVersion>,

    /// Start this command in the container [default: the program that is found]
    #[arg(long, value_name = "COMMAND", conflicts_with = "example")]
    pub command: Option<String>,

    /// Replace existing files
    #[arg(long, conflicts_with = "example")]
    pub force: bool,

    /// Print the files and write nothing
    #[arg(long, conflicts_with_all = ["example", "force"])]
    pub print: bool,

    /// Copy this example instead: digits, a model that recognizes handwritten digits
    #[arg(long, value_name = "NAME")]
    pub example: Option<String>,
}
