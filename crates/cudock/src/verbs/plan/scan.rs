//! What offers cost around what was asked for: at smaller and larger loads, for shorter and longer work.

use std::time::Duration;

use cudock_plan::{DayLoad, Money, Offer, PerMille, PerSecond, Work, Workload, crossover, curve};
use serde::Serialize;

use super::reigns::Reigns;
use super::view::View;
use super::words;

/// How far it is looked: from a hundredth of what was asked for (of loads, far less) to a hundredfold.
const LEAST: PerMille = 10;
const LEAST_LOAD: PerMille = 1;
const MOST: PerMille = 100_000;

/// How many loads or durations are looked at. Between two of them the place of a change is searched for.
const STEPS: u32 = 240;

/// A workload to take thousandths of, and which of them are looked at.
pub(super) struct Scan {
    workload: Workload,
    /// How many thousandths are what was asked for.
    pub(super) asked: PerMille,
    at: Vec<PerMille>,
}

/// A load or duration at which another becomes the cheapest.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Change {
    /// The load or the duration, in words.
    pub(super) at: String,
    /// Seconds, items, or requests a second at the peak.
    pub(super) value: f64,
    /// The cheapest below.
    pub(super) below: String,
    /// The cheapest from there on.
    pub(super) above: String,
    /// What it costs there.
    pub(super) cost: Money,
    #[serde(skip)]
    pub(super) place: PerMille,
}

/// An offer with its costs at what is looked at, as far as it can do that.
pub(super) struct Line {
    pub(super) name: String,
    pub(super) offer: Offer,
    pub(super) points: Vec<(PerMille, Money)>,
}

impl Scan {
    pub(super) fn new(workload: &Workload) -> Self {
        let mut workload = workload.clone();
        // Serverless pays at loads far below a thousandth of what keeps a machine busy: begin from a smaller one.
        let (least, finer) = match &mut workload.work {
            Work::Serve { load, .. } => (LEAST_LOAD, make_finer(load)),
            _ => (LEAST, 1),
        };
        Self { workload, asked: 1000 * finer, at: steps(least, MOST * finer) }
    }

    pub(super) fn ends(&self) -> (PerMille, PerMille) {
        (self.at.first().copied().unwrap_or(LEAST), self.at.last().copied().unwrap_or(MOST))
    }

    pub(super) fn line(&self, view: &View<'_>, name: String, offer: Offer) -> Line {
        let costs = curve(view.catalog, view.facts, &self.workload, view.verdicts, &offer, &self.at);
        let points = self.at.iter().zip(costs).filter_map(|(at, cost)| Some((*at, cost?))).collect();
        Line { name, offer, points }
    }

    /// Where the cheapest changes, for good: see [`Reigns`].
    pub(super) fn changes(&self, view: &View<'_>, lines: &[Line]) -> Vec<Change> {
        let reigns = Reigns::of(&self.at, lines).settled(self.asked);
        let pairs = reigns.list.iter().zip(reigns.list.iter().skip(1));
        pairs
            .filter_map(|(before, after)| {
                let (below, above) = (lines.get(before.line)?, lines.get(after.line)?);
                // The last place where the one below was no dearer, and the first where it is.
                let ahead = |at: &&PerMille| match (cost_at(below, **at), cost_at(above, **at)) {
                    (Some(below), Some(above)) => below <= above,
                    (below, _) => below.is_some(),
                };
                let to = self.at.get(after.from..)?.iter().find(|at| !ahead(at)).copied()?;
                let before = self.at.get(..self.at.partition_point(|at| *at < to))?;
                let from = before.iter().rfind(ahead).copied().unwrap_or(to);
                Some(self.change(view, below, above, (from, to)))
            })
            .collect()
    }

    fn change(
        &self,
        view: &View<'_>,
        below: &Line,
        above: &Line,
        (from, to): (PerMille, PerMille),
    ) -> Change {
        let (catalog, facts, verdicts) = (view.catalog, view.facts, view.verdicts);
        let place = crossover(catalog, facts, &self.workload, verdicts, &below.offer, &above.offer, from, to);
        let place = place.unwrap_or_else(|| self.end_of(view, below, (from, to)));
        let there = curve(catalog, facts, &self.workload, verdicts, &above.offer, &[place]);
        Change {
            at: self.words(place),
            value: self.value(place),
            below: below.name.clone(),
            above: above.name.clone(),
            cost: there.first().copied().flatten().unwrap_or_default(),
            place,
        }
    }

    /// The first place between two where an offer cannot do the work any more; the second if it can everywhere.
    fn end_of(&self, view: &View<'_>, line: &Line, (mut from, mut to): (PerMille, PerMille)) -> PerMille {
        while to.saturating_sub(from) > 1 {
            let middle = from + (to - from) / 2;
            let there =
                curve(view.catalog, view.facts, &self.workload, view.verdicts, &line.offer, &[middle]);
            if there.first().is_some_and(Option::is_some) {
                from = middle;
            } else {
                to = middle;
            }
        }
        to
    }

    /// Seconds, items, or requests a second at the peak.
    #[allow(clippy::cast_precision_loss, reason = "drawn and told, not counted")]
    pub(super) fn value(&self, permille: PerMille) -> f64 {
        let whole = match &self.workload.work {
            Work::Job { duration } => duration.as_secs_f64(),
            Work::Sweep { each, .. } => each.as_secs_f64(),
            Work::Items { items, .. } => *items as f64,
            Work::Serve { load, .. } => {
                let peak = load.hours.iter().max().copied().unwrap_or_default();
                peak.millis as f64 / 1000.0
            }
        };
        whole * permille as f64 / 1000.0
    }

    /// So many thousandths in words.
    pub(super) fn words(&self, permille: PerMille) -> String {
        let value = self.value(permille);
        match self.workload.work {
            // Few requests are easier to imagine by the hour.
            Work::Serve { .. } if value > 0.0 && value < 0.1 => {
                format!("{} requests/s ({} an hour)", words::short(value), words::short(value * 3600.0))
            }
            Work::Serve { .. } => format!("{} requests/s", words::short(value)),
            Work::Job { .. } => time(value),
            Work::Items { .. } => format!("{} items", words::short(value)),
            Work::Sweep { .. } => format!("{} a trial", time(value)),
        }
    }

    /// What is varied.
    pub(super) const fn varied(&self) -> &'static str {
        match self.workload.work {
            Work::Job { .. } => "duration of the job",
            Work::Items { .. } => "number of items",
            Work::Sweep { .. } => "time of one trial",
            Work::Serve { .. } => "requests a second at the peak",
        }
    }

    pub(super) const fn is_time(&self) -> bool {
        matches!(self.workload.work, Work::Job { .. } | Work::Sweep { .. })
    }
}

fn time(seconds: f64) -> String {
    words::exact_time(Duration::try_from_secs_f64(seconds).unwrap_or_default())
}

/// Divides all rates by the greatest of 100, 10 and 1 that leaves no rest, and says which.
fn make_finer(load: &mut DayLoad) -> PerMille {
    let divides = |by: &u64| load.hours.iter().all(|hour| hour.millis.is_multiple_of(*by));
    let by = [100, 10].into_iter().find(divides).unwrap_or(1);
    load.hours = load.hours.map(|hour| PerSecond { millis: hour.millis / by });
    by
}

pub(super) fn cost_at(line: &Line, at: PerMille) -> Option<Money> {
    let index = line.points.binary_search_by_key(&at, |(at, _)| *at).ok()?;
    line.points.get(index).map(|(_, cost)| *cost)
}

/// Whole thousandths with equal ratios, as far as whole numbers allow.
fn steps(low: PerMille, high: PerMille) -> Vec<PerMille> {
    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between 1 and ten million"
    )]
    let at = |step: u32| {
        let share = f64::from(step) / f64::from(STEPS);
        (low as f64 * (high as f64 / low as f64).powf(share)).round() as PerMille
    };
    let mut all: Vec<PerMille> = (0..=STEPS).map(at).collect();
    all.dedup();
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_rise_from_end_to_end() {
        for (low, high) in [(LEAST, MOST), (LEAST_LOAD, MOST * 100)] {
            let all = steps(low, high);
            assert_eq!((all.first(), all.last()), (Some(&low), Some(&high)));
            assert!(all.is_sorted_by(|a, b| a < b));
        }
    }

    #[test]
    fn loads_are_made_finer_without_a_rest() {
        for (millis, by) in [(5000, 100), (250, 10), (1337, 1), (0, 100)] {
            let mut load = DayLoad { hours: [PerSecond { millis }; 24] };
            load.hours[3] = PerSecond { millis: 0 };
            assert_eq!(make_finer(&mut load), by, "{millis}");
            assert_eq!(load.hours[0].millis * by, millis);
        }
    }
}
