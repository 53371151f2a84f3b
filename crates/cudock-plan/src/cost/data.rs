//! Whether the data keeps the GPU busy.

use super::storage::Store;
use crate::question::Case;
use crate::ratio::Ratio;

/// The speed that the data allows: what arrives a second against what the work uses up a second.
pub(super) fn bound(case: &Case) -> Option<Ratio> {
    let demand = demand(case)?;
    Some(Ratio::new(supply(case)?, demand))
}

/// Bytes a second that an instance uses up at the speed the times hold for; none if the data bounds nothing.
pub(crate) fn demand(case: &Case) -> Option<u64> {
    let rate = case.workload().data.as_ref()?.rate_per_gpu?;
    Some(rate.saturating_mul(u64::from(case.workload().gpu.per_instance))).filter(|demand| *demand > 0)
}

/// Bytes a second that reach an instance.
pub(crate) fn supply(case: &Case) -> Option<u64> {
    rate(case, case.question.store.as_ref()?)
}

/// Bytes a second of a storage; where nobody says, those of the image's pull, the one way in whose rate is known.
pub(super) fn rate(case: &Case, store: &Store) -> Option<u64> {
    let pull = || case.terms.start.map(|start| u64::from(start.pull_mb_per_s) * 1_000_000);
    store.supply(case.machine, case.workload().gpu.instances).or_else(pull)
}
