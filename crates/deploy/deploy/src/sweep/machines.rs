//! Sizes as a parameter of a sweep: each has machines of its own.

use cudock_base::{UsageError, Usd};
use cudock_facts::Facts;
use cudock_facts::lookup::NameMatch;
use cudock_sweep::SweepPlan;

use super::trial_jobs::TrialJobs;
use crate::create::request::DeployRequest;
use crate::create::run::PlannedDeployment;

/// The machines of one size.
#[derive(Debug, Clone)]
pub struct SweepMachine {
    pub planned: PlannedDeployment,
    /// A note for the user about the way it runs.
    pub note: Option<String>,
    /// The parameter's value for the size.
    pub(super) size: Option<String>,
    /// The service to which trials are added while it runs; none if the service runs the sweep.
    pub(super) jobs: Option<TrialJobs>,
}

impl SweepMachine {
    /// Trials at the same time.
    pub(super) fn slots(&self) -> u32 {
        self.planned.spec.instances.max(1)
    }

    /// The price of one slot for an hour.
    pub(super) fn slot_price(&self) -> Usd {
        self.planned.spec.price_per_hour.share(1, u128::from(self.slots()))
    }
}

/// The sizes that trials choose from; a single `None` if the cheapest is taken.
pub(super) fn sizes(
    facts: &Facts,
    request: &DeployRequest<'_>,
    plan: &SweepPlan,
) -> Result<Vec<Option<String>>, UsageError> {
    let Some(parameter) = &plan.machine else { return Ok(vec![None]) };
    if !request.flags.size.is_empty() {
        let message = format!("--size and the parameter `{parameter}` both choose the size of trials");
        return Err(UsageError::new(message).hint("leave out --size"));
    }
    for size in plan.sizes() {
        let (problem, near) = match facts.sizes().find(size) {
            NameMatch::One(_) => continue,
            NameMatch::Several(_) => ("is ambiguous", None),
            NameMatch::NotFound(near) => ("is not a size of Azure", cudock_base::did_you_mean(&near)),
        };
        let error = UsageError::new(format!("parameter `{parameter}`: `{size}` {problem}"));
        return Err(error.hint(near.unwrap_or_else(|| "list the sizes: cudock facts size".to_owned())));
    }
    Ok(plan.sizes().into_iter().map(|size| Some(size.to_owned())).collect())
}

/// Refuses a size that has two names.
pub(super) fn check_distinct(machines: &[SweepMachine], new: &SweepMachine) -> Result<(), UsageError> {
    let same = machines.iter().find(|machine| machine.planned.spec.size == new.planned.spec.size);
    match (same.and_then(|machine| machine.size.as_ref()), &new.size) {
        (Some(one), Some(other)) => {
            Err(UsageError::new(format!("`{one}` and `{other}` are the same size: remove one")))
        }
        _ => Ok(()),
    }
}

/// The name of the deployment of one size: `digits-nc4as-t4-v3`.
pub(super) fn name(sweep: &str, size: &str) -> String {
    let size = size.to_ascii_lowercase().replace('_', "-");
    format!("{sweep}-{}", size.strip_prefix("standard-").unwrap_or(&size))
}
