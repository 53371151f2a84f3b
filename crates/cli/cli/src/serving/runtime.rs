//! `cudock runtime`.

use clap::{Args, Subcommand};
use cudock_pypi::Package;

use cudock_project::choice;

/// The builds, by their names on package indexes.
const PACKAGES: &[(&str, &str, Package)] = &[
    ("onnxruntime", "For the CPU", Package::Onnxruntime),
    ("onnxruntime-gpu", "For NVIDIA GPUs and the CPU", Package::OnnxruntimeGpu),
];

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cudock runtime list
  cudock runtime install onnxruntime
  cudock runtime install onnxruntime-gpu
  PIP_FIND_LINKS=./wheels cudock runtime install onnxruntime --offline
  CUDOCK_ONNXRUNTIME=/opt/onnxruntime/lib/libonnxruntime.so cudock runtime list")]
pub struct RuntimeArgs {
    #[command(subcommand)]
    pub verb: RuntimeVerb,
}

#[derive(Debug, Subcommand)]
pub enum RuntimeVerb {
    /// Download a library into the cache
    Install(RuntimeInstallArgs),
    /// List libraries on this machine, and those that can be installed
    List,
}

#[derive(Debug, Args)]
pub struct RuntimeInstallArgs {
    /// Install this build
    #[arg(value_parser = choice(PACKAGES))]
    pub package: Package,

    /// Use local directories of wheels only, not the network
    #[arg(long)]
    pub offline: bool,
}
