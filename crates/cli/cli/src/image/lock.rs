//! `cudock lock`.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cudock lock
  cudock lock --upgrade
  cudock lock --upgrade torch
  cudock lock --check")]
pub struct LockArgs {
    /// Project directory or cudock.toml
    #[arg(default_value = ".")]
    pub path: PathBuf,

    /// Choose the newest versions, of all packages or of these
    #[arg(long, value_name = "PACKAGE", num_args = 0..=1, default_missing_value = "", conflicts_with = "check")]
    pub upgrade: Vec<String>,

    /// Write nothing, and exit with 1 if the lock is missing or out of date
    #[arg(long)]
    pub check: bool,
}
