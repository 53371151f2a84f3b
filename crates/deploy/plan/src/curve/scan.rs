//! Scans the cost of offers around the requested load or duration.

use std::time::Duration;

use cudock_base::Usd;
use cudock_base::text::format::precise_duration;
use schemars::JsonSchema;
use serde::Serialize;

use crate::catalog::offer::Offer;
use crate::context::PlanContext;
use crate::curve::line::CostLine;
use crate::curve::segments::Segments;
use crate::curve::{CostCurve, PerMille};
use crate::plan::Plan;
use crate::report::format;
use crate::workload::{DayLoad, Work, Workload};

/// The range that is scanned: from a hundredth of what was requested (for loads, far less) to a hundredfold.
const LOW: PerMille = 10;
const LOW_LOAD: PerMille = 1;
const HIGH: PerMille = 100_000;

/// Number of evaluated loads or durations. The exact breakpoint between two of them is found by
/// bisection.
const STEPS: u32 = 240;

/// A workload to scale, and the scales to evaluate.
#[derive(Debug)]
pub struct Scan {
    workload: Workload,
    /// The scale that is what was requested.
    pub requested: PerMille,
    at: Vec<PerMille>,
}

/// A load or duration at which another offer becomes the cheapest.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Breakpoint {
    pub at: String,
    /// Seconds, items, or peak requests per second.
    pub value: f64,
    pub below: String,
    pub above: String,
    pub cost: Usd,
    #[serde(skip)]
    pub scale: PerMille,
}

impl Breakpoint {
    pub fn describe(&self) -> String {
        let Self { at, below, above, cost, .. } = self;
        format!("below {at}: {below}; above: {above} ({} at that point)", format::dollars(*cost))
    }
}

impl Scan {
    pub fn new(workload: &Workload) -> Self {
        let mut workload = workload.clone();
        // Serverless pays off at loads far below a thousandth of what keeps a machine busy, so start from a smaller unit.
        let (low, finer) = match &mut workload.work {
            Work::Serve { load, .. } => (LOW_LOAD, make_finer(load)),
            _ => (LOW, 1),
        };
        Self { workload, requested: 1000 * finer, at: steps(low, HIGH * finer) }
    }

    pub fn bounds(&self) -> (PerMille, PerMille) {
        (self.at.first().copied().unwrap_or(LOW), self.at.last().copied().unwrap_or(HIGH))
    }

    pub fn line(&self, plan: &Plan<'_>, name: String, offer: Offer) -> CostLine {
        let curve = self.curve(plan);
        let points = self.at.iter().filter_map(|at| Some((*at, curve.cost(&offer, *at)?))).collect();
        CostLine { name, offer, points }
    }

    fn curve<'a>(&'a self, plan: &'a Plan<'_>) -> CostCurve<'a> {
        let PlanContext { catalog, facts, verdicts, .. } = plan.context;
        CostCurve { catalog, facts, workload: &self.workload, verdicts }
    }

    /// The points at which the cheapest changes for good; see `Segments`.
    pub fn breakpoints(&self, plan: &Plan<'_>, lines: &[CostLine]) -> Vec<Breakpoint> {
        let segments = Segments::of(&self.at, lines).smoothed(self.requested);
        let pairs = segments.list.iter().zip(segments.list.iter().skip(1));
        pairs
            .filter_map(|(before, after)| {
                let (below, above) = (lines.get(before.line)?, lines.get(after.line)?);
                // The last scale at which the line below is not more expensive, and the first at which it is.
                let is_cheaper = |at: &&PerMille| match (below.cost_at(**at), above.cost_at(**at)) {
                    (Some(below), Some(above)) => below <= above,
                    (below, _) => below.is_some(),
                };
                let to = self.at.get(after.from..)?.iter().find(|at| !is_cheaper(at)).copied()?;
                let before = self.at.get(..self.at.partition_point(|at| *at < to))?;
                let from = before.iter().rfind(is_cheaper).copied().unwrap_or(to);
                Some(self.breakpoint(plan, below, above, (from, to)))
            })
            .collect()
    }

    fn breakpoint(
        &self,
        plan: &Plan<'_>,
        below: &CostLine,
        above: &CostLine,
        (from, to): (PerMille, PerMille),
    ) -> Breakpoint {
        let curve = self.curve(plan);
        let scale = curve.crossover(&below.offer, &above.offer, from, to);
        let scale = scale.unwrap_or_else(|| end_of(&curve, &below.offer, (from, to)));
        Breakpoint {
            at: self.describe(scale),
            value: self.value(scale),
            below: below.name.clone(),
            above: above.name.clone(),
            cost: curve.cost(&above.offer, scale).unwrap_or_default(),
            scale,
        }
    }

    /// Seconds, items, or peak requests per second.
    #[allow(clippy::cast_precision_loss, reason = "drawn and shown, not summed up")]
    pub fn value(&self, permille: PerMille) -> f64 {
        let whole = match &self.workload.work {
            Work::Job { duration } => duration.as_secs_f64(),
            Work::Sweep { each, .. } => each.as_secs_f64(),
            Work::Items { items, .. } => *items as f64,
            Work::Serve { load, .. } => {
                let peak = load.hours.iter().max().copied().unwrap_or_default();
                peak.times_in(Duration::from_secs(1))
            }
        };
        whole * permille as f64 / 1000.0
    }

    /// The load or duration at a scale, as text.
    pub fn describe(&self, permille: PerMille) -> String {
        let value = self.value(permille);
        match self.workload.work {
            // A low rate is easier to imagine by the hour.
            Work::Serve { .. } if value > 0.0 && value < 0.1 => {
                format!("{} requests/s ({} per hour)", format::short(value), format::short(value * 3600.0))
            }
            Work::Serve { .. } => format!("{} requests/s", format::short(value)),
            Work::Job { .. } => time(value),
            Work::Items { .. } => format!("{} items", format::short(value)),
            Work::Sweep { .. } => format!("{} per trial", time(value)),
        }
    }

    pub const fn varied(&self) -> &'static str {
        match self.workload.work {
            Work::Job { .. } => "duration of the job",
            Work::Items { .. } => "number of items",
            Work::Sweep { .. } => "time of one trial",
            Work::Serve { .. } => "requests per second at the peak",
        }
    }

    pub const fn is_time(&self) -> bool {
        matches!(self.workload.work, Work::Job { .. } | Work::Sweep { .. })
    }
}

/// The first scale between two at which an offer cannot do the work any more; the second if it can everywhere.
fn end_of(curve: &CostCurve<'_>, offer: &Offer, (mut from, mut to): (PerMille, PerMille)) -> PerMille {
    while to.saturating_sub(from) > 1 {
        let middle = from + (to - from) / 2;
        if curve.cost(offer, middle).is_some() { from = middle } else { to = middle }
    }
    to
}

fn time(seconds: f64) -> String {
    precise_duration(Duration::try_from_secs_f64(seconds).unwrap_or_default())
}

/// Divides all rates by the greatest of 100, 10 and 1 that divides them exactly, and returns it.
fn make_finer(load: &mut DayLoad) -> PerMille {
    let divides =
        |by: &u64| load.hours.iter().all(|hour| hour.nanos_per_day().is_multiple_of(u128::from(*by)));
    let by = [100, 10].into_iter().find(divides).unwrap_or(1);
    load.hours = load.hours.map(|hour| hour.share(1, u128::from(by)));
    by
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
    use cudock_base::Rate;

    use super::*;

    #[test]
    fn steps_rise_from_end_to_end() {
        for (low, high) in [(LOW, HIGH), (LOW_LOAD, HIGH * 100)] {
            let all = steps(low, high);
            assert_eq!((all.first(), all.last()), (Some(&low), Some(&high)));
            assert!(all.is_sorted_by(|a, b| a < b));
        }
    }

    #[test]
    fn loads_are_made_finer_without_a_rest() {
        for (nanos, by) in [(5000, 100), (250, 10), (1337, 1), (0, 100)] {
            let mut load = DayLoad { hours: [Rate::from_nanos_per_day(nanos); 24] };
            load.hours[3] = Rate::ZERO;
            assert_eq!(make_finer(&mut load), by, "{nanos}");
            assert_eq!(load.hours[0].nanos_per_day() * u128::from(by), nanos);
        }
    }
}
