//! Jobs, items and trials: pieces of work, spread over workers.
//!
//! A worker is the group of machines that work together on one piece. It is released when no piece is left for it.

use super::billing::{BilledTime, Uptime};
use super::start::Startup;
use super::usage::{RunSetup, ScaledTime, Unfit, Usage};

/// One job on instances that work together.
pub(super) fn job(setup: &RunSetup, length: u128) -> Result<Usage, Unfit> {
    Spread { pieces: 1, each: length, workers: 1, copies: Copies::All }.usage(setup)
}

/// Trials of a sweep, each of which reads all of the data.
pub(super) fn sweep(setup: &RunSetup, trials: u32, at_once: u32, each: u128) -> Result<Usage, Unfit> {
    let workers = u64::from(at_once.min(trials));
    Spread { pieces: u64::from(trials), each, workers, copies: Copies::All }.usage(setup)
}

pub(super) fn items(setup: &RunSetup, items: u64, each: u128, at_once: Option<u32>) -> Result<Usage, Unfit> {
    let most = at_once.map_or(items, |at_once| items.min(u64::from(at_once)));
    let workers = match (setup.deadline, at_once) {
        (Some(deadline), _) => fewest(setup, items, each, most, deadline)?,
        (None, Some(_)) => most,
        // Each worker costs a start: one is cheapest.
        (None, None) => most.min(1),
    };
    Spread { pieces: items, each, workers, copies: Copies::Share }.usage(setup)
}

/// The fewest workers that meet the deadline, by bisection: more workers never take longer.
fn fewest(setup: &RunSetup, items: u64, each: u128, most: u64, deadline: u128) -> Result<u64, Unfit> {
    let takes = |workers: u64| {
        let spread = Spread { pieces: items, each, workers, copies: Copies::Share };
        let startup = spread.startup(setup);
        Ok(spread.total(&startup, setup.scaled_time(each, &startup)?))
    };
    let best = takes(most)?;
    if best > deadline {
        return Err(Unfit::Deadline(best));
    }
    let (mut late, mut enough) = (0, most);
    while enough - late > 1 {
        let middle = late + (enough - late) / 2;
        if takes(middle).is_ok_and(|total| total <= deadline) { enough = middle } else { late = middle }
    }
    Ok(enough)
}

/// The part of the data that a worker copies if data is staged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Copies {
    /// The data of its pieces.
    Share,
    All,
}

struct Spread {
    pieces: u64,
    each: u128,
    workers: u64,
    copies: Copies,
}

impl Spread {
    fn startup(&self, setup: &RunSetup) -> Startup {
        let bytes = match self.copies {
            Copies::Share => setup.bytes().div_ceil(self.workers.max(1)),
            Copies::All => setup.bytes(),
        };
        Startup::of(setup.case, setup.mode, bytes)
    }

    /// Time from the order until the last piece is finished.
    fn total(&self, startup: &Startup, time: ScaledTime) -> u128 {
        match self.pieces.div_ceil(self.workers.max(1)) {
            0 => 0,
            rounds => startup.total().saturating_add(time.wall.saturating_mul(u128::from(rounds))),
        }
    }

    fn usage(&self, setup: &RunSetup) -> Result<Usage, Unfit> {
        let startup = self.startup(setup);
        let time = setup.scaled_time(self.each, &startup)?;
        let machines = setup.machines(u128::from(self.workers))?;
        let together = u64::from(setup.case.workload().gpu.instances);
        let workers = self.workers.max(1);
        let (rounds, more) = (self.pieces / workers, self.pieces % workers);
        let mut bill = BilledTime::default();
        let mut disks = 0_u128;
        for (count, rounds) in [(more, rounds.saturating_add(1)), (workers - more, rounds)] {
            if rounds == 0 || count == 0 {
                continue;
            }
            let times = u128::from(rounds);
            let up = Uptime {
                start: startup.billed,
                work: time.work.saturating_mul(times),
                lost: (time.billed - time.work).saturating_mul(times),
                idle: 0,
            };
            let count = count.saturating_mul(together);
            bill.add(setup.case.terms.billing, count, up);
            let lasts = startup.total().saturating_add(time.wall.saturating_mul(times));
            disks = disks.saturating_add(lasts.saturating_mul(u128::from(count)));
        }
        let longest = u128::from(self.pieces.div_ceil(workers));
        let total = self.total(&startup, time);
        // A piece of a sweep reads everything, an item its own part.
        let (streamed, copied) = match self.copies {
            Copies::Share => (1, together),
            Copies::All => (self.pieces, u64::from(machines)),
        };
        let read = if self.pieces == 0 { 0 } else { setup.read(streamed, copied) };
        Ok(Usage {
            mode: setup.mode,
            pace: setup.pace,
            startup,
            machines,
            bill,
            disks,
            lasts: total,
            work: time.work.saturating_mul(longest),
            lost: (time.wall - time.work).saturating_mul(longest),
            total,
            read,
            starts: 0,
            requests: 0,
        })
    }
}

#[cfg(test)]
mod tests;
