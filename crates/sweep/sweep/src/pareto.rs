//! The Pareto front: results that no other is better than.

use crate::objective::Goal;

/// Whether a result is at least as good as another in each objective, and better in one.
pub fn dominates(a: &[f64], b: &[f64], goals: &[Goal]) -> bool {
    let mut is_better = false;
    for ((a, b), goal) in a.iter().zip(b).zip(goals) {
        let (a, b) = (goal.score(*a), goal.score(*b));
        if a < b {
            return false;
        }
        is_better |= a > b;
    }
    is_better
}

/// The indexes of the results that no other dominates.
pub fn pareto_front(results: &[&[f64]], goals: &[Goal]) -> Vec<usize> {
    let is_on_front = |result: &[f64]| !results.iter().any(|other| dominates(other, result, goals));
    results.iter().enumerate().filter(|(_, result)| is_on_front(result)).map(|(index, _)| index).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_front_has_what_nothing_beats() {
        let goals = [Goal::Maximize, Goal::Minimize];
        let results: [&[f64]; 5] = [&[0.9, 10.0], &[0.8, 5.0], &[0.8, 6.0], &[0.95, 20.0], &[0.9, 10.0]];
        assert_eq!(pareto_front(&results, &goals), [0, 1, 3, 4]);
        assert!(dominates(results[1], results[2], &goals));
        assert!(!dominates(results[0], results[4], &goals));
        assert!(pareto_front(&[], &goals).is_empty());
    }
}
