//! Arguments of the verbs for deployments.

use clap::Args;

/// Delete what was left behind in Azure
///
/// Deletes deployments of the journal whose command died or that have ended, and resource groups with the tag of cudock
/// that the journal has lost, if they are yours or expired. Running deployments stay. See docs/deploy.md.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  cudock gc --dry-run\n  cudock gc --format json")]
pub(crate) struct GcArgs {
    /// List what would be deleted, and delete nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// Wait for a deployment whose command died
///
/// Goes on where `cudock up` was interrupted: sends the requests that are missing and waits. The output of a job is
/// printed, it is deleted, and its exit code is that of the command.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  cudock resume train")]
pub(crate) struct ResumeArgs {
    /// The deployment, by name or run id
    pub(crate) name: String,
}

/// Show what deployments cost: now, this month, and until they expire
///
/// Billed seconds come from the clocks of the services. Taxes and discounts are not known.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  cudock cost\n  cudock cost train\n  cudock cost --offline --format json"
)]
pub(crate) struct CostArgs {
    /// Show only this deployment, by name or run id, with its phases
    pub(crate) name: Option<String>,

    /// Use only what the journal knows
    #[arg(long)]
    pub(crate) offline: bool,
}

/// Check that a deployment sees the GPUs that are paid for
///
/// Compares the devices that its log lists as `nvidia-smi -L` does with those of its size. Exit code 1 means that some
/// are missing or different, or that the log lists none.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  cudock verify train")]
pub(crate) struct VerifyArgs {
    /// The deployment, by name or run id
    pub(crate) name: String,
}
