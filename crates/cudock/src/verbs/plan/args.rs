//! The words of `cudock plan`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use cudock_facts::version::Date;
use cudock_plan::Management;
use cudock_project::{ByteSize, Span};

use super::workload::PlanFlags;

const WORK: &str = "What is to be done (over the keys of cudock.toml)";
const NEEDS: &str = "What it needs";
const DATA: &str = "What it reads";
const WISHES: &str = "What is wanted";
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
#[allow(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
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

    /// How long the job computes, with the GPU kept busy: 40m, 5h30m, 7d
    #[arg(long, value_name = "TIME", help_heading = WORK, allow_hyphen_values = true)]
    duration: Option<Span>,

    /// How many items there are that do not need each other
    #[arg(long, value_name = "N", help_heading = WORK)]
    items: Option<u64>,

    /// How long one item takes
    #[arg(long, value_name = "TIME", help_heading = WORK, allow_hyphen_values = true)]
    item_time: Option<Span>,

    /// How many trials a sweep has
    #[arg(long, value_name = "N", help_heading = WORK)]
    trials: Option<u32>,

    /// How many items or trials are worked on at a time
    #[arg(long, value_name = "N", help_heading = WORK)]
    at_once: Option<u32>,

    /// How long one trial takes
    #[arg(long, value_name = "TIME", help_heading = WORK, allow_hyphen_values = true)]
    trial_time: Option<Span>,

    /// Serving: requests a second: 5, 4/h, 5,0@08:00-20:00 (by day, by night, from, to; UTC), or 24 numbers
    #[arg(long, value_name = "RATE", help_heading = WORK, allow_hyphen_values = true)]
    rate: Option<String>,

    /// Serving: requests a second by night, --rate being those by day
    #[arg(long, value_name = "RATE", help_heading = WORK, allow_hyphen_values = true)]
    rate_night: Option<String>,

    /// Serving: requests a second that one instance answers when it is full
    #[arg(long, value_name = "RATE", help_heading = WORK, conflicts_with = "bench", allow_hyphen_values = true)]
    replica_rate: Option<String>,

    /// Serving: what `cudock bench --format json` wrote, for the same
    #[arg(long, value_name = "FILE", help_heading = WORK)]
    bench: Option<PathBuf>,

    /// The GPU that times and rates hold on
    #[arg(long, value_name = "GPU", help_heading = WORK)]
    measured_on: Option<String>,

    /// How many times as fast another GPU is, where measured: H100=2.8; may be given several times
    #[arg(long, value_name = "GPU=FACTOR", help_heading = WORK, value_parser = speed)]
    speed: Vec<(String, String)>,

    /// The day it begins, today or later [default: today]
    #[arg(long, value_name = "DATE", help_heading = WORK)]
    begins: Option<Date>,

    /// Memory of each GPU, with its unit: 40GB
    #[arg(long, value_name = "SIZE", help_heading = NEEDS, allow_hyphen_values = true)]
    gpu_memory: Option<ByteSize>,

    /// GPUs in one machine
    #[arg(long, value_name = "N", help_heading = NEEDS)]
    gpus: Option<u32>,

    /// Machines that work together
    #[arg(long, value_name = "N", help_heading = NEEDS)]
    nodes: Option<u32>,

    /// Only these GPUs
    #[arg(long, value_name = "GPU,GPU", value_delimiter = ',', help_heading = NEEDS)]
    gpu: Vec<String>,

    /// Compute capability: 7.5 or more, or from-to as 7.0-7.0
    #[arg(long, value_name = "X.Y[-X.Y]", help_heading = NEEDS)]
    capability: Option<String>,

    /// GPUs of a machine joined by NVLink
    #[arg(long, help_heading = NEEDS)]
    nvlink: bool,

    /// Machines joined by `InfiniBand`
    #[arg(long, help_heading = NEEDS)]
    infiniband: bool,

    /// Virtual processors
    #[arg(long, value_name = "N", help_heading = NEEDS)]
    vcpu: Option<u32>,

    /// Main memory
    #[arg(long, value_name = "SIZE", help_heading = NEEDS)]
    ram: Option<ByteSize>,

    /// The image, as `check` takes it: its size is the cold start, and only sizes it runs on are left
    #[arg(long, value_name = "IMAGE", help_heading = NEEDS)]
    image: Option<String>,

    /// Look at the image in the cache only, and fetch nothing
    #[arg(long, help_heading = NEEDS)]
    offline: bool,

    /// The model, for the GPU memory it takes
    #[arg(long, value_name = "FILE", help_heading = NEEDS)]
    model: Option<PathBuf>,

    /// Bytes of data: 2TB
    #[arg(long, value_name = "SIZE", help_heading = DATA)]
    data: Option<ByteSize>,

    /// Where they lie: `cudock facts storage` lists the kinds
    #[arg(long, value_name = "KIND", help_heading = DATA)]
    storage: Option<String>,

    /// Bytes a second that one GPU uses up when it never waits
    #[arg(long, value_name = "SIZE", help_heading = DATA)]
    data_rate: Option<ByteSize>,

    /// The region they lie in, if not that of the placement
    #[arg(long, value_name = "REGION", help_heading = DATA)]
    data_region: Option<String>,

    /// Most time from the order to the end
    #[arg(long, value_name = "TIME", help_heading = WISHES, allow_hyphen_values = true)]
    deadline: Option<Span>,

    /// Most dollars: for a job as a whole, for a month of serving
    #[arg(long, value_name = "USD", help_heading = WISHES, allow_hyphen_values = true)]
    budget: Option<String>,

    /// Spot machines too, which can be taken away
    #[arg(long, help_heading = WISHES, conflicts_with = "no_spot")]
    spot: bool,

    /// No Spot machines
    #[arg(long, help_heading = WISHES)]
    no_spot: bool,

    /// Evictions an hour of one Spot machine
    #[arg(long, value_name = "N", help_heading = WISHES, allow_hyphen_values = true)]
    evictions: Option<String>,

    /// Time between checkpoints, which is what an eviction can cost
    #[arg(long, value_name = "TIME", help_heading = WISHES, allow_hyphen_values = true)]
    checkpoint_every: Option<Span>,

    /// Only these regions
    #[arg(long, value_name = "REGION,REGION", value_delimiter = ',', help_heading = WISHES)]
    region: Vec<String>,

    /// Only these services: vm, aks, batch, ml, container-apps, or ml-serverless and the like
    #[arg(long, value_name = "SERVICE,SERVICE", value_delimiter = ',', help_heading = WISHES)]
    service: Vec<String>,

    /// Only these sizes
    #[arg(long, alias = "sku", value_name = "SIZE,SIZE", value_delimiter = ',', help_heading = WISHES)]
    size: Vec<String>,

    /// How much the service must do by itself
    #[arg(long, value_enum, help_heading = WISHES)]
    management: Option<ManagementWord>,

    /// Serving: no request waits for a cold start, so something is always up
    #[arg(long, help_heading = WISHES)]
    no_cold_starts: bool,

    /// So many placements [default: 10; all for programs]
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

/// How much a service does by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ManagementWord {
    /// Machines of one's own will do
    Own,
    /// Machines are made, mended and removed by the service
    Managed,
    /// No machines to see
    Serverless,
}

impl PlanArgs {
    /// What stands over the keys of the file.
    pub(super) fn flags(&self) -> PlanFlags {
        PlanFlags {
            duration: self.duration,
            items: self.items,
            item_time: self.item_time,
            trials: self.trials,
            at_once: self.at_once,
            trial_time: self.trial_time,
            rate: self.rate.clone(),
            rate_night: self.rate_night.clone(),
            replica_rate: self.replica_rate.clone(),
            bench: self.bench.clone(),
            measured_on: self.measured_on.clone(),
            speed: self.speed.clone(),
            begins: self.begins,
            gpu_memory: self.gpu_memory,
            gpus: self.gpus,
            nodes: self.nodes,
            gpu: self.gpu.clone(),
            capability: self.capability.clone(),
            nvlink: self.nvlink,
            infiniband: self.infiniband,
            vcpu: self.vcpu,
            ram: self.ram,
            image: self.image.clone(),
            offline: self.offline,
            model: self.model.clone(),
            data: self.data,
            storage: self.storage.clone(),
            data_rate: self.data_rate,
            data_region: self.data_region.clone(),
            deadline: self.deadline,
            budget: self.budget.clone(),
            spot: match (self.spot, self.no_spot) {
                (false, false) => None,
                (wanted, _) => Some(wanted),
            },
            evictions: self.evictions.clone(),
            checkpoint_every: self.checkpoint_every,
            region: self.region.clone(),
            service: self.service.clone(),
            size: self.size.clone(),
            management: self.management.map(|word| match word {
                ManagementWord::Own => Management::Own,
                ManagementWord::Managed => Management::Managed,
                ManagementWord::Serverless => Management::Serverless,
            }),
            no_cold_starts: self.no_cold_starts,
        }
    }
}

/// `H100=2.8`: the two sides; the name and the number are looked at where the tables are.
fn speed(word: &str) -> Result<(String, String), String> {
    match word.split_once('=') {
        Some((gpu, factor)) if !gpu.is_empty() && !factor.is_empty() => {
            Ok((gpu.to_owned(), factor.to_owned()))
        }
        _ => Err("write it as GPU=FACTOR, such as H100=2.8".to_owned()),
    }
}
