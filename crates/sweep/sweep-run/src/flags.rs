//! The flags of `cudock sweep`.

use std::time::Duration;

use clap::Args;
use cudock_base::{UsageError, Usd};
use cudock_project::TimeSpan;
use cudock_sweep::config::SweepPlan;

/// Time from the polite signal to the other one, if the user does not say.
const GRACE: Duration = Duration::from_secs(10);

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

impl SweepFlags {
    /// Overrides what a new sweep does.
    pub(crate) fn apply(&self, plan: &mut SweepPlan) {
        plan.limits.trials = self.trials.or(plan.limits.trials);
        plan.limits.dollars = self.dollars.or(plan.limits.dollars);
        plan.seed = self.seed.unwrap_or(plan.seed);
        self.apply_resources(plan);
    }

    /// Overrides where it runs, which may be another way after each interruption.
    pub(crate) fn apply_resources(&self, plan: &mut SweepPlan) {
        plan.limits.concurrent = self.concurrent.or(plan.limits.concurrent);
        if let Some(count) = self.gpus_per_trial {
            assign_gpus(plan, count);
        }
        if self.no_container {
            plan.image = None;
        }
    }

    /// Refuses what cannot be changed about a sweep that exists.
    pub(crate) fn check_resumed(&self, plan: &SweepPlan) -> Result<(), UsageError> {
        let changed = [
            ("--dollars", self.dollars.is_some() && self.dollars != plan.limits.dollars),
            ("--seed", self.seed.is_some_and(|seed| seed != plan.seed)),
        ];
        match changed.iter().find(|(_, is_changed)| *is_changed) {
            Some((flag, _)) => {
                Err(UsageError::new(format!("{flag} cannot be changed: the sweep `{}` has begun", plan.name))
                    .hint("leave the flag out to resume it, or start a new one with --name NAME"))
            }
            None => Ok(()),
        }
    }

    /// The price of one slot for an hour.
    pub(crate) fn slot_price(&self, slots: u32) -> Option<Usd> {
        self.price.map(|price| price.share(1, u128::from(slots.max(1))))
    }

    pub(crate) fn grace(&self) -> Duration {
        self.grace.map_or(GRACE, |grace| grace.0)
    }
}

/// Sets the GPUs of each trial. Without any, there are none to share.
pub(crate) fn assign_gpus(plan: &mut SweepPlan, count: u32) {
    plan.gpus_per_trial = count;
    if count == 0 {
        (plan.trials_per_gpu, plan.gpu_memory) = (1, None);
    }
}
