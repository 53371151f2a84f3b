//! The time and cost of a placement.
//!
//! Thousands of offers differ in their region only, so this takes two steps: [`usage`] computes once per size and service
//! how long everything takes and what is billed, and [`price`] turns that into money for each offer, without allocating.

pub(crate) mod billing;
pub(crate) mod data;
pub(crate) mod pace;
mod pieces;
pub(crate) mod price;
pub(crate) mod region;
pub(crate) mod serve;
pub(crate) mod spot;
pub(crate) mod start;
pub(crate) mod storage;

use std::time::Duration;

pub(crate) use price::{Parts, price};

use self::billing::{BilledTime, duration};
use self::pace::Pace;
use self::start::Startup;
use crate::context::{Case, ReadMode};
use crate::plan::placement::Times;
use crate::workload::{Priority, Spot, Work};

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

/// The resources that the workload uses on a size at a priority with a read mode.
pub(crate) fn usage(case: &Case, priority: Priority, mode: ReadMode) -> Result<Usage, Unfit> {
    let needs = case.workload().data.as_ref().map_or(0, |data| data.bytes);
    if mode == ReadMode::Stage && needs > case.machine.local_disk {
        return Err(Unfit::LocalDisk);
    }
    let pace = Pace::of(case, mode);
    if pace.speed().is_zero() {
        return Err(Unfit::ZeroSpeed);
    }
    let spot = case.workload().spot.as_ref().filter(|_| priority == Priority::Spot);
    let setup = RunSetup { case, mode, pace, spot, deadline: deadline(case) };
    let usage = match &case.workload().work {
        Work::Job { duration } => pieces::job(&setup, duration.as_millis())?,
        Work::Items { items, each, at_once } => pieces::items(&setup, *items, each.as_millis(), *at_once)?,
        Work::Sweep { trials, at_once, each } => pieces::sweep(&setup, *trials, *at_once, each.as_millis())?,
        Work::Serve { load, replica_rate, target_percent } => {
            serve::usage(&setup, load, *replica_rate, *target_percent)?
        }
    };
    within(&setup, &usage).map(|()| usage)
}

/// The inputs that all kinds of work share.
struct RunSetup<'s, 'q, 'a> {
    case: &'s Case<'q, 'a>,
    mode: ReadMode,
    pace: Pace,
    spot: Option<&'a Spot>,
    deadline: Option<u128>,
}

impl RunSetup<'_, '_, '_> {
    /// A time of the workload on this machine: useful work, and with evictions.
    fn scaled_time(&self, time: u128, startup: &Startup) -> Result<ScaledTime, Unfit> {
        let work = self.pace.stretch(time).ok_or(Unfit::ZeroSpeed)?;
        let Some(spot) = self.spot else { return Ok(ScaledTime { work, wall: work, billed: work }) };
        let together = self.case.workload().gpu.instances;
        let mean = spot::expected(work, spot, together, startup.total(), startup.billed);
        let mean = mean.ok_or(Unfit::Evictions)?;
        Ok(ScaledTime { work, wall: mean.wall, billed: mean.billed })
    }

    fn machines(&self, workers: u128) -> Result<u32, Unfit> {
        let machines = workers.saturating_mul(u128::from(self.case.workload().gpu.instances));
        let too_many = |most| Unfit::Instances { needs: machines, most };
        let counted = u32::try_from(machines).map_err(|_| too_many(u64::from(u32::MAX)))?;
        match self.case.terms.limits.instances {
            Some(most) if u64::from(counted) > most => Err(too_many(most)),
            _ => Ok(counted),
        }
    }

    fn bytes(&self) -> u64 {
        self.case.workload().data.as_ref().map_or(0, |data| data.bytes)
    }

    /// Bytes read in total when the data is streamed or copied a number of times.
    fn read(&self, streamed: u64, copied: u64) -> u128 {
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
struct ScaledTime {
    work: u128,
    wall: u128,
    billed: u128,
}

fn deadline(case: &Case) -> Option<u128> {
    let serves = case.context.serves();
    case.workload().constraints.deadline.filter(|_| !serves).map(|deadline| deadline.as_millis())
}

/// Checks the deadline, the job lifetime of the service, and the supported range, within which no sum saturates.
fn within(setup: &RunSetup, usage: &Usage) -> Result<(), Unfit> {
    const THOUSAND_YEARS: u128 = 1000 * 365 * 86_400_000;
    const QUETTABYTE: u128 = 1_000_000_000_000_000_000_000_000_000_000;
    let longest = usage.total.max(usage.startup.total());
    if longest > THOUSAND_YEARS || usage.read > QUETTABYTE {
        return Err(Unfit::OutOfRange);
    }
    if setup.case.context.serves() {
        return Ok(());
    }
    if setup.deadline.is_some_and(|deadline| usage.total > deadline) {
        return Err(Unfit::Deadline(usage.total));
    }
    match setup.case.terms.lifetime(setup.spot.is_some()) {
        Some(most) if usage.total > most => Err(Unfit::Lifetime { takes: usage.total, most }),
        _ => Ok(()),
    }
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
