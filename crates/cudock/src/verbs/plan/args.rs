//! The arguments of `cudock plan`.

use std::path::PathBuf;

use clap::Args;
use cudock_workload::WorkloadFlags;

const SHOWN: &str = "What is shown";

/// Find the Azure service, size and region for a workload, with the cost and the reasons
///
/// PATH is a cudock.toml or its folder; flags stand over its keys, and do without it if they say enough. Every service,
/// size, region and priority the tables know is held against the workload; what fits is priced part by part and ranked
/// by cost, and what does not has its reason. What was not given is assumed and printed. Nothing is asked of Azure: see
/// docs/plan.md for the model and its limits.
///
/// Exit codes: 0 something fits; 1 nothing does; 2 the call or the file is bad.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cudock plan                                           the cudock.toml of this folder
  cudock plan --gpu-memory 40GB --duration 3h           a job of three hours, from flags alone
  cudock plan --gpu H100 --gpus 8 --nodes 2 --infiniband --duration 7d
  cudock plan --items 10000 --item-time 5s --deadline 2h
  cudock plan --trials 27 --at-once 3 --trial-time 40m --checkpoint-every 10m
  cudock plan --rate 5 --rate-night 0 --replica-rate 20 --chart serve.svg
  cudock plan train.toml --region westeurope,northeurope --no-spot --budget 500
  cudock plan train.toml --why Standard_NC24ads_A100_v4
  cudock plan train.toml --compare Standard_NC4as_T4_v3,container-apps/Consumption-GPU-NC8as-T4
  cudock plan train.toml --format json | jq '.placements[0]'")]
pub(crate) struct PlanArgs {
    /// A cudock.toml, or the folder it is in [default: the one here, if there is one]
    #[arg(value_name = "PATH")]
    pub(super) path: Option<PathBuf>,

    #[command(flatten)]
    pub(super) workload: WorkloadFlags,

    /// Show the whole report: workload, assumptions, warnings and rejections
    #[arg(short, long, help_heading = SHOWN)]
    pub(super) verbose: bool,

    /// Show N placements [default: 5, 10 with --verbose; all in JSON and CSV]
    #[arg(long, value_name = "N", help_heading = SHOWN)]
    pub(super) top: Option<usize>,

    /// Every region of a placement, not only the cheapest
    #[arg(long, help_heading = SHOWN)]
    pub(super) all_regions: bool,

    /// Everything that was rejected, one by one, and every placement
    #[arg(long, help_heading = SHOWN)]
    pub(super) all: bool,

    /// All about one size: each service's answer, and each part of its cost
    #[arg(long, value_name = "SIZE", help_heading = SHOWN, conflicts_with_all = ["compare", "chart"])]
    pub(super) why: Option<String>,

    /// Two or more side by side, as SIZE, SERVICE/SIZE or SERVICE/SIZE/REGION, and where the cheaper one changes
    #[arg(long, value_name = "A,B", value_delimiter = ',', help_heading = SHOWN, conflicts_with = "chart")]
    pub(super) compare: Vec<String>,

    /// Cost against load or duration: in FILE as SVG, or here in the terminal
    #[arg(long, value_name = "FILE.svg", num_args = 0..=1, help_heading = SHOWN)]
    #[allow(clippy::option_option, reason = "absent, alone, or with a file: as clap tells them apart")]
    pub(super) chart: Option<Option<PathBuf>>,
}
