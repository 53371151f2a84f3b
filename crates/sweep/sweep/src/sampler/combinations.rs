//! The combinations of a finite space.

use crate::space::{Assignment, Space};
use crate::trial_id::TrialId;

/// Combinations, counted before conditions exclude some, that are enumerated at most.
pub(crate) const MAX_COMBINATIONS: u64 = 1_000_000;

/// The combinations of a finite space. The first parameter changes slowest.
#[derive(Debug, Clone, Default)]
pub(crate) struct Combinations {
    /// Each number is a combination in mixed radix, the last parameter first. A parameter that does not exist has its
    /// first value there, so combinations that differ only in such parameters are counted once.
    combinations: Vec<u64>,
}

impl Combinations {
    /// None if a parameter has infinitely many values, or there are too many combinations.
    pub(crate) fn new(space: &Space) -> Option<Self> {
        let total = raw_combinations(space)?;
        if total > MAX_COMBINATIONS {
            return None;
        }
        let is_conditional = space.parameters.iter().any(|parameter| !parameter.conditions.is_empty());
        let is_canonical =
            |&number: &u64| !is_conditional || decode(space, number).is_some_and(|(_, unused)| !unused);
        Some(Self { combinations: (0..total).filter(is_canonical).collect() })
    }

    pub(crate) fn len(&self) -> usize {
        self.combinations.len()
    }

    pub(crate) fn get(&self, space: &Space, trial: TrialId) -> Option<Assignment> {
        let number = self.combinations.get(usize::try_from(trial.0).ok()?)?;
        decode(space, *number).map(|(assignment, _)| assignment)
    }
}

/// The product of the numbers of values; none if a parameter has infinitely many.
pub(crate) fn raw_combinations(space: &Space) -> Option<u64> {
    space
        .parameters
        .iter()
        .try_fold(1_u64, |product, parameter| Some(product.saturating_mul(parameter.distribution.count()?)))
}

/// The values of a combination, and whether a parameter that does not exist has another than its first.
fn decode(space: &Space, mut number: u64) -> Option<(Assignment, bool)> {
    let mut digits = Vec::with_capacity(space.parameters.len());
    for parameter in space.parameters.iter().rev() {
        let count = parameter.distribution.count()?;
        digits.push(number % count.max(1));
        number /= count.max(1);
    }
    digits.reverse();
    let mut digits_used = vec![false; digits.len()];
    let assignment = space.assign(|index, parameter| {
        *digits_used.get_mut(index)? = true;
        parameter.distribution.nth(*digits.get(index)?)
    });
    let unused = digits.iter().zip(&digits_used).any(|(digit, used)| !used && *digit > 0);
    Some((assignment, unused))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameter_value::ParameterValue;
    use crate::space::{Condition, Distribution, Parameter};

    #[test]
    fn a_parameter_that_does_not_exist_does_not_multiply_combinations() {
        let text = |text: &str| ParameterValue::Text(text.to_owned());
        let parameter = |name: &str, distribution, conditions| Parameter {
            name: name.to_owned(),
            distribution,
            conditions,
        };
        let space = Space {
            parameters: vec![
                parameter("optimizer", Distribution::Choice(vec![text("adam"), text("sgd")]), vec![]),
                parameter("layers", Distribution::RandInt { start: 1, end: 4 }, vec![]),
                parameter(
                    "momentum",
                    Distribution::QUniform { min: 0.8, max: 0.9, step: 0.1 },
                    vec![Condition { parent: "optimizer".to_owned(), values: vec![text("sgd")] }],
                ),
            ],
        };
        let combinations = Combinations::new(&space).unwrap();
        // Adam has 3 combinations, and SGD 3 x 2.
        let all: Vec<_> = (0..).map_while(|trial| combinations.get(&space, TrialId(trial))).collect();
        assert_eq!((combinations.len(), all.len()), (9, 9));
        let mut texts: Vec<String> = all.iter().map(|assignment| format!("{assignment:?}")).collect();
        texts.sort();
        texts.dedup();
        assert_eq!(texts.len(), 9);
        assert!(all.iter().all(|assignment| {
            assignment.contains_key("momentum") == (assignment.get("optimizer") == Some(&text("sgd")))
        }));
    }
}
