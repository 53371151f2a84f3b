//! The reports of the objective that policies look at.

use std::collections::BTreeMap;

use crate::objective::Goal;
use crate::trial_id::TrialId;

/// The values of all trials at each step.
#[derive(Debug, Clone)]
pub struct History {
    goal: Goal,
    /// The trials at each step, in the order of arrival.
    steps: Vec<Vec<Point>>,
    curves: BTreeMap<TrialId, Curve>,
}

/// A trial at one step, as scores: higher is better, NaN if there is none.
#[derive(Debug, Clone, Copy)]
pub(super) struct Point {
    pub(super) trial: TrialId,
    pub(super) value: f64,
    /// The best up to this step.
    pub(super) best: f64,
    /// The average up to this step.
    pub(super) mean: f64,
}

/// The state of a trial after its last report.
#[derive(Debug, Clone, Copy)]
struct Curve {
    reports: u64,
    best: f64,
    sum: f64,
    finite: u32,
    is_ended: bool,
}

const EMPTY: Curve = Curve { reports: 0, best: f64::NAN, sum: 0.0, finite: 0, is_ended: false };

/// A trial at its last report, with the others that have come to this step.
#[derive(Debug, Clone, Copy)]
pub(super) struct LastReport<'a> {
    pub(super) history: &'a History,
    pub(super) goal: Goal,
    /// The number of the report.
    pub(super) step: u64,
    /// All trials at this step.
    pub(super) points: &'a [Point],
    pub(super) own: Point,
}

impl History {
    pub fn new(goal: Goal) -> Self {
        Self { goal, steps: Vec::new(), curves: BTreeMap::new() }
    }

    /// Adds the next report of a trial.
    pub fn report(&mut self, trial: TrialId, value: f64) {
        let curve = self.curves.entry(trial).or_insert(EMPTY);
        let score = if value.is_finite() { self.goal.score(value) } else { f64::NAN };
        curve.reports += 1;
        if score.is_finite() {
            curve.best = curve.best.max(score);
            curve.sum += score;
            curve.finite += 1;
        }
        // Rounding must not make an average better than the best of its values.
        let mean = (curve.sum / f64::from(curve.finite)).min(curve.best);
        let point = Point { trial, value: score, best: curve.best, mean };
        let index = usize::try_from(curve.reports - 1).unwrap_or(usize::MAX);
        // A trial reports steps in order, so the list grows by one at most.
        if index == self.steps.len() {
            self.steps.push(Vec::new());
        }
        if let Some(points) = self.steps.get_mut(index) {
            points.push(point);
        }
    }

    /// Forgets the reports of a trial that starts over.
    pub fn restart(&mut self, trial: TrialId) {
        let reports = self.curves.remove(&trial).map_or(0, |curve| curve.reports);
        for points in self.steps.iter_mut().take(usize::try_from(reports).unwrap_or(usize::MAX)) {
            points.retain(|point| point.trial != trial);
        }
    }

    /// Marks a trial that will not report any more.
    pub fn end(&mut self, trial: TrialId) {
        if let Some(curve) = self.curves.get_mut(&trial) {
            curve.is_ended = true;
        }
    }

    /// The number of reports of a trial.
    pub fn reports(&self, trial: TrialId) -> u64 {
        self.curves.get(&trial).map_or(0, |curve| curve.reports)
    }

    pub(super) fn is_ended(&self, trial: TrialId) -> bool {
        self.curves.get(&trial).is_some_and(|curve| curve.is_ended)
    }

    /// The last report of a trial; none before the first.
    pub(super) fn last_report(&self, trial: TrialId) -> Option<LastReport<'_>> {
        let step = self.reports(trial);
        let points = self.steps.get(usize::try_from(step.checked_sub(1)?).ok()?)?;
        let own = *points.iter().rfind(|point| point.trial == trial)?;
        Some(LastReport { history: self, goal: self.goal, step, points, own })
    }
}
