//! Arguments of `cudock sweep`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use cudock_sweep::journal::TrialId;

use crate::flags::SweepFlags;
use crate::requests::SweepRequest;
use crate::run::{ProjectSweep, SweepError};

/// Run a hyperparameter sweep, or resume it
///
/// Runs the command of `[sweep]` in cudock.toml with different parameters, and stops trials that do badly. Re-run the same
/// command to resume a sweep that was interrupted, killed or paused. See docs/sweep.md.
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

impl SweepName {
    pub fn open(&self) -> Result<ProjectSweep, SweepError> {
        ProjectSweep::open(&self.directory, self.name.as_deref())
    }
}

impl SweepCommand {
    /// Asks the sweep for what the command says. Returns whether it was answered, which `show` need not be.
    pub fn ask(&self) -> Result<bool, SweepError> {
        match self {
            Self::Show { .. } => Ok(true),
            Self::Pause { sweep } => sweep.open()?.ask(SweepRequest::Pause),
            Self::Stop { sweep, trial: None } => sweep.open()?.ask(SweepRequest::Cancel),
            Self::Stop { sweep, trial: Some(trial) } => {
                sweep.open()?.ask(SweepRequest::Stop { trial: TrialId(*trial) })
            }
            Self::Add { sweep, count } => sweep.open()?.add(*count),
        }
    }
}
