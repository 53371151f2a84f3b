//! How the results of a model change with its precision.

pub(crate) mod report;

use std::time::Duration;

use cudock_tensor::{Signature, TensorSpec, elements};

use crate::test_data::{TestData, floats};
use crate::{Difference, EngineError, Lane};

/// Sizes of dynamic dimensions other than rows that are tried in this order: a text, an image, and the least.
const DYNAMIC_SIZES: [usize; 3] = [16, 224, 1];

/// A batch with its results.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Shape and bytes of each input.
    pub inputs: Vec<(Vec<usize>, Vec<u8>)>,
    /// Shape and bytes of each output.
    pub outputs: Vec<(Vec<usize>, Vec<u8>)>,
}

/// Runs a batch of `rows` random rows: numbers of a normal distribution, and 0 or 1 for integers.
pub fn run_sample(
    lane: &mut dyn Lane,
    signature: &Signature,
    rows: usize,
    limit: Duration,
) -> Result<Sample, EngineError> {
    let mut failure = None;
    for size in DYNAMIC_SIZES {
        let inputs = random_inputs(signature, rows, size)
            .ok_or_else(|| EngineError::Failed("the inputs are too large".to_owned()))?;
        match Sample::run(inputs, lane, limit) {
            Err(error) if !error.is_fatal() => failure = failure.or(Some(error)),
            result => return result,
        }
    }
    Err(failure.unwrap_or_else(|| EngineError::Failed("the model has no inputs".to_owned())))
}

/// Maximum number of bytes of an input of a sample.
const MAX_INPUT: usize = 1 << 30;

fn random_inputs(signature: &Signature, rows: usize, dynamic: usize) -> Option<Vec<(Vec<usize>, Vec<u8>)>> {
    let input = |(index, spec): (usize, &TensorSpec)| {
        let size = |(dimension, size): (usize, &Option<usize>)| {
            size.unwrap_or(if dimension == 0 && signature.batched { rows } else { dynamic })
        };
        let shape: Vec<usize> = spec.shape.iter().enumerate().map(size).collect();
        let count = elements(&shape)?;
        count.checked_mul(spec.dtype.size().unwrap_or(5)).filter(|bytes| *bytes <= MAX_INPUT)?;
        let mut data = TestData::new(index as u64 + 1);
        let mut bytes = Vec::new();
        (0..count).for_each(|_| data.put(spec.dtype, TestData::normal, &mut bytes));
        Some((shape, bytes))
    };
    signature.inputs.iter().enumerate().map(input).collect()
}

impl Sample {
    fn run(
        inputs: Vec<(Vec<usize>, Vec<u8>)>,
        lane: &mut dyn Lane,
        limit: Duration,
    ) -> Result<Self, EngineError> {
        for (index, (shape, bytes)) in inputs.iter().enumerate() {
            lane.input(index, shape, bytes.len())?.copy_from_slice(bytes);
        }
        let outputs =
            lane.run(limit)?.into_iter().map(|output| (output.shape, output.data.to_vec())).collect();
        Ok(Self { inputs, outputs })
    }

    /// Runs the same inputs in another lane and compares the results.
    pub fn compare(
        &self,
        lane: &mut dyn Lane,
        signature: &Signature,
        limit: Duration,
    ) -> Result<Difference, EngineError> {
        let other = Self::run(self.inputs.clone(), lane, limit)?;
        let mut difference = Difference::default();
        for ((spec, expected), found) in signature.outputs.iter().zip(&self.outputs).zip(&other.outputs) {
            difference.add(spec, expected, found);
        }
        Ok(difference)
    }
}

impl Difference {
    fn add(&mut self, spec: &TensorSpec, expected: &(Vec<usize>, Vec<u8>), found: &(Vec<usize>, Vec<u8>)) {
        let ((expected_shape, expected), (found_shape, found)) = (expected, found);
        if expected_shape != found_shape {
            return self.add_share(0, 1);
        }
        let Some((expected, found)) = floats(spec.dtype, expected).zip(floats(spec.dtype, found)) else {
            let size = spec.dtype.size().unwrap_or(expected.len().max(1));
            let pairs = expected.chunks(size).zip(found.chunks(size));
            return self.add_share(pairs.clone().filter(|(one, other)| one == other).count(), pairs.count());
        };
        let largest = expected
            .iter()
            .filter(|value| value.is_finite())
            .fold(0.0_f64, |most, value| most.max(value.abs()));
        for (expected, found) in expected.iter().zip(&found) {
            if expected.is_finite() && found.is_finite() {
                let difference = (expected - found).abs();
                self.max_absolute = self.max_absolute.max(difference);
                if largest > 0.0 {
                    self.max_relative = self.max_relative.max(difference / largest);
                }
            } else if expected.is_finite() {
                self.not_finite.get_or_insert_with(|| spec.name.clone());
            }
        }
        if let &[rows, classes] = expected_shape.as_slice()
            && classes > 1
        {
            let pairs = expected.chunks(classes).zip(found.chunks(classes));
            self.add_share(
                pairs.filter(|(one, other)| largest_index(one) == largest_index(other)).count(),
                rows,
            );
        }
    }

    /// The smallest share of any output counts.
    fn add_share(&mut self, same: usize, all: usize) {
        if all > 0 {
            let share = to_f64(same) / to_f64(all);
            self.same_result = Some(self.same_result.map_or(share, |known| known.min(share)));
        }
    }
}

fn largest_index(scores: &[f64]) -> Option<usize> {
    (0..scores.len()).max_by(|&one, &other| {
        let score = |index: usize| scores.get(index).copied().unwrap_or(f64::NAN);
        score(one).total_cmp(&score(other))
    })
}

#[allow(clippy::cast_precision_loss, reason = "counts of elements in memory")]
fn to_f64(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use cudock_tensor::DType;

    use super::*;

    fn difference(dtype: DType, shape: &[usize], expected: &[u8], found: &[u8]) -> Difference {
        let spec = TensorSpec::new("y", dtype, vec![None; shape.len()]);
        let mut difference = Difference::default();
        difference.add(&spec, &(shape.to_vec(), expected.to_vec()), &(shape.to_vec(), found.to_vec()));
        difference
    }

    fn bytes(values: &[f32]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_le_bytes()).collect()
    }

    #[test]
    fn the_largest_difference_is_relative_to_the_largest_value() {
        let found =
            difference(DType::F32, &[4], &bytes(&[4.0, 0.0, 1.0, -2.0]), &bytes(&[4.0, 0.5, 1.0, -2.25]));
        let expected = Difference { max_absolute: 0.5, max_relative: 0.125, ..Difference::default() };
        assert_eq!(found, expected);
    }

    #[test]
    fn rows_of_scores_agree_if_their_largest_one_is_the_same() {
        let scores = [0.1, 0.9, 0.8, 0.2, 0.5, 0.6];
        let other = [0.2, 0.9, 0.1, 0.2, 0.4, 0.6];
        let found = difference(DType::F32, &[3, 2], &bytes(&scores), &bytes(&other));
        assert_eq!(found.same_result, Some(2.0 / 3.0));
        assert_eq!(difference(DType::U8, &[4], &[1, 2, 3, 4], &[1, 2, 3, 5]).same_result, Some(0.75));
    }

    #[test]
    fn an_infinity_counts_only_where_the_original_has_none() {
        let values = bytes(&[1.0, f32::INFINITY]);
        assert_eq!(difference(DType::F32, &[2], &values, &values).not_finite, None);
        let found = difference(DType::F32, &[2], &bytes(&[1.0, 2.0]), &bytes(&[1.0, f32::NAN]));
        assert_eq!(found.not_finite.as_deref(), Some("y"));
        assert!(found.max_absolute.abs() < f64::EPSILON, "{found:?}");
    }

    #[test]
    fn an_output_of_another_shape_does_not_agree() {
        let spec = TensorSpec::new("y", DType::I64, [None]);
        let mut difference = Difference::default();
        difference.add(&spec, &(vec![1], vec![0; 8]), &(vec![2], vec![0; 16]));
        assert_eq!(difference.same_result, Some(0.0));
    }

    #[test]
    fn a_model_is_tried_with_other_sizes_until_it_runs() {
        struct LongRows(Vec<usize>, Vec<u8>);
        impl Lane for LongRows {
            fn input(&mut self, _: usize, shape: &[usize], bytes: usize) -> Result<&mut [u8], EngineError> {
                self.0 = shape.to_vec();
                self.1.resize(bytes, 0);
                Ok(&mut self.1)
            }

            fn run_while(
                &mut self,
                _limit: Duration,
                _is_wanted: &dyn Fn() -> bool,
            ) -> Result<Vec<crate::OutputView<'_>>, EngineError> {
                if self.0.get(1).is_some_and(|size| *size < 100) {
                    return Err(EngineError::Failed("too short".to_owned()));
                }
                Ok(Vec::new())
            }
        }
        let inputs = vec![TensorSpec::new("x", DType::F32, [None, None])];
        let signature = Signature { inputs, outputs: Vec::new(), batched: true };
        let sample =
            run_sample(&mut LongRows(Vec::new(), Vec::new()), &signature, 3, Duration::ZERO).unwrap();
        let [(shape, bytes)] = sample.inputs.as_slice() else { panic!("one input") };
        assert_eq!(*shape, [3, 224]);
        let values = floats(DType::F32, bytes).unwrap();
        let mean = values.iter().sum::<f64>() / 672.0;
        let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / 672.0;
        assert!(mean.abs() < 0.1 && (variance - 1.0).abs() < 0.15, "mean {mean}, variance {variance}");
    }
}
