//! Applies the flags of a sweep to its plan.

use std::time::Duration;

use cudock_base::{UsageError, Usd};
use cudock_project::SweepFlags;
use cudock_sweep::SweepPlan;

/// Default time between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(10);

/// Overrides what a new sweep does.
pub(crate) fn apply(flags: &SweepFlags, plan: &mut SweepPlan) {
    plan.limits.trials = flags.trials.or(plan.limits.trials);
    plan.limits.dollars = flags.dollars.or(plan.limits.dollars);
    plan.seed = flags.seed.unwrap_or(plan.seed);
    apply_resources(flags, plan);
}

/// Overrides where it runs, which may be another way after each interruption.
pub(crate) fn apply_resources(flags: &SweepFlags, plan: &mut SweepPlan) {
    plan.limits.concurrent = flags.concurrent.or(plan.limits.concurrent);
    if let Some(count) = flags.gpus_per_trial {
        assign_gpus(plan, count);
    }
    if flags.no_container {
        plan.image = None;
    }
}

/// Refuses what cannot be changed about a sweep that exists.
pub(crate) fn check_resumed(flags: &SweepFlags, plan: &SweepPlan) -> Result<(), UsageError> {
    let changed = [
        ("--dollars", flags.dollars.is_some() && flags.dollars != plan.limits.dollars),
        ("--seed", flags.seed.is_some_and(|seed| seed != plan.seed)),
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
pub(crate) fn slot_price(flags: &SweepFlags, slots: u32) -> Option<Usd> {
    flags.price.map(|price| price.share(1, u128::from(slots.max(1))))
}

pub(crate) fn grace(flags: &SweepFlags) -> Duration {
    flags.grace.map_or(GRACE, |grace| grace.0)
}

/// Sets the GPUs of each trial. Without any, there are none to share.
pub(crate) fn assign_gpus(plan: &mut SweepPlan, count: u32) {
    plan.gpus_per_trial = count;
    if count == 0 {
        (plan.trials_per_gpu, plan.gpu_memory) = (1, None);
    }
}
