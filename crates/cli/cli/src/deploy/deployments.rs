//! Arguments of the verbs for deployments.

use std::path::PathBuf;

use clap::Args;
use cudock_azure::ExportFormat;
use cudock_project::DeployFlags;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cudock export bicep --on container-apps -o infra
  cudock export aml . --on ml --workspace team/lab -o jobs -- python train.py")]
pub struct ExportArgs {
    /// Write this language: bicep, arm, terraform, az, aml
    #[arg(value_name = "LANGUAGE")]
    pub language: ExportFormat,

    /// Write the files to this directory
    #[arg(long, short, value_name = "DIR")]
    pub output: PathBuf,

    #[command(flatten)]
    pub deploy: DeployArgs,
}

// This is not a doc comment, because clap would show it in the help of every verb with these arguments.
//
// What is deployed, and where.
#[derive(Debug, Clone, Args)]
pub struct DeployArgs {
    /// Deploy the group.yaml or cudock.toml of this directory
    #[arg(value_name = "DIR", conflicts_with = "file")]
    pub directory: Option<PathBuf>,

    /// Deploy this group file
    #[arg(long, short, value_name = "FILE")]
    pub file: Option<PathBuf>,

    /// Override the name in the file
    #[arg(long)]
    pub name: Option<String>,

    /// Serve a project on this port
    #[arg(long, value_name = "PORT", conflicts_with = "file")]
    pub port: Option<u16>,

    #[command(flatten)]
    pub flags: DeployFlags,

    /// The program and its arguments; those of the image if absent
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  cudock gc --dry-run\n  cudock gc --run 3f9c01d2a4b6\n  cudock gc --format json"
)]
pub struct GcArgs {
    /// List what would be deleted, and delete nothing
    #[arg(long)]
    pub dry_run: bool,

    /// Also delete this run, although it may be running for another state directory; repeatable
    #[arg(long = "run", value_name = "RUN-ID")]
    pub runs: Vec<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  cudock resume train")]
pub struct ResumeArgs {
    /// The deployment, by name or run id
    pub name: String,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  cudock cost\n  cudock cost train\n  cudock cost --offline --format json"
)]
pub struct CostArgs {
    /// Show only this deployment, by name or run id, with its phases
    pub name: Option<String>,

    /// Use only what the journal knows
    #[arg(long)]
    pub offline: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  cudock verify train\n  cudock verify oci:image --key cosign.pub")]
pub struct VerifyArgs {
    /// The deployment, by name or run id; with --key, the image
    pub name: String,

    /// Public key that must have signed the image
    #[arg(long, value_name = "FILE")]
    pub key: Option<PathBuf>,
}
