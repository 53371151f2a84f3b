//! The time and cost of a placement.
//!
//! Thousands of offers differ in their region only, so this takes two steps: [`usage()`] computes once per size and service
//! how long everything takes and what is billed, and [`price()`] turns that into money for each offer, without allocating.

pub(crate) mod billing;
pub(crate) mod data;
pub(crate) mod pace;
mod pieces;
pub(crate) mod price;
pub(crate) mod region;
mod region_lookup;
pub(crate) mod serve;
pub(crate) mod spot;
pub(crate) mod start;
pub(crate) mod storage;
pub(crate) mod usage;

pub(crate) use price::{Parts, price};
pub(crate) use usage::{Unfit, Usage};

use self::pace::Pace;
use self::usage::RunSetup;
use crate::context::{Case, ReadMode};
use crate::workload::{Priority, Work};

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
