//! Independent pieces of work, spread over workers.
//!
//! A worker is the group of machines that work together on one piece. It is released when no piece is left for it.

use super::billing::{BilledTime, Uptime};
use super::start::Startup;
use super::{RunSetup, Unfit, Usage};

pub(super) fn usage(setup: &RunSetup, items: u64, each: u128, at_once: Option<u32>) -> Result<Usage, Unfit> {
    let most = at_once.map_or(items, |at_once| items.min(u64::from(at_once)));
    let workers = match (setup.deadline, at_once) {
        (Some(deadline), _) => fewest(setup, items, each, most, deadline)?,
        (None, Some(_)) => most,
        // Each worker costs a start: one is cheapest.
        (None, None) => most.min(1),
    };
    let spread = Spread { pieces: items, each, workers, copies: Copies::Share };
    spread.usage(setup)
}

/// The fewest workers that meet the deadline, by bisection: more workers never take longer.
fn fewest(setup: &RunSetup, items: u64, each: u128, most: u64, deadline: u128) -> Result<u64, Unfit> {
    let takes = |workers: u64| {
        let spread = Spread { pieces: items, each, workers, copies: Copies::Share };
        spread.total(setup)
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

/// What a worker copies if data is staged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Copies {
    /// The data of its pieces.
    Share,
    All,
}

/// Pieces and the workers they are spread over.
pub(super) struct Spread {
    pub(super) pieces: u64,
    pub(super) each: u128,
    pub(super) workers: u64,
    pub(super) copies: Copies,
}

impl Spread {
    fn startup(&self, setup: &RunSetup) -> Startup {
        let bytes = match self.copies {
            Copies::Share => setup.bytes().div_ceil(self.workers.max(1)),
            Copies::All => setup.bytes(),
        };
        Startup::of(setup.case, setup.mode, bytes)
    }

    /// From the order until the last piece is finished.
    fn total(&self, setup: &RunSetup) -> Result<u128, Unfit> {
        if self.pieces == 0 {
            return Ok(0);
        }
        let startup = self.startup(setup);
        let time = setup.scaled_time(self.each, &startup)?;
        let rounds = u128::from(self.pieces.div_ceil(self.workers.max(1)));
        Ok(startup.total().saturating_add(time.wall.saturating_mul(rounds)))
    }

    pub(super) fn usage(&self, setup: &RunSetup) -> Result<Usage, Unfit> {
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
        let total = self.total(setup)?;
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
mod tests {
    use std::time::Duration;

    use crate::cost::Unfit;
    use crate::service::ServiceKind;
    use crate::testing::{MINUTE, SECOND, used, workload};
    use crate::workload::{Priority, Work, Workload};

    const T4: &str = "Standard_NC4as_T4_v3";

    fn items(items: u64, seconds: u64, at_once: Option<u32>, deadline: Option<u64>) -> Workload {
        let mut workload = workload(Work::Items { items, each: Duration::from_secs(seconds), at_once });
        workload.constraints.deadline = deadline.map(Duration::from_secs);
        workload
    }

    #[test]
    fn ten_thousand_images_in_two_hours_take_nine_machines() {
        // A start takes 245 s (160 + 20 + 60 + 5), which leaves 6955 s: 1159 images of 6 s. 10,000 / 1159 = 8.63, so 9.
        let usage =
            used(&items(10_000, 6, None, Some(7200)), ServiceKind::Vm, T4, Priority::Regular).unwrap();
        assert_eq!(usage.machines, 9);
        // Each does at most 1112: 6672 s after the start.
        assert_eq!(usage.total, (245 + 6672) * SECOND);
        // One does 1112, eight do 1111: 85 + 6672 = 6757 s are 112 min, 85 + 6666 = 6751 s are 112 min.
        assert_eq!(usage.bill.work + usage.bill.start, 9 * 112 * MINUTE);
    }

    #[test]
    fn without_a_deadline_one_machine_is_cheapest() {
        let usage = used(&items(100, 60, None, None), ServiceKind::Vm, T4, Priority::Regular).unwrap();
        assert_eq!((usage.machines, usage.work), (1, 100 * MINUTE));
    }

    #[test]
    fn as_many_as_wanted_are_taken_and_never_more_than_there_are_items() {
        let machines = |items_: u64, at_once| {
            used(&items(items_, 60, Some(at_once), None), ServiceKind::Vm, T4, Priority::Regular)
                .unwrap()
                .machines
        };
        assert_eq!(machines(100, 8), 8);
        assert_eq!(machines(3, 8), 3);
    }

    #[test]
    fn a_deadline_that_more_machines_cannot_meet_is_missed() {
        let late = used(&items(10_000, 6, Some(4), Some(7200)), ServiceKind::Vm, T4, Priority::Regular);
        assert_eq!(late, Err(Unfit::Deadline((245 + 15_000) * SECOND)));
        let shorter_than_a_start =
            used(&items(10, 6, None, Some(200)), ServiceKind::Vm, T4, Priority::Regular);
        assert_eq!(shorter_than_a_start, Err(Unfit::Deadline(251 * SECOND)));
    }

    #[test]
    fn no_items_cost_nothing() {
        let usage = used(&items(0, 6, None, Some(7200)), ServiceKind::Vm, T4, Priority::Regular).unwrap();
        assert_eq!((usage.machines, usage.total, usage.bill.work, usage.disks), (0, 0, 0, 0));
    }

    #[test]
    fn more_items_than_machines_are_rejected() {
        let unfit = used(&items(u64::MAX, 60, None, Some(600)), ServiceKind::Vm, T4, Priority::Regular);
        assert!(matches!(unfit, Err(Unfit::Instances { .. })), "{unfit:?}");
    }
}
