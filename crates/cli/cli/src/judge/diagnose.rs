//! `cudock explain`, `doctor` and `inspect`.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
#[command(mut_arg("verbose", |arg| arg.short('v').help("Show where the explanation comes from")))]
#[command(after_help = "Examples:
  cudock explain CD0304
  cudock explain 209
  cudock explain 'no kernel image is available for execution on the device'
  cudock explain training.log
  docker logs trainer 2>&1 | cudock explain")]
pub struct ExplainArgs {
    /// A finding code, a CUDA error number or name, a message, or a file; by default or with -, standard input
    pub what: Vec<String>,

    /// Treat the argument as a message, even if a file has that name
    #[arg(long)]
    pub text: bool,

    /// Show every message found, not only the five most relevant
    #[arg(long)]
    pub all: bool,
}

#[derive(Debug, Args)]
#[command(mut_arg("verbose", |arg| arg.short('v').help("Show the evidence of each finding")))]
#[command(after_help = "Examples:
  cudock doctor
  cudock doctor --verbose
  docker run --rm --gpus all -v \"$(command -v cudock):/cudock\" IMAGE /cudock doctor
  cudock doctor --root /mnt/other-root --format json")]
pub struct DoctorArgs {
    /// Diagnose a directory tree instead of this machine
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cudock inspect /usr/local/cuda/lib64/libcublas.so
  cudock inspect .venv/lib/python3.12/site-packages
  cudock inspect torch-2.15.0-cp312-cp312-manylinux_2_28_x86_64.whl
  cudock inspect --kernels build/app --format json")]
pub struct InspectArgs {
    /// Files, directories or wheels
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,

    /// List the kernels in the machine code
    #[arg(long)]
    pub kernels: bool,
}
