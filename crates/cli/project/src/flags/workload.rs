//! The flags that describe a workload.

use std::path::PathBuf;

use clap::{Args, Command, FromArgMatches as _};
use cudock_facts::version::Date;

use cudock_facts::services::Management;

use super::values::choice;
use crate::{ByteSize, TimeSpan};

const MANAGEMENT: &[(&str, &str, Management)] = &[
    ("own", "The user manages the machines", Management::Own),
    ("managed", "The service creates, repairs and removes the machines", Management::Managed),
    ("serverless", "There are no visible machines", Management::Serverless),
];

const WORK: &str = "Work (overrides the keys of cudock.toml)";
const NEEDS: &str = "Needs";
const DATA: &str = "Data";
const CONSTRAINTS: &str = "Constraints";

// This is not a doc comment, because clap would show it in the help of every verb with these flags.
//
// The flags of every verb that takes a workload. Each overrides the key with the same meaning in `cudock.toml`; flags of
// another kind of work override all keys about the work.
#[derive(Debug, Clone, Default, Args)]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag with its own help")]
pub struct WorkloadFlags {
    /// Set how long the job computes when the GPU never waits: 40m, 5h30m, 7d
    #[arg(long, value_name = "TIME", help_heading = WORK, allow_hyphen_values = true)]
    pub duration: Option<TimeSpan>,

    /// Set the number of independent items
    #[arg(long, value_name = "N", help_heading = WORK)]
    pub items: Option<u64>,

    /// Set how long one item takes
    #[arg(long, value_name = "TIME", help_heading = WORK, allow_hyphen_values = true)]
    pub item_time: Option<TimeSpan>,

    /// Set the number of trials of a sweep
    #[arg(long, value_name = "N", help_heading = WORK)]
    pub trials: Option<u32>,

    /// Run this many items or trials at a time
    #[arg(long, value_name = "N", help_heading = WORK)]
    pub at_once: Option<u32>,

    /// Set how long one trial takes
    #[arg(long, value_name = "TIME", help_heading = WORK, allow_hyphen_values = true)]
    pub trial_time: Option<TimeSpan>,

    /// Serve this many requests per second: 5, 4/h, 5,0@08:00-20:00 (day, night, from, to; UTC), or 24 numbers
    #[arg(long, value_name = "RATE", help_heading = WORK, allow_hyphen_values = true)]
    pub rate: Option<String>,

    /// Serve this many requests per second at night, and --rate by day
    #[arg(long, value_name = "RATE", help_heading = WORK, allow_hyphen_values = true)]
    pub rate_night: Option<String>,

    /// Set the requests per second that one instance answers at full load
    #[arg(long, value_name = "RATE", help_heading = WORK, conflicts_with = "bench", allow_hyphen_values = true)]
    pub replica_rate: Option<String>,

    /// Read the rate of one instance from a report of `cudock bench --format json`
    #[arg(long, value_name = "FILE", help_heading = WORK)]
    pub bench: Option<PathBuf>,

    /// Name the GPU that times and rates were measured on
    #[arg(long, value_name = "GPU", help_heading = WORK)]
    pub measured_on: Option<String>,

    /// Set the measured speed of another GPU, relative to --measured-on: H100=2.8 (repeatable)
    #[arg(long, value_name = "GPU=FACTOR", help_heading = WORK, value_parser = speed)]
    pub speed: Vec<(String, String)>,

    /// Begin on this day [default: today]
    #[arg(long, value_name = "DATE", help_heading = WORK)]
    pub begins: Option<Date>,

    /// Require this much memory on each GPU: 40GB
    #[arg(long, value_name = "SIZE", help_heading = NEEDS, allow_hyphen_values = true)]
    pub gpu_memory: Option<ByteSize>,

    /// Require this many GPUs per machine
    #[arg(long, value_name = "N", help_heading = NEEDS)]
    pub gpus: Option<u32>,

    /// Use this many machines that work together
    #[arg(long, value_name = "N", help_heading = NEEDS)]
    pub nodes: Option<u32>,

    /// Allow only these GPUs
    #[arg(long, value_name = "GPU,GPU", value_delimiter = ',', help_heading = NEEDS)]
    pub gpu: Vec<String>,

    /// Require a compute capability: 7.5 (or higher), or a range such as 7.0-7.0
    #[arg(long, value_name = "X.Y[-X.Y]", help_heading = NEEDS)]
    pub capability: Option<String>,

    /// Require GPUs that are connected by NVLink
    #[arg(long, help_heading = NEEDS)]
    pub nvlink: bool,

    /// Require machines that are connected by InfiniBand
    #[arg(long, help_heading = NEEDS)]
    pub infiniband: bool,

    /// Require this many virtual processors
    #[arg(long, value_name = "N", help_heading = NEEDS)]
    pub vcpu: Option<u32>,

    /// Require this much main memory
    #[arg(long, value_name = "SIZE", help_heading = NEEDS)]
    pub ram: Option<ByteSize>,

    /// Inspect this image for its size and the sizes it runs on
    #[arg(long, value_name = "IMAGE", help_heading = NEEDS)]
    pub image: Option<String>,

    /// Inspect only what is cached of the image, without fetching
    #[arg(long, help_heading = NEEDS)]
    pub offline: bool,

    /// Estimate the GPU memory from this model
    #[arg(long, value_name = "FILE", help_heading = NEEDS)]
    pub model: Option<PathBuf>,

    /// Read this much data: 2TB
    #[arg(long, value_name = "SIZE", help_heading = DATA)]
    pub data: Option<ByteSize>,

    /// Read the data from this storage (`cudock facts storage` lists them)
    #[arg(long, value_name = "KIND", help_heading = DATA)]
    pub storage: Option<String>,

    /// Set the bytes per second that one GPU reads when it never waits
    #[arg(long, value_name = "SIZE", help_heading = DATA)]
    pub data_rate: Option<ByteSize>,

    /// Read the data from this region, not from that of the placement
    #[arg(long, value_name = "REGION", help_heading = DATA)]
    pub data_region: Option<String>,

    /// Limit the time from order to end
    #[arg(long, value_name = "TIME", help_heading = CONSTRAINTS, allow_hyphen_values = true)]
    pub deadline: Option<TimeSpan>,

    /// Limit the cost in dollars: of the whole job, or per month of serving
    #[arg(long, value_name = "USD", help_heading = CONSTRAINTS, allow_hyphen_values = true)]
    pub budget: Option<String>,

    /// Allow Spot machines, which Azure may evict
    #[arg(long, help_heading = CONSTRAINTS, conflicts_with = "no_spot")]
    pub spot: bool,

    /// Exclude Spot machines
    #[arg(long, help_heading = CONSTRAINTS)]
    pub no_spot: bool,

    /// Expect this many evictions per hour and Spot machine
    #[arg(long, value_name = "N", help_heading = CONSTRAINTS, allow_hyphen_values = true)]
    pub evictions: Option<String>,

    /// Write checkpoints this often, so that evictions lose less work
    #[arg(long, value_name = "TIME", help_heading = CONSTRAINTS, allow_hyphen_values = true)]
    pub checkpoint_every: Option<TimeSpan>,

    /// Allow only these regions
    #[arg(long, value_name = "REGION,REGION", value_delimiter = ',', help_heading = CONSTRAINTS)]
    pub region: Vec<String>,

    /// Allow only these services: vm, aks, batch, ml, container-apps, ml-serverless, …
    #[arg(long, value_name = "SERVICE,SERVICE", value_delimiter = ',', help_heading = CONSTRAINTS)]
    pub service: Vec<String>,

    /// Allow only these sizes
    #[arg(long, alias = "sku", value_name = "SIZE,SIZE", value_delimiter = ',', help_heading = CONSTRAINTS)]
    pub size: Vec<String>,

    /// Require at least this much management by the service
    #[arg(long, value_parser = choice(MANAGEMENT), help_heading = CONSTRAINTS)]
    pub management: Option<Management>,

    /// Keep an instance up, so that no request waits for a cold start
    #[arg(long, help_heading = CONSTRAINTS)]
    pub no_cold_starts: bool,
}

impl WorkloadFlags {
    /// Reads them as they are typed.
    pub fn parse<'a>(words: impl Iterator<Item = &'a str>) -> Result<Self, clap::Error> {
        let command = Self::augment_args(Command::new("cudock").no_binary_name(true));
        Self::from_arg_matches(&command.try_get_matches_from(words)?)
    }

    /// Whether flags allow or exclude Spot machines.
    pub fn allows_spot(&self) -> Option<bool> {
        match (self.spot, self.no_spot) {
            (false, false) => None,
            (allowed, _) => Some(allowed),
        }
    }
}

/// Splits `H100=2.8`; the name and the number are checked later.
fn speed(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((gpu, factor)) if !gpu.is_empty() && !factor.is_empty() => {
            Ok((gpu.to_owned(), factor.to_owned()))
        }
        _ => Err("expected GPU=FACTOR, such as H100=2.8".to_owned()),
    }
}
