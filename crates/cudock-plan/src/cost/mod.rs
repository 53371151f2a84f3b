//! What a placement takes and costs.
//!
//! In two steps, because thousands of offers differ in their region alone: [`usage`] says once for a size on a service
//! how long everything takes and what is counted, [`price`] turns that into money for each offer, without allocating.

pub(crate) mod billing;
pub(crate) mod data;
mod items;
mod job;
pub(crate) mod pace;
pub(crate) mod places;
pub(crate) mod price;
mod serve;
pub(crate) mod spot;
pub(crate) mod start;
pub(crate) mod storage;
mod sweep;

use std::time::Duration;

pub(crate) use price::{Parts, price};

use self::billing::{Bill, duration};
use self::pace::Pace;
use self::start::Startup;
use crate::placement::Times;
use crate::question::{Case, Way};
use crate::workload::{Priority, Spot, Work};

/// Milliseconds of a month of 730 hours, which is Azure's.
pub(crate) const MONTH: u128 = 730 * 3_600_000;

/// What a workload uses on a size of a service, whatever the region. Times are milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) way: Way,
    pub(crate) pace: Pace,
    pub(crate) startup: Startup,
    /// Machines at once, at the peak.
    pub(crate) machines: u32,
    /// Time of machines that is paid for.
    pub(crate) bill: Bill,
    /// Time of disks that machines boot from.
    pub(crate) disks: u128,
    /// How long the whole lasts: a month for serving.
    pub(crate) lasts: u128,
    /// Useful work on the longest way, what evictions add to it, and the wait of who ordered it or asks.
    pub(crate) work: u128,
    pub(crate) lost: u128,
    pub(crate) total: u128,
    /// Bytes read from where the data lies.
    pub(crate) read: u128,
    /// Starts in a month, for serving, in thousandths.
    pub(crate) starts: u128,
    /// Requests a month, for serving, in thousandths.
    pub(crate) requests: u128,
}

/// Why a size that meets all needs is not taken at a priority after all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unfit {
    /// At this speed it never ends.
    Never,
    /// It takes longer, or reads more, than anybody counts.
    Beyond,
    /// Evictions make it take more than ten times its length.
    Evictions,
    /// Too late; how long it takes.
    Deadline(u128),
    /// The data does not fit on the machine's own disk.
    Space,
    /// It lives longer than the service lets it.
    Lifetime { takes: u128, most: u128 },
    /// It needs more instances than that.
    Instances { needs: u128, most: u64 },
}

/// How the workload runs on a size at a priority, its data being read one way.
pub(crate) fn usage(case: &Case, priority: Priority, way: Way) -> Result<Usage, Unfit> {
    let needs = case.workload().data.as_ref().map_or(0, |data| data.bytes);
    if way == Way::Stage && needs > case.machine.local_disk {
        return Err(Unfit::Space);
    }
    let pace = Pace::of(case, way);
    if pace.speed().is_zero() {
        return Err(Unfit::Never);
    }
    let spot = case.workload().spot.as_ref().filter(|_| priority == Priority::Spot);
    let setting = Setting { case, way, pace, spot, deadline: deadline(case) };
    let usage = match &case.workload().work {
        Work::Job { duration } => job::usage(&setting, duration.as_millis())?,
        Work::Items { items, each, at_once } => items::usage(&setting, *items, each.as_millis(), *at_once)?,
        Work::Sweep { trials, at_once, each } => sweep::usage(&setting, *trials, *at_once, each.as_millis())?,
        Work::Serve { load, replica_rate, target_percent } => {
            serve::usage(&setting, load, *replica_rate, *target_percent)?
        }
    };
    within(&setting, &usage).map(|()| usage)
}

/// What the ways of working share.
struct Setting<'s, 'q, 'a> {
    case: &'s Case<'q, 'a>,
    way: Way,
    pace: Pace,
    spot: Option<&'a Spot>,
    deadline: Option<u128>,
}

impl Setting<'_, '_, '_> {
    /// A time of the workload as it is here: useful work, and what evictions make of it.
    fn stretched(&self, time: u128, startup: &Startup) -> Result<Stretched, Unfit> {
        let work = self.pace.stretch(time).ok_or(Unfit::Never)?;
        let Some(spot) = self.spot else { return Ok(Stretched { work, wall: work, billed: work }) };
        let together = self.case.workload().gpu.instances;
        let mean = spot::expected(work, spot, together, startup.total(), startup.billed);
        let mean = mean.ok_or(Unfit::Evictions)?;
        Ok(Stretched { work, wall: mean.wall, billed: mean.billed })
    }

    /// Machines of so many workers; none if nobody can count them.
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

    /// Bytes read in all when the whole is streamed so often, or copied so often.
    fn read(&self, streamed: u64, copied: u64) -> u128 {
        let bytes = u128::from(self.bytes());
        match self.way {
            Way::Stage => bytes.saturating_mul(u128::from(copied)),
            Way::Stream => {
                let times = u128::from(streamed).saturating_mul(u128::from(self.case.question.passes()));
                bytes.saturating_mul(times)
            }
        }
    }
}

/// A time of the workload on a machine.
#[derive(Debug, Clone, Copy)]
struct Stretched {
    work: u128,
    wall: u128,
    billed: u128,
}

fn deadline(case: &Case) -> Option<u128> {
    let serves = case.question.serves();
    case.workload().wishes.deadline.filter(|_| !serves).map(|deadline| deadline.as_millis())
}

/// The deadline and the lifetime that the service gives a job; and what can be counted at all, so that no sum is the
/// largest number there is instead of the right one.
fn within(setting: &Setting, usage: &Usage) -> Result<(), Unfit> {
    const THOUSAND_YEARS: u128 = 1000 * 365 * 86_400_000;
    const QUETTABYTE: u128 = 1_000_000_000_000_000_000_000_000_000_000;
    let longest = usage.total.max(usage.startup.total());
    if longest > THOUSAND_YEARS || usage.read > QUETTABYTE {
        return Err(Unfit::Beyond);
    }
    if setting.case.question.serves() {
        return Ok(());
    }
    if setting.deadline.is_some_and(|deadline| usage.total > deadline) {
        return Err(Unfit::Deadline(usage.total));
    }
    match setting.case.terms.lifetime(setting.spot.is_some()) {
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
