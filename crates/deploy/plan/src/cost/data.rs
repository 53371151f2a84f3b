//! The rate at which data arrives and is needed.

use cudock_base::mul_div_ceil;

use super::storage::DataStore;
use crate::context::Case;
use crate::ratio::Ratio;
use crate::workload::Work;

/// The speed that the data allows: bytes per second that arrive, relative to those that the work needs.
pub(super) fn bound(case: &Case) -> Option<Ratio> {
    let demand = given(case)?;
    Some(Ratio::new(supply(case)?, demand))
}

/// Bytes per second that an instance reads at full speed: what is given, or what reads all of the data in the time of the
/// work, if that is more. None if the data never limits the work.
pub(crate) fn demand(case: &Case) -> Option<u64> {
    let average = piece(case).map(|piece| mul_div_ceil(piece.bytes, 1000, piece.time.max(1)));
    let average = average.map(|rate| u64::try_from(rate).unwrap_or(u64::MAX));
    given(case).max(average).filter(|demand| *demand > 0)
}

/// The read rate of an instance at full speed, if that is given.
fn given(case: &Case) -> Option<u64> {
    let rate = case.workload().data.as_ref()?.rate_per_gpu?;
    Some(rate.saturating_mul(u64::from(case.workload().gpu.per_instance))).filter(|demand| *demand > 0)
}

/// The part of the work that an instance does at a time: the job, an item or a trial.
#[derive(Debug, Clone, Copy)]
pub(super) struct Piece {
    /// Milliseconds on the GPU that was measured.
    pub(super) time: u128,
    /// Bytes of the data that it reads. Instances that work together share it.
    bytes: u128,
}

/// A piece of the work, and its part of the data. A service has no end, so nothing is known of it.
pub(super) fn piece(case: &Case) -> Option<Piece> {
    let workload = case.workload();
    let (time, pieces) = match &workload.work {
        Work::Job { duration } => (duration, 1),
        Work::Items { items, each, .. } => (each, *items),
        Work::Sweep { each, .. } => (each, 1),
        Work::Serve { .. } => return None,
    };
    let bytes = u128::from(workload.data.as_ref()?.bytes).saturating_mul(u128::from(case.context.passes()));
    let readers = u128::from(pieces).saturating_mul(u128::from(workload.gpu.instances));
    Some(Piece { time: time.as_millis(), bytes: bytes.div_ceil(readers.max(1)) })
}

/// How long reading the data of a piece takes.
pub(super) fn reading(case: &Case) -> u128 {
    match (piece(case), supply(case)) {
        (Some(piece), Some(supply)) => mul_div_ceil(piece.bytes, 1000, u128::from(supply)),
        _ => 0,
    }
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
