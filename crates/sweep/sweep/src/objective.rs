//! What a sweep minimizes or maximizes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A metric, and whether more of it is better.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ObjectiveOptions")]
pub struct Objective {
    pub metric: String,
    pub goal: Goal,
    /// A value that is good enough: the report says what was the cheapest way to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<f64>,
}

/// Whether less or more of a metric is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Goal {
    Minimize,
    Maximize,
}

/// Scores are values with the sign that makes higher ones better.
impl Goal {
    pub(crate) fn score(self, value: f64) -> f64 {
        match self {
            Self::Maximize => value,
            Self::Minimize => -value,
        }
    }

    pub(crate) fn unscore(self, score: f64) -> f64 {
        self.score(score)
    }

    /// The best of the finite values.
    pub fn best(self, values: impl Iterator<Item = f64>) -> Option<f64> {
        let better = |a: f64, b: f64| if self.score(b) > self.score(a) { b } else { a };
        values.filter(|value| value.is_finite()).reduce(better)
    }

    /// The value of a score, if there is one.
    pub(crate) fn finite(self, score: f64) -> Option<f64> {
        score.is_finite().then(|| self.unscore(score))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_value_is_finite() {
        let values = || [f64::NAN, 0.5, f64::INFINITY, 0.7].into_iter();
        assert_eq!(Goal::Maximize.best(values()), Some(0.7));
        assert_eq!(Goal::Minimize.best(values()), Some(0.5));
        assert_eq!(Goal::Minimize.best([f64::NAN].into_iter()), None);
    }
}
