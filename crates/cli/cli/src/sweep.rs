//! Arguments of `cudock sweep`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use cudock_project::{DeployFlags, SweepFlags, TimeSpan};

const AZURE: &str = "Azure (with --on)";

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
#[command(after_help = "Examples:
  cudock sweep
  cudock sweep examples/sweep-digits --concurrent 3 --price 3.50 --dollars 2
  cudock sweep --no-container --trials 50
  cudock sweep --on batch --region westeurope --concurrent 3
  cudock sweep show --html report.html
  cudock sweep stop 7
  cudock sweep add 10 && cudock sweep")]
pub struct LocalSweepArgs {
    #[command(subcommand)]
    pub command: Option<SweepCommand>,

    #[command(flatten)]
    pub sweep: SweepName,

    #[command(flatten)]
    pub flags: SweepFlags,
}

/// Which sweep.
#[derive(Debug, Args)]
pub struct SweepName {
    /// Use the project in this directory, or described by this file
    #[arg(value_name = "DIR", default_value = ".")]
    pub directory: PathBuf,

    /// Set the name of the sweep [default: that of the project]
    #[arg(long)]
    pub name: Option<String>,
}

#[derive(Debug, Subcommand)]
pub enum SweepCommand {
    /// Show the best trials, and why each trial ended
    Show {
        #[command(flatten)]
        sweep: SweepName,

        /// Write a report with curves to this file
        #[arg(long, value_name = "FILE")]
        html: Option<PathBuf>,

        /// Write a journal to this file that optuna-dashboard opens
        #[arg(long, value_name = "FILE")]
        optuna: Option<PathBuf>,
    },
    /// Start no more trials; `cudock sweep` resumes
    Pause {
        #[command(flatten)]
        sweep: SweepName,
    },
    /// Stop one trial, or the whole sweep
    Stop {
        /// Stop only this trial
        trial: Option<u32>,

        #[command(flatten)]
        sweep: SweepName,
    },
    /// Run N more trials than planned
    Add {
        #[arg(value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
        count: u32,

        #[command(flatten)]
        sweep: SweepName,
    },
}

// Not a doc comment, because clap would show it in place of the help of the flattened arguments.
//
// Arguments of `cudock sweep`.
#[derive(Debug, Args)]
pub struct SweepArgs {
    #[command(flatten)]
    pub local: LocalSweepArgs,

    #[command(flatten)]
    pub azure: SweepDeployFlags,
}

// Not a doc comment, because clap would show it in the help of the verb.
//
// Where a sweep runs.
#[derive(Debug, Clone, Default, Args)]
pub struct SweepDeployFlags {
    /// Run trials on this service of Azure: ml, batch
    #[arg(long, value_name = "SERVICE", help_heading = AZURE, value_parser = service)]
    pub on: Option<String>,

    /// Print all requests, and send none
    #[arg(long, help_heading = AZURE, requires = "on")]
    pub dry_run: bool,

    /// Let Azure delete everything after this time, whatever happens here
    #[arg(long, value_name = "TIME", help_heading = AZURE, requires = "on")]
    pub ttl: Option<TimeSpan>,

    /// Use only these regions
    #[arg(long, value_name = "REGION,REGION", value_delimiter = ',', help_heading = AZURE, requires = "on")]
    pub region: Vec<String>,

    /// Use only these sizes
    #[arg(long, value_name = "SIZE,SIZE", value_delimiter = ',', help_heading = AZURE, requires = "on")]
    pub size: Vec<String>,

    /// Use this Machine Learning workspace
    #[arg(long, value_name = "GROUP/NAME", help_heading = AZURE, requires = "on")]
    pub workspace: Option<String>,

    /// Use this Batch account
    #[arg(long, value_name = "GROUP/NAME", help_heading = AZURE, requires = "on")]
    pub batch_account: Option<String>,
}

fn service(text: &str) -> Result<String, String> {
    match text {
        "ml" | "batch" => Ok(text.to_owned()),
        _ => Err("expected ml or batch".to_owned()),
    }
}

impl SweepDeployFlags {
    /// The same as flags of a deployment.
    pub fn deploy_flags(&self) -> DeployFlags {
        DeployFlags {
            on: self.on.clone(),
            dry_run: self.dry_run,
            ttl: self.ttl,
            region: self.region.clone(),
            size: self.size.clone(),
            placements: 1,
            workspace: self.workspace.clone(),
            batch_account: self.batch_account.clone(),
            ..DeployFlags::default()
        }
    }
}
