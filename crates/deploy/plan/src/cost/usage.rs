//! What a workload uses on a size of a service, in any region.

use std::time::Duration;

use crate::context::{Case, ReadMode};
use crate::cost::billing::{BilledTime, duration};
use crate::cost::pace::Pace;
use crate::cost::spot;
use crate::cost::start::Startup;
use crate::plan::placement::Times;
use crate::workload::Spot;

/// Milliseconds of a month of 730 hours, as Azure counts it.
pub(crate) const MONTH: u128 = 730 * 3_600_000;

/// The resources that a workload uses on a size of a service, in any region. Times are
/// milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) mode: ReadMode,
    pub(crate) pace: Pace,
    pub(crate) startup: Startup,
    pub(crate) machines: u32,
    pub(crate) bill: BilledTime,
    pub(crate) disks: u128,
    /// How long everything lasts: a month for serving.
    pub(crate) lasts: u128,
    /// Useful work on the critical path, what evictions add to it, and the time from order to end (for serving, to the first
    /// response of a cold start).
    pub(crate) work: u128,
    pub(crate) lost: u128,
    pub(crate) total: u128,
    /// Bytes read from the storage of the data.
    pub(crate) read: u128,
    /// Starts in a month, for serving, in millionths.
    pub(crate) starts: u128,
    /// Requests a month, for serving, in millionths.
    pub(crate) requests: u128,
}

/// Why a size that satisfies all rules does not fit at a priority.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unfit {
    ZeroSpeed,
    /// It exceeds the range of supported times or bytes.
    OutOfRange,
    /// Evictions make it take more than ten times its length.
    Evictions,
    /// It misses the deadline; how long it takes.
    Deadline(u128),
    LocalDisk,
    Lifetime {
        takes: u128,
        most: u128,
    },
    Instances {
        needs: u128,
        most: u64,
    },
}

impl Usage {
    pub(crate) fn times(&self) -> Times {
        Times {
            start: duration(self.startup.total()),
            work: duration(self.work),
            lost: duration(self.lost),
            total: self.time(),
        }
    }

    pub(crate) fn time(&self) -> Duration {
        duration(self.total)
    }
}

/// The inputs that all kinds of work share.
pub(super) struct RunSetup<'s, 'q, 'a> {
    pub(super) case: &'s Case<'q, 'a>,
    pub(super) mode: ReadMode,
    pub(super) pace: Pace,
    pub(super) spot: Option<&'a Spot>,
    pub(super) deadline: Option<u128>,
}

impl RunSetup<'_, '_, '_> {
    /// A time of the workload on this machine: useful work, and with evictions.
    pub(super) fn scaled_time(&self, time: u128, startup: &Startup) -> Result<ScaledTime, Unfit> {
        let work = self.pace.stretch(time).ok_or(Unfit::ZeroSpeed)?;
        let Some(spot) = self.spot else { return Ok(ScaledTime { work, wall: work, billed: work }) };
        let together = self.case.workload().gpu.instances;
        let mean = spot::expected(work, spot, together, startup.total(), startup.billed);
        let mean = mean.ok_or(Unfit::Evictions)?;
        Ok(ScaledTime { work, wall: mean.wall, billed: mean.billed })
    }

    pub(super) fn machines(&self, workers: u128) -> Result<u32, Unfit> {
        let machines = workers.saturating_mul(u128::from(self.case.workload().gpu.instances));
        let too_many = |most| Unfit::Instances { needs: machines, most };
        let counted = u32::try_from(machines).map_err(|_| too_many(u64::from(u32::MAX)))?;
        match self.case.terms.limits.instances {
            Some(most) if u64::from(counted) > most => Err(too_many(most)),
            _ => Ok(counted),
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.case.workload().data.as_ref().map_or(0, |data| data.bytes)
    }

    /// Bytes read in total when the data is streamed or copied a number of times.
    pub(super) fn read(&self, streamed: u64, copied: u64) -> u128 {
        let bytes = u128::from(self.bytes());
        match self.mode {
            ReadMode::Stage => bytes.saturating_mul(u128::from(copied)),
            ReadMode::Stream => {
                let times = u128::from(streamed).saturating_mul(u128::from(self.case.context.passes()));
                bytes.saturating_mul(times)
            }
        }
    }
}

/// A time of the workload on a machine.
#[derive(Debug, Clone, Copy)]
pub(super) struct ScaledTime {
    pub(super) work: u128,
    pub(super) wall: u128,
    pub(super) billed: u128,
}
