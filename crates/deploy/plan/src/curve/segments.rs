//! The ranges in which one offer is the cheapest, without insignificant changes.
//!
//! Costs grow in steps: a minute of rounding, one more replica. Two offers that cost nearly the same swap
//! ranks at every step, but users want to know from where on one of them stays cheaper. So a segment is merged into a neighbor if
//! the neighbor costs less than half a percent more throughout, or if the segment ends before its load or duration has
//! grown by half. The segment that contains the requested point is never merged, since the ranking names its offer.

use cudock_base::Usd;

use crate::curve::PerMille;
use crate::curve::line::CostLine;

/// Segments in order, one after the other.
pub(crate) struct Segments<'a> {
    at: &'a [PerMille],
    lines: &'a [CostLine],
    pub(crate) list: Vec<Segment>,
}

/// The steps at which one line is the cheapest: from one step up to another, which is not included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) line: usize,
    pub(crate) from: usize,
    to: usize,
}

impl<'a> Segments<'a> {
    /// The cheapest line of every step; of equals the one of the step before, or else the first.
    pub(crate) fn of(at: &'a [PerMille], lines: &'a [CostLine]) -> Self {
        let mut list: Vec<Segment> = Vec::new();
        for (number, step) in at.iter().enumerate() {
            let costs = lines.iter().enumerate().filter_map(|(line, one)| Some((one.cost_at(*step)?, line)));
            let Some((least, first)) = costs.min() else { continue };
            match list.last_mut() {
                Some(segment)
                    if lines.get(segment.line).and_then(|one| one.cost_at(*step)) == Some(least) =>
                {
                    segment.to = number + 1;
                }
                _ => list.push(Segment { line: first, from: number, to: number + 1 }),
            }
        }
        Self { at, lines, list }
    }

    /// Merges segments that mean nothing, the one with the smallest regret first, until all that are left matter.
    pub(crate) fn smoothed(mut self, requested: PerMille) -> Self {
        let requested = self.at.partition_point(|at| *at < requested);
        loop {
            let can_merge = |index: usize, regret: u128| {
                !self.contains(index, requested) && (regret < HALF_A_PERCENT || self.is_short(index))
            };
            let candidates = (0..self.list.len())
                .filter_map(|index| Some((self.regret(index)?, index)))
                .filter(|((regret, _), index)| can_merge(*index, *regret));
            let Some(((_, neighbor), index)) = candidates.min() else { return self };
            if let Some(segment) = self.list.get_mut(index) {
                segment.line = neighbor;
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

    fn contains(&self, index: usize, step: usize) -> bool {
        self.list.get(index).is_some_and(|segment| (segment.from..segment.to).contains(&step))
    }

    /// The most, in millionths, that a segment would cost more with the line of a neighbor, and that line: the better of
    /// the two neighbors.
    fn regret(&self, index: usize) -> Option<(u128, usize)> {
        let segment = self.list.get(index)?;
        let neighbors = [index.checked_sub(1), Some(index + 1)].into_iter().flatten();
        let lines = neighbors.filter_map(|neighbor| self.list.get(neighbor)).map(|neighbor| neighbor.line);
        lines.filter_map(|line| Some((self.max_regret(*segment, line)?, line))).min()
    }

    /// The most that another line costs more within a segment; none if it cannot do the work somewhere in it.
    fn max_regret(&self, segment: Segment, other: usize) -> Option<u128> {
        let (own, other) = (self.lines.get(segment.line)?, self.lines.get(other)?);
        let steps = self.at.get(segment.from..segment.to)?;
        steps
            .iter()
            .map(|step| Some(relative_increase(own.cost_at(*step)?, other.cost_at(*step)?)))
            .try_fold(0, |most, one| Some(one?.max(most)))
    }

    /// Whether a segment between two others ends before the load or duration has grown by half.
    fn is_short(&self, index: usize) -> bool {
        let inside = index > 0 && index + 1 < self.list.len();
        let Some(segment) = self.list.get(index).filter(|_| inside) else { return false };
        match (self.at.get(segment.from), self.at.get(segment.to)) {
            (Some(from), Some(to)) => to.saturating_mul(2) < from.saturating_mul(3),
            _ => false,
        }
    }
}

/// Half a percent in millionths.
const HALF_A_PERCENT: u128 = 5000;

/// How much more the second is, in millionths of the first.
fn relative_increase(first: Usd, second: Usd) -> u128 {
    let extra = second.nanos().saturating_sub(first.nanos());
    extra.saturating_mul(1_000_000) / first.nanos().max(1)
}

#[cfg(test)]
mod tests {
    use cudock_facts::version::Date;

    use super::*;
    use crate::catalog::offer::{Offer, RegionId, SizeId};
    use crate::workload::Priority;
    use cudock_facts::services::AzureOffering;

    fn line(costs: &[Option<u64>]) -> CostLine {
        let date = Date::new(2026, 11, 15).unwrap();
        let offer = Offer::new(AzureOffering::Vm, SizeId(0), RegionId(0), Priority::Regular, Usd::ZERO, date);
        let points = AT.iter().zip(costs).filter_map(|(at, cost)| Some((*at, Usd::from_cents((*cost)?))));
        CostLine { name: String::new(), offer, points: points.collect() }
    }

    const AT: [PerMille; 6] = [100, 110, 121, 200, 400, 800];

    fn order(lines: &[CostLine]) -> Vec<(usize, usize)> {
        Segments::of(&AT, lines)
            .smoothed(800)
            .list
            .iter()
            .map(|segment| (segment.line, segment.from))
            .collect()
    }

    #[test]
    fn one_change_stays_one_change() {
        let rising = line(&[10, 20, 30, 100, 200, 400].map(Some));
        let level = line(&[90; 6].map(Some));
        assert_eq!(order(&[rising, level]), [(0, 0), (1, 3)]);
    }

    #[test]
    fn offers_that_cost_nearly_the_same_do_not_swap_ranks() {
        let one = line(&[1000, 1002, 1000, 1002, 1000, 1002].map(Some));
        let other = line(&[1001; 6].map(Some));
        assert_eq!(order(&[one, other]).len(), 1);
    }

    #[test]
    fn a_segment_that_ends_at_once_is_merged() {
        let one = line(&[100, 300, 100, 100, 100, 100].map(Some));
        let other = line(&[200; 6].map(Some));
        assert_eq!(order(&[one, other]), [(0, 0)]);
    }

    #[test]
    fn the_cheapest_at_the_requested_point_is_never_merged() {
        let hardly_cheaper = line(&[Some(1000), Some(1000), Some(1000), Some(1000), None, None]);
        let other = line(&[1001; 6].map(Some));
        let lines = [hardly_cheaper, other];
        let smoothed = Segments::of(&AT, &lines).smoothed(110);
        assert_eq!(smoothed.list.iter().map(|segment| segment.line).collect::<Vec<_>>(), [0, 1]);
    }

    #[test]
    fn a_line_that_cannot_do_the_work_has_no_segment_there() {
        let ends = line(&[Some(1), Some(1), Some(1), Some(1), None, None]);
        let other = line(&[50; 6].map(Some));
        assert_eq!(order(&[ends, other]), [(0, 0), (1, 4)]);
    }
}
