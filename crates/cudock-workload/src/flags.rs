//! The flags that describe a workload.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use cudock_facts::version::Date;
use cudock_plan::Management;
use cudock_project::{ByteSize, TimeSpan};

const WORK: &str = "What is to be done (over the keys of cudock.toml)";
const NEEDS: &str = "What it needs";
const DATA: &str = "What it reads";
const WISHES: &str = "What is wanted";

// This comment is no doc comment: clap would show it in the help of every verb that has these flags.
//
// The flags of every verb that needs to know a workload. Each overrides the key of the same meaning in `cudock.toml`; flags
// of another kind of work override everything the file says about the work.
#[derive(Debug, Clone, Default, Args)]
#[allow(missing_docs, clippy::struct_excessive_bools, reason = "each is a flag with its own help")]
pub struct WorkloadFlags {
    /// How long the job computes, with the GPU kept busy: 40m, 5h30m, 7d
    #[arg(long, value_name = "TIME", help_heading = WORK, allow_hyphen_values = true)]
    pub duration: Option<TimeSpan>,

    /// How many items there are that do not need each other
    #[arg(long, value_name = "N", help_heading = WORK)]
    pub items: Option<u64>,

    /// How long one item takes
    #[arg(long, value_name = "TIME", help_heading = WORK, allow_hyphen_values = true)]
    pub item_time: Option<TimeSpan>,

    /// How many trials a sweep has
    #[arg(long, value_name = "N", help_heading = WORK)]
    pub trials: Option<u32>,

    /// How many items or trials are worked on at a time
    #[arg(long, value_name = "N", help_heading = WORK)]
    pub at_once: Option<u32>,

    /// How long one trial takes
    #[arg(long, value_name = "TIME", help_heading = WORK, allow_hyphen_values = true)]
    pub trial_time: Option<TimeSpan>,

    /// Serving: requests a second: 5, 4/h, 5,0@08:00-20:00 (by day, by night, from, to; UTC), or 24 numbers
    #[arg(long, value_name = "RATE", help_heading = WORK, allow_hyphen_values = true)]
    pub rate: Option<String>,

    /// Serving: requests a second by night, --rate being those by day
    #[arg(long, value_name = "RATE", help_heading = WORK, allow_hyphen_values = true)]
    pub rate_night: Option<String>,

    /// Serving: requests a second that one instance answers when it is full
    #[arg(long, value_name = "RATE", help_heading = WORK, conflicts_with = "bench", allow_hyphen_values = true)]
    pub replica_rate: Option<String>,

    /// Serving: what `cudock bench --format json` wrote, for the same
    #[arg(long, value_name = "FILE", help_heading = WORK)]
    pub bench: Option<PathBuf>,

    /// The GPU that times and rates hold on
    #[arg(long, value_name = "GPU", help_heading = WORK)]
    pub measured_on: Option<String>,

    /// How many times as fast another GPU is, where measured: H100=2.8; may be given several times
    #[arg(long, value_name = "GPU=FACTOR", help_heading = WORK, value_parser = speed)]
    pub speed: Vec<(String, String)>,

    /// The day it begins, today or later [default: today]
    #[arg(long, value_name = "DATE", help_heading = WORK)]
    pub begins: Option<Date>,

    /// Memory of each GPU, with its unit: 40GB
    #[arg(long, value_name = "SIZE", help_heading = NEEDS, allow_hyphen_values = true)]
    pub gpu_memory: Option<ByteSize>,

    /// GPUs in one machine
    #[arg(long, value_name = "N", help_heading = NEEDS)]
    pub gpus: Option<u32>,

    /// Machines that work together
    #[arg(long, value_name = "N", help_heading = NEEDS)]
    pub nodes: Option<u32>,

    /// Only these GPUs
    #[arg(long, value_name = "GPU,GPU", value_delimiter = ',', help_heading = NEEDS)]
    pub gpu: Vec<String>,

    /// Compute capability: 7.5 or more, or from-to as 7.0-7.0
    #[arg(long, value_name = "X.Y[-X.Y]", help_heading = NEEDS)]
    pub capability: Option<String>,

    /// GPUs of a machine joined by NVLink
    #[arg(long, help_heading = NEEDS)]
    pub nvlink: bool,

    /// Machines joined by `InfiniBand`
    #[arg(long, help_heading = NEEDS)]
    pub infiniband: bool,

    /// Virtual processors
    #[arg(long, value_name = "N", help_heading = NEEDS)]
    pub vcpu: Option<u32>,

    /// Main memory
    #[arg(long, value_name = "SIZE", help_heading = NEEDS)]
    pub ram: Option<ByteSize>,

    /// The image, as `check` takes it: its size is the cold start, and only sizes it runs on are left
    #[arg(long, value_name = "IMAGE", help_heading = NEEDS)]
    pub image: Option<String>,

    /// Look at the image in the cache only, and fetch nothing
    #[arg(long, help_heading = NEEDS)]
    pub offline: bool,

    /// The model, for the GPU memory it takes
    #[arg(long, value_name = "FILE", help_heading = NEEDS)]
    pub model: Option<PathBuf>,

    /// Bytes of data: 2TB
    #[arg(long, value_name = "SIZE", help_heading = DATA)]
    pub data: Option<ByteSize>,

    /// Where they lie: `cudock facts storage` lists the kinds
    #[arg(long, value_name = "KIND", help_heading = DATA)]
    pub storage: Option<String>,

    /// Bytes a second that one GPU uses up when it never waits
    #[arg(long, value_name = "SIZE", help_heading = DATA)]
    pub data_rate: Option<ByteSize>,

    /// The region they lie in, if not that of the placement
    #[arg(long, value_name = "REGION", help_heading = DATA)]
    pub data_region: Option<String>,

    /// Most time from the order to the end
    #[arg(long, value_name = "TIME", help_heading = WISHES, allow_hyphen_values = true)]
    pub deadline: Option<TimeSpan>,

    /// Most dollars: for a job as a whole, for a month of serving
    #[arg(long, value_name = "USD", help_heading = WISHES, allow_hyphen_values = true)]
    pub budget: Option<String>,

    /// Spot machines too, which can be taken away
    #[arg(long, help_heading = WISHES, conflicts_with = "no_spot")]
    pub spot: bool,

    /// No Spot machines
    #[arg(long, help_heading = WISHES)]
    pub no_spot: bool,

    /// Evictions an hour of one Spot machine
    #[arg(long, value_name = "N", help_heading = WISHES, allow_hyphen_values = true)]
    pub evictions: Option<String>,

    /// Time between checkpoints, which is what an eviction can cost
    #[arg(long, value_name = "TIME", help_heading = WISHES, allow_hyphen_values = true)]
    pub checkpoint_every: Option<TimeSpan>,

    /// Only these regions
    #[arg(long, value_name = "REGION,REGION", value_delimiter = ',', help_heading = WISHES)]
    pub region: Vec<String>,

    /// Only these services: vm, aks, batch, ml, container-apps, or ml-serverless and the like
    #[arg(long, value_name = "SERVICE,SERVICE", value_delimiter = ',', help_heading = WISHES)]
    pub service: Vec<String>,

    /// Only these sizes
    #[arg(long, alias = "sku", value_name = "SIZE,SIZE", value_delimiter = ',', help_heading = WISHES)]
    pub size: Vec<String>,

    /// How much the service must do by itself
    #[arg(long, value_enum, help_heading = WISHES)]
    pub management: Option<ManagementFlag>,

    /// Serving: no request waits for a cold start, so something is always up
    #[arg(long, help_heading = WISHES)]
    pub no_cold_starts: bool,
}

/// How much a service has to manage by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ManagementFlag {
    /// Machines of one's own will do
    Own,
    /// Machines are made, mended and removed by the service
    Managed,
    /// No machines to see
    Serverless,
}

impl From<ManagementFlag> for Management {
    fn from(flag: ManagementFlag) -> Self {
        match flag {
            ManagementFlag::Own => Self::Own,
            ManagementFlag::Managed => Self::Managed,
            ManagementFlag::Serverless => Self::Serverless,
        }
    }
}

impl WorkloadFlags {
    /// Whether Spot machines are allowed, if a flag says so.
    pub(crate) fn allows_spot(&self) -> Option<bool> {
        match (self.spot, self.no_spot) {
            (false, false) => None,
            (allowed, _) => Some(allowed),
        }
    }
}

/// `H100=2.8` as its two sides; the name and the number are checked against the tables later.
fn speed(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((gpu, factor)) if !gpu.is_empty() && !factor.is_empty() => {
            Ok((gpu.to_owned(), factor.to_owned()))
        }
        _ => Err("write it as GPU=FACTOR, such as H100=2.8".to_owned()),
    }
}
