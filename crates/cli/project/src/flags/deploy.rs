//! The flags of a deployment.

use clap::Args;
use cudock_base::Usd;

use crate::{ByteSize, TimeSpan};

const AZURE: &str = "Azure (with --on)";

// This is not a doc comment, because clap would show it in the help of every verb with these flags.
//
// Where and how a workload is deployed. Each flag overrides the key with the same meaning in `cudock.toml`.
#[derive(Debug, Clone, Default, Args)]
pub struct DeployFlags {
    /// Deploy to this service of Azure, vm, batch, ml, container-apps or aci, or to NAME under `[targets]` in cudock.toml
    #[arg(long, value_name = "SERVICE|NAME", help_heading = AZURE)]
    pub on: Option<String>,

    /// Print all requests, and send none
    #[arg(long, help_heading = AZURE, requires = "on")]
    pub dry_run: bool,

    /// Let Azure delete it after this time, whatever happens here [default: 2h, or twice the planned time]
    #[arg(long, value_name = "TIME", help_heading = AZURE, requires = "on")]
    pub ttl: Option<TimeSpan>,

    /// End it from the inside when its GPUs were idle for this time
    #[arg(long, value_name = "TIME", help_heading = AZURE, requires = "on")]
    pub idle: Option<TimeSpan>,

    /// Delete it before it costs more than this many dollars
    #[arg(long, value_name = "USD", help_heading = AZURE, requires = "on")]
    pub budget: Option<Usd>,

    /// Use only these regions
    #[arg(long, value_name = "REGION,REGION", value_delimiter = ',', help_heading = AZURE, requires = "on")]
    pub region: Vec<String>,

    /// Use only these sizes
    #[arg(long, value_name = "SIZE,SIZE", value_delimiter = ',', help_heading = AZURE, requires = "on")]
    pub size: Vec<String>,

    /// Allow Spot machines, which Azure may evict
    #[arg(long, help_heading = AZURE, requires = "on")]
    pub spot: bool,

    /// Try up to N placements of `cudock plan`: where capacity or quota is missing, and after an eviction
    #[arg(long = "try", value_name = "N", default_value_t = 1, help_heading = AZURE, requires = "on")]
    pub placements: usize,

    /// Run this image
    #[arg(long, value_name = "IMAGE", help_heading = AZURE, requires = "on")]
    pub image: Option<String>,

    /// Set a variable, or pass on one of ours as a secret; repeatable
    #[arg(long, short, value_name = "NAME[=VALUE]", help_heading = AZURE, requires = "on")]
    pub env: Vec<String>,

    /// Accept requests from the internet
    #[arg(long, help_heading = AZURE, requires = "on")]
    pub public: bool,

    /// Wait until this path of a service answers
    #[arg(long, value_name = "PATH", help_heading = AZURE, requires = "on")]
    pub ready_path: Option<String>,

    /// Keep this directory of the container over evictions, in the blob container that `CUDOCK_CHECKPOINTS` names
    #[arg(long, value_name = "DIR", help_heading = AZURE, requires = "on")]
    pub checkpoints: Option<String>,

    /// Upload files of the working directory that match, and the logs, to the blob container that `CUDOCK_OUTPUTS` names, when
    /// a task of batch ends
    #[arg(long, value_name = "PATTERN", help_heading = AZURE, requires = "on")]
    pub outputs: Option<String>,

    /// Use this many processors, where the service sells them singly
    #[arg(long, value_name = "N", help_heading = AZURE, requires = "on")]
    pub cpus: Option<f64>,

    /// Use this much memory, where the service sells it by the gigabyte
    #[arg(long, value_name = "SIZE", help_heading = AZURE, requires = "on")]
    pub memory: Option<ByteSize>,

    /// Count with this many dollars per hour, where the tables have no price
    #[arg(long, value_name = "USD", help_heading = AZURE, requires = "on")]
    pub price: Option<Usd>,

    /// Pull the image with this user-assigned identity
    #[arg(long, value_name = "RESOURCE-ID", help_heading = AZURE, requires = "on")]
    pub pull_identity: Option<String>,

    /// Use this Machine Learning workspace
    #[arg(long, value_name = "GROUP/NAME", help_heading = AZURE, requires = "on")]
    pub workspace: Option<String>,

    /// Use this Batch account
    #[arg(long, value_name = "GROUP/NAME", help_heading = AZURE, requires = "on")]
    pub batch_account: Option<String>,

    /// Use this Container Apps environment
    #[arg(long, value_name = "GROUP/NAME", help_heading = AZURE, requires = "on")]
    pub environment: Option<String>,

    /// Let this identity delete it, where you may not assign roles
    #[arg(long, value_name = "RESOURCE-ID", help_heading = AZURE, requires = "on")]
    pub reaper_identity: Option<String>,

    /// The cluster of a named target.
    #[arg(skip)]
    pub cluster: Option<String>,

    /// The pool of a named target.
    #[arg(skip)]
    pub pool: Option<String>,
}
