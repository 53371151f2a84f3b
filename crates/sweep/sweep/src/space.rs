//! The search space: parameters, their distributions, and the conditions under which they exist.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::normal;
use crate::parameter_value::ParameterValue;

/// The values of one trial, by parameter. Parameters whose condition does not hold are absent.
pub type Assignment = BTreeMap<String, ParameterValue>;

/// A validated search space. Parents come before the parameters that depend on them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Space {
    pub parameters: Vec<Parameter>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Parameter {
    pub name: String,
    pub distribution: Distribution,
    /// All of them must hold; empty if the parameter always exists.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// The parent exists and has one of the values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Condition {
    pub parent: String,
    pub values: Vec<ParameterValue>,
}

/// The values that a parameter takes. Bounds are inclusive, except `end`.
///
/// Quantized values are the multiples of `step` within the bounds; they are integers if the step is a whole number, so
/// that programs can parse them as such.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Distribution {
    Choice(Vec<ParameterValue>),
    Uniform {
        min: f64,
        max: f64,
    },
    LogUniform {
        min: f64,
        max: f64,
    },
    QUniform {
        min: f64,
        max: f64,
        step: f64,
    },
    QLogUniform {
        min: f64,
        max: f64,
        step: f64,
    },
    Normal {
        mean: f64,
        deviation: f64,
    },
    /// Its logarithm has a normal distribution.
    LogNormal {
        mean: f64,
        deviation: f64,
    },
    QNormal {
        mean: f64,
        deviation: f64,
        step: f64,
    },
    QLogNormal {
        mean: f64,
        deviation: f64,
        step: f64,
    },
    /// Integers from `start` to `end - 1`.
    RandInt {
        start: i64,
        end: i64,
    },
}

impl Space {
    /// Values for all parameters whose conditions hold, parents first.
    pub(crate) fn assign(
        &self,
        mut value: impl FnMut(usize, &Parameter) -> Option<ParameterValue>,
    ) -> Assignment {
        let mut assignment = Assignment::new();
        for (index, parameter) in self.parameters.iter().enumerate() {
            if parameter.is_active(&assignment)
                && let Some(value) = value(index, parameter)
            {
                assignment.insert(parameter.name.clone(), value);
            }
        }
        assignment
    }
}

impl Parameter {
    /// Whether its conditions hold, given the parameters before it.
    pub fn is_active(&self, assignment: &Assignment) -> bool {
        let holds = |condition: &Condition| {
            assignment.get(&condition.parent).is_some_and(|value| condition.values.contains(value))
        };
        self.conditions.iter().all(holds)
    }
}

impl Distribution {
    /// The value below which a share `unit` of all draws lies: maps the unit interval to values of this distribution.
    pub(crate) fn quantile(&self, unit: f64) -> Option<ParameterValue> {
        let unit = unit.clamp(0.0, 1.0);
        // Not `clamp`, which panics if a journal has the bounds the wrong way round.
        let between = |min: f64, max: f64| (min + unit * (max - min)).max(min).min(max);
        let log_between = |min: f64, max: f64| between(min.ln(), max.ln()).exp().max(min).min(max);
        Some(match *self {
            Self::Choice(ref values) => values.get(index(unit, values.len()))?.clone(),
            Self::Uniform { min, max } => ParameterValue::Float(between(min, max)),
            Self::LogUniform { min, max } => ParameterValue::Float(log_between(min, max)),
            Self::QUniform { min, max, step } => within(between(min, max), min, max, step),
            Self::QLogUniform { min, max, step } => within(log_between(min, max), min, max, step),
            Self::Normal { mean, deviation } => {
                ParameterValue::Float(mean + deviation * normal::quantile(unit))
            }
            Self::LogNormal { mean, deviation } => {
                ParameterValue::Float((mean + deviation * normal::quantile(unit)).exp())
            }
            Self::QNormal { mean, deviation, step } => {
                multiple((mean + deviation * normal::quantile(unit)) / step, step)
            }
            Self::QLogNormal { mean, deviation, step } => {
                multiple((mean + deviation * normal::quantile(unit)).exp() / step, step)
            }
            Self::RandInt { start, end } => {
                let count = usize::try_from(end.saturating_sub(start)).unwrap_or(usize::MAX);
                let offset = i64::try_from(index(unit, count)).unwrap_or(i64::MAX);
                ParameterValue::Int(start.saturating_add(offset))
            }
        })
    }

    /// The share of draws below a value: the inverse of [`quantile`](Self::quantile), in the middle of the draws that give
    /// the value where there are several. None for a choice and for values of another type.
    pub(crate) fn unit(&self, value: &ParameterValue) -> Option<f64> {
        let x = value.as_number()?;
        let share = |x: f64, min: f64, max: f64| if max > min { (x - min) / (max - min) } else { 0.5 };
        let unit = match *self {
            Self::Choice(_) => return None,
            Self::Uniform { min, max } | Self::QUniform { min, max, .. } => share(x, min, max),
            Self::LogUniform { min, max } | Self::QLogUniform { min, max, .. } => {
                share(x.ln(), min.ln(), max.ln())
            }
            Self::Normal { mean, deviation } | Self::QNormal { mean, deviation, .. } => {
                normal::cdf((x - mean) / deviation)
            }
            Self::LogNormal { mean, deviation } => normal::cdf((x.ln() - mean) / deviation),
            // Zero stands for what is rounded to it.
            Self::QLogNormal { mean, deviation, step } => {
                normal::cdf((x.max(step / 4.0).ln() - mean) / deviation)
            }
            #[allow(clippy::cast_precision_loss, reason = "a share of a range")]
            Self::RandInt { start, end } => {
                (x - start as f64 + 0.5) / (end.saturating_sub(start).max(1)) as f64
            }
        };
        unit.is_finite().then(|| unit.clamp(0.0, 1.0))
    }

    /// The number of values; none if there are infinitely or too many.
    pub(crate) fn count(&self) -> Option<u64> {
        match *self {
            Self::Choice(ref values) => Some(values.len() as u64),
            Self::RandInt { start, end } => u64::try_from(end.checked_sub(start)?).ok(),
            Self::QUniform { min, max, step } | Self::QLogUniform { min, max, step } => {
                let (first, last) = multiples(min, max, step);
                #[allow(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "in range, as checked"
                )]
                (first.abs() < 1e15 && (first..first + 1e15).contains(&last))
                    .then(|| (last - first) as u64 + 1)
            }
            _ => None,
        }
    }

    /// The value with a number below [`count`](Self::count).
    pub(crate) fn nth(&self, number: u64) -> Option<ParameterValue> {
        match *self {
            Self::Choice(ref values) => values.get(usize::try_from(number).ok()?).cloned(),
            Self::RandInt { start, .. } => Some(ParameterValue::Int(start.checked_add_unsigned(number)?)),
            Self::QUniform { min, max, step } | Self::QLogUniform { min, max, step } => {
                #[allow(clippy::cast_possible_truncation, reason = "saturates")]
                let first = multiples(min, max, step).0 as i64;
                Some(multiple_of(first.checked_add_unsigned(number)?, step))
            }
            _ => None,
        }
    }

    /// Whether it can have a value.
    pub(crate) fn contains(&self, value: &ParameterValue) -> bool {
        match self {
            Self::Choice(values) => values.contains(value),
            _ => self.count().is_some_and(|count| {
                self.unit(value).and_then(|unit| self.quantile(unit)).as_ref() == Some(value) && count > 0
            }),
        }
    }
}

/// The number of the first and of the last multiple of a step within bounds; none if the last is smaller. Bounds are
/// widened by rounding errors: 0.3 is a multiple of 0.1.
pub(crate) fn multiples(min: f64, max: f64, step: f64) -> (f64, f64) {
    ((min / step - 1e-9).ceil(), (max / step + 1e-9).floor())
}

fn within(x: f64, min: f64, max: f64, step: f64) -> ParameterValue {
    let (first, last) = multiples(min, max, step);
    multiple((x / step).min(last).max(first), step)
}

/// The multiple of a step that is nearest to `count` times the step.
#[allow(clippy::cast_possible_truncation, reason = "saturates")]
fn multiple(count: f64, step: f64) -> ParameterValue {
    multiple_of(count.round() as i64, step)
}

#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "exact for whole steps below 2^53, and a small number of digits"
)]
fn multiple_of(count: i64, step: f64) -> ParameterValue {
    if step.fract() == 0.0 && step.abs() < 1e15 {
        return ParameterValue::Int(count.saturating_mul(step as i64));
    }
    // Rounding to the digits of the step makes 3 x 0.1 the 0.3 that people write.
    let value = count as f64 * step;
    let digits = (2.0 - step.log10().floor()).clamp(0.0, 15.0) as usize;
    let rounded: f64 = format!("{value:.digits$}").parse().unwrap_or(value);
    ParameterValue::Float(if (rounded - value).abs() <= value.abs() * 1e-12 { rounded } else { value })
}

#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "from 0 to the count"
)]
fn index(unit: f64, count: usize) -> usize {
    ((unit * count as f64) as usize).min(count.saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unit_interval_covers_each_distribution_from_end_to_end() {
        let (int, float) = (ParameterValue::Int, ParameterValue::Float);
        for (distribution, low, middle, high) in [
            (Distribution::Uniform { min: -1.0, max: 3.0 }, float(-1.0), float(1.0), float(3.0)),
            (Distribution::QUniform { min: 1.0, max: 10.0, step: 4.0 }, int(4), int(4), int(8)),
            (Distribution::QUniform { min: 0.1, max: 0.5, step: 0.1 }, float(0.1), float(0.3), float(0.5)),
            (Distribution::QLogUniform { min: 16.0, max: 256.0, step: 16.0 }, int(16), int(64), int(256)),
            (Distribution::RandInt { start: -2, end: 3 }, int(-2), int(0), int(2)),
            (
                Distribution::Choice(vec![ParameterValue::Bool(true), ParameterValue::Bool(false)]),
                ParameterValue::Bool(true),
                ParameterValue::Bool(false),
                ParameterValue::Bool(false),
            ),
        ] {
            assert_eq!(distribution.quantile(0.0), Some(low), "{distribution:?}");
            assert_eq!(distribution.quantile(0.5), Some(middle), "{distribution:?}");
            assert_eq!(distribution.quantile(1.0), Some(high), "{distribution:?}");
        }
        assert_eq!(Distribution::LogUniform { min: 1e-4, max: 1e-4 }.quantile(0.3), Some(float(1e-4)));
    }

    #[test]
    fn the_unit_of_a_value_leads_back_to_it() {
        for distribution in [
            Distribution::Uniform { min: -1.0, max: 3.0 },
            Distribution::LogUniform { min: 1e-5, max: 1e-1 },
            Distribution::QUniform { min: 0.0, max: 7.0, step: 0.5 },
            Distribution::QLogUniform { min: 1.0, max: 512.0, step: 1.0 },
            Distribution::Normal { mean: 3.0, deviation: 0.1 },
            Distribution::LogNormal { mean: 0.0, deviation: 2.0 },
            Distribution::QNormal { mean: 0.0, deviation: 10.0, step: 1.0 },
            Distribution::RandInt { start: 5, end: 25 },
        ] {
            for hundredth in 1..100 {
                let value = distribution.quantile(f64::from(hundredth) / 100.0).unwrap();
                let unit = distribution.unit(&value).unwrap();
                let again = distribution.quantile(unit).unwrap();
                let (a, b) = (value.as_number().unwrap(), again.as_number().unwrap());
                assert!((a - b).abs() <= a.abs().max(1.0) * 1e-5, "{distribution:?}: {value:?} {again:?}");
            }
        }
    }

    #[test]
    fn finite_distributions_count_their_values() {
        for (distribution, count) in [
            (Distribution::RandInt { start: 0, end: 4 }, Some(4)),
            (Distribution::QUniform { min: 0.1, max: 0.5, step: 0.1 }, Some(5)),
            (Distribution::QLogUniform { min: 1.0, max: 8.0, step: 2.0 }, Some(4)),
            (Distribution::RandInt { start: i64::MIN, end: i64::MAX }, None),
            (Distribution::Uniform { min: 0.0, max: 1.0 }, None),
        ] {
            assert_eq!(distribution.count(), count, "{distribution:?}");
            for number in 0..count.unwrap_or(0) {
                assert!(
                    distribution.contains(&distribution.nth(number).unwrap()),
                    "{distribution:?} {number}"
                );
            }
        }
        assert!(!Distribution::RandInt { start: 0, end: 4 }.contains(&ParameterValue::Int(4)));
    }
}
