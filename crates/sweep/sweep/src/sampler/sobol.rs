//! Sobol sequences: points that cover a space more evenly than random ones.
//!
//! A parameter is a dimension. The direction numbers are those of S. Joe and F. Y. Kuo, "Constructing Sobol sequences with
//! better two-dimensional projections" (2008), set D(6). Each dimension is shifted by a random number of the seed
//! (digital shift), which keeps the points as even as they are.

use serde_json::{Value, json};

use super::interface::{NextTrial, Sampler, SearchedSpace, azure_ml_seed, stream};
use crate::config::problem::{Inexpressible, Problem};
use crate::space::{Assignment, Space};
use crate::trial_id::TrialId;

/// A scrambled quasi-random sequence, which covers the space more evenly.
pub(super) struct Sobol;

impl Sobol {
    pub(super) const SUMMARY: &str = "A quasi-random sequence that covers the space evenly.";
}

impl Sampler for Sobol {
    fn check(&self, searched: &SearchedSpace<'_>) -> Result<(), Problem> {
        let count = searched.space.parameters.len();
        if count <= SOBOL_DIMENSIONS {
            return Ok(());
        }
        let message = format!(
            "`sobol` supports {SOBOL_DIMENSIONS} parameters, and there are {count}: use \"random\" or \"tpe\""
        );
        Err(Problem::new("sampler", message))
    }

    fn propose(&self, next: &NextTrial<'_>) -> Option<Assignment> {
        Some(point(next.space, next.seed, next.id))
    }

    fn azure_ml(&self, seed: u64) -> Result<Value, Inexpressible> {
        Ok(json!({"type": "random", "rule": "sobol", "seed": azure_ml_seed(seed)}))
    }
}

/// Maximum number of parameters of a space that is sampled by a Sobol sequence.
pub const SOBOL_DIMENSIONS: usize = ROWS.len() + 1;

/// A row of the table: the coefficients of a primitive polynomial without the first and the last, which are one, and the
/// first direction numbers, of which there are as many as the degree of the polynomial.
type Row = (u32, &'static [u32]);

/// Dimensions from the second on; the first has only ones.
const ROWS: [Row; 31] = [
    (0, &[1]),
    (1, &[1, 3]),
    (1, &[1, 3, 1]),
    (2, &[1, 1, 1]),
    (1, &[1, 1, 3, 3]),
    (4, &[1, 3, 5, 13]),
    (2, &[1, 1, 5, 5, 17]),
    (4, &[1, 1, 5, 5, 5]),
    (7, &[1, 1, 7, 11, 19]),
    (11, &[1, 1, 5, 1, 1]),
    (13, &[1, 1, 1, 3, 11]),
    (14, &[1, 3, 5, 5, 31]),
    (1, &[1, 3, 3, 9, 7, 49]),
    (13, &[1, 1, 1, 15, 21, 21]),
    (16, &[1, 3, 1, 13, 27, 49]),
    (19, &[1, 1, 1, 15, 7, 5]),
    (22, &[1, 3, 1, 15, 13, 25]),
    (25, &[1, 1, 5, 5, 19, 61]),
    (1, &[1, 3, 7, 11, 23, 15, 103]),
    (4, &[1, 3, 7, 13, 13, 15, 69]),
    (7, &[1, 1, 3, 13, 7, 35, 63]),
    (8, &[1, 3, 5, 9, 1, 25, 53]),
    (14, &[1, 3, 1, 13, 9, 35, 107]),
    (19, &[1, 3, 1, 5, 27, 61, 31]),
    (21, &[1, 1, 5, 11, 19, 41, 61]),
    (28, &[1, 3, 5, 3, 3, 13, 69]),
    (31, &[1, 1, 7, 13, 1, 19, 1]),
    (32, &[1, 3, 7, 5, 13, 19, 59]),
    (37, &[1, 1, 3, 9, 25, 29, 41]),
    (41, &[1, 3, 5, 13, 23, 1, 55]),
    (42, &[1, 3, 7, 3, 13, 59, 17]),
];

const BITS: usize = 32;

/// The point of a trial.
fn point(space: &Space, seed: u64, trial: TrialId) -> Assignment {
    space.assign(|index, parameter| {
        #[allow(clippy::cast_possible_truncation, reason = "the lower half is as random")]
        let shift = stream(seed, TrialId(u32::MAX), index).next_u64() as u32;
        // The middle of the smallest interval, so that no point is at an end.
        let unit = (f64::from(coordinate(trial.0, index) ^ shift) + 0.5) / 2_f64.powi(32);
        parameter.distribution.quantile(unit)
    })
}

/// A coordinate of a point, in units of 2^-32.
fn coordinate(point: u32, dimension: usize) -> u32 {
    let directions = directions(dimension);
    directions
        .iter()
        .enumerate()
        .filter(|(bit, _)| point >> bit & 1 == 1)
        .fold(0, |sum, (_, direction)| sum ^ direction)
}

/// The direction number of each bit.
fn directions(dimension: usize) -> [u32; BITS] {
    let row = dimension.checked_sub(1).and_then(|row| ROWS.get(row));
    let (coefficients, first) = row.copied().unwrap_or((0, &[]));
    let degree = first.len();
    let mut numbers = [0_u32; BITS];
    for bit in 0..BITS {
        let number = match (first.get(bit), bit.checked_sub(degree)) {
            _ if degree == 0 => 1 << (31 - bit),
            (Some(number), _) => number << (31 - bit),
            (None, start) => {
                let at = |back: usize| numbers.get(bit - back).copied().unwrap_or(0);
                let oldest = start.and_then(|start| numbers.get(start)).copied().unwrap_or(0);
                // The coefficient of each power between the first and the last.
                let taps = (1..degree).filter(|back| coefficients >> (degree - 1 - back) & 1 == 1);
                taps.fold(oldest ^ (oldest >> degree), |sum, back| sum ^ at(back))
            }
        };
        if let Some(slot) = numbers.get_mut(bit) {
            *slot = number;
        }
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Joe and Kuo's own example of the first ten points in three dimensions, in their order by Gray code.
    #[test]
    fn the_first_points_are_those_that_were_published() {
        let published = [
            [0.0, 0.0, 0.0],
            [0.5, 0.5, 0.5],
            [0.75, 0.25, 0.25],
            [0.25, 0.75, 0.75],
            [0.375, 0.375, 0.625],
            [0.875, 0.875, 0.125],
            [0.625, 0.125, 0.875],
            [0.125, 0.625, 0.375],
            [0.1875, 0.3125, 0.9375],
            [0.6875, 0.8125, 0.4375],
        ];
        for (number, expected) in (0_u32..).zip(published) {
            let gray = number ^ (number >> 1);
            let found = [0, 1, 2].map(|dimension| coordinate(gray, dimension));
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "below 2^32")]
            let expected = expected.map(|coordinate: f64| (coordinate * 2_f64.powi(32)) as u32);
            assert_eq!(found, expected, "point {number}");
        }
    }

    #[test]
    fn every_dimension_has_one_point_in_each_of_its_intervals() {
        for dimension in 0..SOBOL_DIMENSIONS {
            let mut seen: Vec<u32> = (0..1024).map(|point| coordinate(point, dimension) >> 22).collect();
            seen.sort_unstable();
            assert!(seen.iter().copied().eq(0..1024), "dimension {dimension}");
        }
    }
}
