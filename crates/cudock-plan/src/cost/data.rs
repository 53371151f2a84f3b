//! The rate at which data arrives and is needed.

use super::storage::DataStore;
use crate::context::Case;
use crate::ratio::Ratio;

/// The speed that the data allows: bytes per second that arrive, relative to those that the work reads.
pub(super) fn bound(case: &Case) -> Option<Ratio> {
    let demand = demand(case)?;
    Some(Ratio::new(supply(case)?, demand))
}

/// Bytes per second that an instance reads at full speed; none if the data never limits the work.
pub(crate) fn demand(case: &Case) -> Option<u64> {
    let rate = case.workload().data.as_ref()?.rate_per_gpu?;
    Some(rate.saturating_mul(u64::from(case.workload().gpu.per_instance))).filter(|demand| *demand > 0)
}

/// Bytes per second that reach an instance.
pub(crate) fn supply(case: &Case) -> Option<u64> {
    rate(case, case.context.store.as_ref()?)
}

/// Bytes per second of a storage; if unknown, the rate of image pulls.
pub(super) fn rate(case: &Case, store: &DataStore) -> Option<u64> {
    let pull = || case.terms.start.map(|start| u64::from(start.pull_mb_per_s) * 1_000_000);
    store.supply(case.machine, case.workload().gpu.instances).or_else(pull)
}
