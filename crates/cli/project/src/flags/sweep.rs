//! The flags of a sweep.

use clap::Args;
use cudock_base::Usd;

use crate::TimeSpan;

// This is not a doc comment, because clap would show it in the help of the verb.
//
// How a sweep runs. Each flag overrides the key with the same meaning in `cudock.toml`.
#[derive(Debug, Clone, Default, Args)]
pub struct SweepFlags {
    /// Run this many trials in total
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub trials: Option<u32>,

    /// Run this many trials at the same time
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub concurrent: Option<u32>,

    /// Spend at most this many dollars; needs --price
    #[arg(long, value_name = "USD", requires = "price")]
    pub dollars: Option<Usd>,

    /// Count with this many dollars per hour for this machine, divided among the trials that run at the same time
    #[arg(long, value_name = "USD")]
    pub price: Option<Usd>,

    /// Give each trial this many GPUs; 0 assigns none
    #[arg(long, value_name = "N")]
    pub gpus_per_trial: Option<u32>,

    /// Run trials as processes, even if there is an image
    #[arg(long)]
    pub no_container: bool,

    /// Kill a trial this long after it was asked to end [default: 10s]
    #[arg(long, value_name = "TIME")]
    pub grace: Option<TimeSpan>,

    /// Set the seed of the sampler
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
}
