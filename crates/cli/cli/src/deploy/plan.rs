//! `cudock plan`.

use std::path::PathBuf;

use clap::Args;
use cudock_project::WorkloadFlags;

const OUTPUT: &str = "Output";

#[derive(Debug, Args)]
#[command(mut_arg("verbose", |arg| arg.short('v').help("Show the whole report: workload, assumptions, warnings and rejections").help_heading(OUTPUT)))]
#[command(after_help = "Examples:
  cudock plan                                           the cudock.toml in this directory
  cudock plan --gpu-memory 40GB --duration 3h           a job of three hours, without a file
  cudock plan --gpu H100 --gpus 8 --nodes 2 --infiniband --duration 7d
  cudock plan --items 10000 --item-time 5s --deadline 2h
  cudock plan --trials 27 --at-once 3 --trial-time 40m --checkpoint-every 10m
  cudock plan --rate 5 --rate-night 0 --replica-rate 20 --chart serve.svg
  cudock plan train.toml --region westeurope,northeurope --no-spot --budget 500
  cudock plan train.toml --why Standard_NC24ads_A100_v4
  cudock plan train.toml --compare Standard_NC4as_T4_v3,container-apps/Consumption-GPU-NC8as-T4
  cudock plan train.toml --format json | jq '.placements[0]'")]
pub struct PlanArgs {
    /// Read this cudock.toml, or the one in this directory [default: ./cudock.toml, if it exists]
    #[arg(value_name = "PATH")]
    pub path: Option<PathBuf>,

    #[command(flatten)]
    pub workload: WorkloadFlags,

    /// Show N placements [default: 5, 10 with --verbose; all in JSON and CSV]
    #[arg(long, value_name = "N", help_heading = OUTPUT)]
    pub top: Option<usize>,

    /// List every region of a placement, not only the cheapest
    #[arg(long, help_heading = OUTPUT)]
    pub all_regions: bool,

    /// List every placement and every rejection
    #[arg(long, help_heading = OUTPUT)]
    pub all: bool,

    /// Explain one size: its result on each service, and each part of its cost
    #[arg(long, value_name = "SIZE", help_heading = OUTPUT, conflicts_with_all = ["compare", "chart"])]
    pub why: Option<String>,

    /// Compare two or more of SIZE, SERVICE/SIZE or SERVICE/SIZE/REGION, and find where the cheaper one changes
    #[arg(long, value_name = "A,B", value_delimiter = ',', help_heading = OUTPUT, conflicts_with = "chart")]
    pub compare: Vec<String>,

    /// Draw cost against load or duration: as SVG into FILE, or in the terminal
    #[arg(long, value_name = "FILE.svg", num_args = 0..=1, help_heading = OUTPUT)]
    #[allow(clippy::option_option, reason = "clap distinguishes absent, alone and with a file this way")]
    pub chart: Option<Option<PathBuf>>,
}
