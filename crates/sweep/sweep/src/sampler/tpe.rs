//! The tree-structured Parzen estimator of J. Bergstra et al., "Algorithms for Hyper-Parameter Optimization" (2011), for each
//! parameter by itself.
//!
//! The trials are split into the best tenth (25 at most) and the others. For each parameter, both groups get a density:
//! l(x) and g(x). Of 24 draws from l, the one with the highest l(x)/g(x) is taken. Parameters that exist only under a
//! condition are estimated from the trials that have them, and parents are chosen before their children.
//!
//! Numbers are compared on the unit interval to which their distribution maps them, where the prior is uniform: for
//! uniform and loguniform parameters that is the published method but for the scale. A density is the average of the
//! uniform prior and of a normal distribution around each observation, cut off at 0 and 1, whose deviation is the larger
//! of the distances to the observations on both sides, at least 1/min(100, n + 1) for n observations. As in Hyperopt, the
//! middle of the interval counts as one more observation for these distances, and its ends do not. A choice has the
//! probability of its count plus one. Trials that are running or failed do not count.

use cudock_base::Rng;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::interface::{NextTrial, Observation, Sampler, SearchedSpace, stream};
use super::random::random;
use crate::config::keys::{Key, Keys, TRIALS};
use crate::config::problem::{Inexpressible, Problem};
use crate::normal;
use crate::parameter_value::ParameterValue;
use crate::space::{Assignment, Distribution, Space};
use crate::trial_id::TrialId;

/// Random at first, then near what was good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tpe {
    pub startup_trials: u32,
}

pub(crate) const STARTUP_TRIALS: Key =
    Key::count32("startup_trials", "Random trials before `tpe` looks at results; 10 if absent.");

/// Random trials, unless the file has another number.
const DEFAULT_STARTUP_TRIALS: u32 = 10;

impl Tpe {
    pub(super) const SUMMARY: &str = "Tree-structured Parzen estimator: near what was good.";
    pub(super) const KEYS: &[Key] = &[STARTUP_TRIALS];

    #[allow(clippy::unnecessary_wraps, reason = "the keys of other kinds can be wrong")]
    pub(super) fn read(keys: &Keys) -> Result<Self, Problem> {
        // A short sweep must not end before the sampler has looked at a result.
        let third = |trials: u32| (trials / 3).clamp(1, DEFAULT_STARTUP_TRIALS);
        let default = keys.get(TRIALS).map_or(DEFAULT_STARTUP_TRIALS, third);
        Ok(Self { startup_trials: keys.get(STARTUP_TRIALS).unwrap_or(default) })
    }
}

impl Sampler for Tpe {
    fn check(&self, searched: &SearchedSpace<'_>) -> Result<(), Problem> {
        if searched.objectives.len() > 1 {
            let message = "`tpe` looks at one objective: keep one, or use \"random\" or \"sobol\"";
            return Err(Problem::new("sampler", message));
        }
        let all_random =
            searched.limits.trials.filter(|trials| self.startup_trials >= *trials && *trials > 1);
        let message = match (self.startup_trials, all_random) {
            (0, _) => "`startup_trials` must be at least 1: tpe learns from results".to_owned(),
            (_, Some(trials)) => format!(
                "all {trials} trials would be random: lower `startup_trials`, or use `sampler = \"random\"`"
            ),
            (_, None) => return Ok(()),
        };
        Err(Problem::new(STARTUP_TRIALS.name, message))
    }

    fn propose(&self, next: &NextTrial<'_>) -> Option<Assignment> {
        let observations = (next.observations)();
        let startup = usize::try_from(self.startup_trials).unwrap_or(usize::MAX).max(1);
        if observations.len() < startup {
            return Some(random(next.space, next.seed, next.id));
        }
        Some(propose(next.space, next.seed, next.id, observations))
    }

    fn azure_ml(&self, _seed: u64) -> Result<Value, Inexpressible> {
        Err(Inexpressible::new("the service has no TPE sampler"))
    }
}

const CANDIDATES: usize = 24;
const MOST_GOOD: usize = 25;
/// The mean of the prior.
const PRIOR: f64 = 0.5;

fn propose(space: &Space, seed: u64, trial: TrialId, mut observations: Vec<Observation<'_>>) -> Assignment {
    // The order of trials decides between equal ones.
    observations.sort_by(|a, b| a.loss.total_cmp(&b.loss));
    let (good, bad) = observations.split_at(observations.len().div_ceil(10).min(MOST_GOOD));
    space.assign(|index, parameter| {
        let mut rng = stream(seed, trial, index);
        let values = |observations: &[Observation<'_>]| -> Vec<ParameterValue> {
            observations.iter().filter_map(|one| one.parameters.get(&parameter.name)).cloned().collect()
        };
        let (good, bad) = (values(good), values(bad));
        match &parameter.distribution {
            Distribution::Choice(choices) => choose(choices, &good, &bad, &mut rng),
            numbers => {
                let units = |values: &[ParameterValue]| -> Vec<f64> {
                    values.iter().filter_map(|value| numbers.unit(value)).collect()
                };
                let (good, bad) = (Parzen::new(units(&good)), Parzen::new(units(&bad)));
                let draws = (0..CANDIDATES).map(|_| good.draw(&mut rng));
                numbers.quantile(best(draws, |unit| good.density(*unit) / bad.density(*unit))?)
            }
        }
    })
}

/// The candidate with the highest score, the first of equal ones.
fn best<T>(candidates: impl Iterator<Item = T>, score: impl Fn(&T) -> f64) -> Option<T> {
    let scored = candidates.map(|candidate| (score(&candidate), candidate));
    scored.reduce(|best, next| if next.0 > best.0 { next } else { best }).map(|(_, candidate)| candidate)
}

#[allow(clippy::cast_precision_loss, reason = "counts of trials")]
fn choose(
    choices: &[ParameterValue],
    good: &[ParameterValue],
    bad: &[ParameterValue],
    rng: &mut Rng,
) -> Option<ParameterValue> {
    let weights = |values: &[ParameterValue]| -> Vec<f64> {
        let count = |choice| values.iter().filter(|value| *value == choice).count();
        choices
            .iter()
            .map(|choice| (count(choice) + 1) as f64 / (values.len() + choices.len()) as f64)
            .collect()
    };
    let (good, bad) = (weights(good), weights(bad));
    let draws: Vec<usize> = (0..CANDIDATES).map(|_| pick(&good, rng.unit())).collect();
    let ratio = |index: &usize| good.get(*index).unwrap_or(&0.0) / bad.get(*index).unwrap_or(&1.0);
    choices.get(best(draws.into_iter(), ratio)?).cloned()
}

/// The index at which the sum of weights reaches a share of one.
fn pick(weights: &[f64], share: f64) -> usize {
    let mut left = share;
    let reached = weights.iter().position(|weight| {
        left -= weight;
        left <= 0.0
    });
    reached.unwrap_or(weights.len().saturating_sub(1))
}

/// A density on the unit interval.
struct Parzen {
    /// Mean, deviation, and the share of the normal distribution within the interval. The uniform prior is one more.
    kernels: Vec<(f64, f64, f64)>,
}

impl Parzen {
    #[allow(clippy::cast_precision_loss, reason = "counts of trials")]
    fn new(mut units: Vec<f64>) -> Self {
        units.push(PRIOR);
        units.sort_by(f64::total_cmp);
        let smallest = 1.0 / (units.len() as f64).min(100.0);
        let neighbors = |index: usize, unit: f64| {
            let left = index.checked_sub(1).and_then(|left| units.get(left)).map_or(0.0, |left| unit - left);
            let right = units.get(index + 1).map_or(0.0, |right| right - unit);
            left.max(right)
        };
        let kernel = |(index, &mean): (usize, &f64)| {
            let deviation = neighbors(index, mean).clamp(smallest, 1.0);
            let inside = normal::cdf((1.0 - mean) / deviation) - normal::cdf(-mean / deviation);
            (mean, deviation, inside)
        };
        // The prior itself is uniform.
        let prior = units.iter().position(|unit| *unit == PRIOR);
        let observed = units.iter().enumerate().filter(|(index, _)| Some(*index) != prior);
        Self { kernels: observed.map(kernel).collect() }
    }

    fn draw(&self, rng: &mut Rng) -> f64 {
        let number = usize::try_from(rng.below(self.kernels.len() as u64 + 1)).unwrap_or(usize::MAX);
        let share = rng.unit();
        match self.kernels.get(number) {
            None => share,
            Some((mean, deviation, inside)) => {
                let below = normal::cdf(-mean / deviation);
                (mean + deviation * normal::quantile(below + share * inside)).clamp(0.0, 1.0)
            }
        }
    }

    #[allow(clippy::cast_precision_loss, reason = "counts of trials")]
    fn density(&self, unit: f64) -> f64 {
        let kernels = self.kernels.iter();
        let sum: f64 = kernels
            .map(|(mean, deviation, inside)| {
                normal::density((unit - mean) / deviation) / (deviation * inside)
            })
            .sum();
        (sum + 1.0) / (self.kernels.len() as f64 + 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_density_sums_to_one() {
        for units in [vec![], vec![0.5], vec![0.0, 0.01, 0.02, 1.0], vec![0.3; 40]] {
            let density = Parzen::new(units.clone());
            let sum: f64 = (0..10_000).map(|step| density.density((f64::from(step) + 0.5) / 10_000.0)).sum();
            assert!((sum / 10_000.0 - 1.0).abs() < 1e-3, "{units:?}: {sum}");
        }
    }

    #[test]
    fn draws_follow_the_density() {
        let density = Parzen::new(vec![0.2, 0.21, 0.22, 0.8]);
        let mut rng = Rng::new(1);
        let draws: Vec<f64> = (0..20_000).map(|_| density.draw(&mut rng)).collect();
        for tenth in 0..10 {
            let (low, high) = (f64::from(tenth) / 10.0, f64::from(tenth + 1) / 10.0);
            let expected: f64 =
                (0..100).map(|step| density.density(low + (f64::from(step) + 0.5) / 1000.0)).sum::<f64>()
                    / 1000.0;
            let found = draws.iter().filter(|draw| (low..high).contains(*draw)).count();
            #[allow(clippy::cast_precision_loss, reason = "small")]
            let found = found as f64 / 20_000.0;
            assert!((found - expected).abs() < 0.015, "{low}: {found} {expected}");
        }
    }
}
