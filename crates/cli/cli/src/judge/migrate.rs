//! `cudock migrate`.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
#[command(mut_arg("verbose", |arg| arg.short('v').help("Show every difference of a replacement, and the sources of prices")))]
#[command(after_help = "Examples:
  cudock migrate deploy.sh
  cudock migrate infra/*.tf train.py --region westeurope
  cudock migrate 'az vm create --size Standard_NC6 -l eastus'
  cat group.yaml | cudock migrate -
  cudock migrate hyperdrive.py -o sweep
  cudock migrate main.bicep --format sarif > migrate.sarif
  cudock migrate infra/*.tf --format github")]
pub struct MigrateArgs {
    /// Files to read, - for standard input, or an `az` command line
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// Use prices in this region instead of those that the files name
    #[arg(long, value_name = "REGION")]
    pub region: Option<String>,

    /// Write translated files into this directory
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,

    /// Replace files that exist
    #[arg(long, requires = "output")]
    pub force: bool,
}
