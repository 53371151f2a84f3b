//! Which offer is the cheapest from where to where, without the changes that mean nothing.
//!
//! Costs grow in steps: a minute of rounding, one more replica. Two offers that cost nearly the same change places at
//! every step. Who chooses a service wants the places where one stays ahead. So a reign is given to a neighbour if that
//! costs less than half a percent more throughout, or if it ends before it has grown by half; but never the one over
//! what was asked for, which the ranking names.

use cudock_plan::{Money, PerMille};

use super::scan::{Line, cost_at};

/// Reigns in order, one after the other.
pub(super) struct Reigns<'a> {
    at: &'a [PerMille],
    lines: &'a [Line],
    pub(super) list: Vec<Reign>,
}

/// The time of one line as the cheapest: from a step up to another, that one left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reign {
    pub(super) line: usize,
    pub(super) from: usize,
    to: usize,
}

impl<'a> Reigns<'a> {
    /// The cheapest of every step; of equals the one before, or else the first.
    pub(super) fn of(at: &'a [PerMille], lines: &'a [Line]) -> Self {
        let mut list: Vec<Reign> = Vec::new();
        for (number, step) in at.iter().enumerate() {
            let costs = lines.iter().enumerate().filter_map(|(line, one)| Some((cost_at(one, *step)?, line)));
            let Some((least, first)) = costs.min() else { continue };
            match list.last_mut() {
                Some(reign) if lines.get(reign.line).and_then(|one| cost_at(one, *step)) == Some(least) => {
                    reign.to = number + 1;
                }
                _ => list.push(Reign { line: first, from: number, to: number + 1 }),
            }
        }
        Self { at, lines, list }
    }

    /// Without those that mean nothing: the least of them first, until all that are left mean something.
    pub(super) fn settled(mut self, asked: PerMille) -> Self {
        let asked = self.at.partition_point(|at| *at < asked);
        loop {
            let means_nothing = |index: usize, loss: u128| {
                !self.holds(index, asked) && (loss < HALF_A_PERCENT || self.is_short(index))
            };
            let idle = (0..self.list.len())
                .filter_map(|index| Some((self.loss(index)?, index)))
                .filter(|((loss, _), index)| means_nothing(*index, *loss));
            let Some(((_, heir), index)) = idle.min() else { return self };
            if let Some(reign) = self.list.get_mut(index) {
                reign.line = heir;
            }
            self.list.dedup_by(|later, earlier| {
                let same = later.line == earlier.line;
                if same {
                    earlier.to = later.to;
                }
                same
            });
        }
    }

    fn holds(&self, index: usize, step: usize) -> bool {
        self.list.get(index).is_some_and(|reign| (reign.from..reign.to).contains(&step))
    }

    /// What it would cost at most, in millionths, if a neighbour reigned instead, and which: the better of the two.
    fn loss(&self, index: usize) -> Option<(u128, usize)> {
        let reign = self.list.get(index)?;
        let neighbours = [index.checked_sub(1), Some(index + 1)].into_iter().flatten();
        let heirs =
            neighbours.filter_map(|neighbour| self.list.get(neighbour)).map(|neighbour| neighbour.line);
        heirs.filter_map(|heir| Some((self.most_lost(*reign, heir)?, heir))).min()
    }

    /// The most that another line costs more in a reign; none if it cannot do the work somewhere there.
    fn most_lost(&self, reign: Reign, heir: usize) -> Option<u128> {
        let (own, heir) = (self.lines.get(reign.line)?, self.lines.get(heir)?);
        let steps = self.at.get(reign.from..reign.to)?;
        steps
            .iter()
            .map(|step| Some(more(cost_at(own, *step)?, cost_at(heir, *step)?)))
            .try_fold(0, |most, one| Some(one?.max(most)))
    }

    /// Whether a reign between two others ends before it has grown by half.
    fn is_short(&self, index: usize) -> bool {
        let inside = index > 0 && index + 1 < self.list.len();
        let Some(reign) = self.list.get(index).filter(|_| inside) else { return false };
        match (self.at.get(reign.from), self.at.get(reign.to)) {
            (Some(from), Some(to)) => to.saturating_mul(2) < from.saturating_mul(3),
            _ => false,
        }
    }
}

/// In millionths.
const HALF_A_PERCENT: u128 = 5000;

/// How much more the second is, in millionths of the first.
fn more(first: Money, second: Money) -> u128 {
    let extra = second.nanos().saturating_sub(first.nanos());
    extra.saturating_mul(1_000_000) / first.nanos().max(1)
}

#[cfg(test)]
mod tests {
    use cudock_facts::version::Date;
    use cudock_plan::{Offer, Priority, Rate, RegionId, ServiceKind, SizeId};

    use super::*;

    fn line(costs: &[Option<u64>]) -> Line {
        let date = Date::new(2026, 11, 15).unwrap();
        let offer =
            Offer::new(ServiceKind::Vm, SizeId(0), RegionId(0), Priority::Regular, Rate::default(), date);
        let points = AT.iter().zip(costs).filter_map(|(at, cost)| Some((*at, Money::from_cents((*cost)?))));
        Line { name: String::new(), offer, points: points.collect() }
    }

    const AT: [PerMille; 6] = [100, 110, 121, 200, 400, 800];

    fn order(lines: &[Line]) -> Vec<(usize, usize)> {
        Reigns::of(&AT, lines).settled(800).list.iter().map(|reign| (reign.line, reign.from)).collect()
    }

    #[test]
    fn one_change_stays_one_change() {
        let rising = line(&[10, 20, 30, 100, 200, 400].map(Some));
        let level = line(&[90; 6].map(Some));
        assert_eq!(order(&[rising, level]), [(0, 0), (1, 3)]);
    }

    #[test]
    fn offers_that_cost_nearly_the_same_do_not_change_places() {
        let one = line(&[1000, 1002, 1000, 1002, 1000, 1002].map(Some));
        let other = line(&[1001; 6].map(Some));
        assert_eq!(order(&[one, other]).len(), 1);
    }

    #[test]
    fn a_step_that_is_over_at_once_is_no_change() {
        let one = line(&[100, 300, 100, 100, 100, 100].map(Some));
        let other = line(&[200; 6].map(Some));
        assert_eq!(order(&[one, other]), [(0, 0)]);
    }

    #[test]
    fn the_cheapest_at_what_was_asked_for_keeps_its_place() {
        let hardly_cheaper = line(&[Some(1000), Some(1000), Some(1000), Some(1000), None, None]);
        let other = line(&[1001; 6].map(Some));
        let lines = [hardly_cheaper, other];
        let settled = Reigns::of(&AT, &lines).settled(110);
        assert_eq!(settled.list.iter().map(|reign| reign.line).collect::<Vec<_>>(), [0, 1]);
    }

    #[test]
    fn what_cannot_do_the_work_cannot_reign_there() {
        let ends = line(&[Some(1), Some(1), Some(1), Some(1), None, None]);
        let dearer = line(&[50; 6].map(Some));
        assert_eq!(order(&[ends, dearer]), [(0, 0), (1, 4)]);
    }
}
