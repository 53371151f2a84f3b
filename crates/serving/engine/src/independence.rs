//! Checks whether the rows of a batch are independent.
//!
//! A model whose shapes allow any number of rows may still mix them: a softmax over the first axis, a normalization over
//! the batch. Requests of different clients must not share a batch of such a model. So the same row runs twice with
//! different other rows, in batches of the same size, so that the same kernels run: its result must not change.

use std::time::Duration;

use cudock_tensor::{DType, Signature, elements};

use crate::test_data::{TestData, floats};
use crate::{EngineError, Lane};

/// Rows of the batches that are compared.
const ROWS: usize = 2;
/// Tolerated difference, as a share of the largest value. Kernels that add in any order and quantization over a batch
/// cause less, mixed rows far more.
const TOLERANCE: f64 = 0.02;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RowCheck {
    Independent,
    /// Rows depend on each other, or outputs have no rows; which output shows it.
    Dependent(String),
    /// The model could not run with generated inputs.
    Unknown(String),
}

/// Runs a batched model twice with the same first row and different others. Only an engine that died or timed out is an
/// error.
pub fn check_rows(
    lane: &mut dyn Lane,
    signature: &Signature,
    limit: Duration,
) -> Result<RowCheck, EngineError> {
    let mut runs = Vec::new();
    for other_rows in [1, 2] {
        match first_row(lane, signature, other_rows, limit) {
            Ok(Ok(outputs)) => runs.push(outputs),
            Ok(Err(reason)) => return Ok(RowCheck::Dependent(reason)),
            Err(error) if error.is_fatal() => return Err(error),
            Err(error) => return Ok(RowCheck::Unknown(error.to_string())),
        }
    }
    let [one, other] = runs.as_slice() else { return Ok(RowCheck::Independent) };
    for ((spec, one), other) in signature.outputs.iter().zip(one).zip(other) {
        if differs(spec.dtype, one, other) {
            let reason = format!("output `{}` of a row changes with the other rows of its batch", spec.name);
            return Ok(RowCheck::Dependent(reason));
        }
    }
    Ok(RowCheck::Independent)
}

/// The first row of every output of a batch whose first row is always the same and whose others are generated from
/// `other_rows`; or the reason why the outputs have no rows.
fn first_row(
    lane: &mut dyn Lane,
    signature: &Signature,
    other_rows: u64,
    limit: Duration,
) -> Result<Result<Vec<Vec<u8>>, String>, EngineError> {
    for (index, spec) in signature.inputs.iter().enumerate() {
        let row: Vec<usize> = spec.shape.iter().skip(1).map(|size| size.unwrap_or(1)).collect();
        let count = elements(&row)
            .ok_or_else(|| EngineError::Failed(format!("input {:?} cannot be counted", spec.name)))?;
        let mut bytes = Vec::new();
        for row in 0..ROWS {
            let seed = if row == 0 { 0 } else { other_rows };
            let mut data = TestData::new((index as u64 + 1) << 8 | seed);
            (0..count).for_each(|_| data.put(spec.dtype, TestData::quarter, &mut bytes));
        }
        let shape: Vec<usize> = std::iter::once(ROWS).chain(row).collect();
        lane.input(index, &shape, bytes.len())?.copy_from_slice(&bytes);
    }
    let outputs = lane.run(limit)?;
    let row = outputs.iter().zip(&signature.outputs).map(|(output, spec)| {
        if output.shape.first() != Some(&ROWS) {
            return Err(format!("output `{}` has the shape {:?} for {ROWS} rows", spec.name, output.shape));
        }
        let length = match spec.dtype {
            DType::String => first_string_row(output.data, output.shape.get(1..).unwrap_or_default()),
            _ => output.data.len() / ROWS,
        };
        Ok(output.data.get(..length).unwrap_or_default().to_vec())
    });
    Ok(row.collect())
}

/// Size of the first row of a string tensor.
fn first_string_row(data: &[u8], row: &[usize]) -> usize {
    let mut at = 0;
    for _ in 0..elements(row).unwrap_or(0) {
        let length = data.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map(u32::from_le_bytes);
        let Some(length) = length else { return data.len() };
        at += 4 + length as usize;
    }
    at
}

fn differs(dtype: DType, one: &[u8], other: &[u8]) -> bool {
    let Some((one, other)) = floats(dtype, one).zip(floats(dtype, other)) else { return one != other };
    let largest = one
        .iter()
        .chain(&other)
        .filter(|value| value.is_finite())
        .fold(0.0_f64, |most, value| most.max(value.abs()));
    let same = |one: &f64, other: &f64| {
        one.to_bits() == other.to_bits()
            || (one.is_nan() && other.is_nan())
            || (one - other).abs() <= TOLERANCE * largest
    };
    one.len() != other.len() || !one.iter().zip(&other).all(|(one, other)| same(one, other))
}

#[cfg(test)]
mod tests {
    use half::f16;

    use super::*;

    #[test]
    fn rounding_is_not_a_difference() {
        let of = |values: &[f32]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
        assert!(!differs(DType::F32, &of(&[1.0, 0.5]), &of(&[1.001, 0.499])));
        assert!(!differs(DType::F32, &of(&[f32::NAN]), &of(&[f32::NAN])));
        assert!(differs(DType::F32, &of(&[1.0, 0.5]), &of(&[1.0, 0.6])));
        let half = |value: f32| f16::from_f32(value).to_le_bytes();
        assert!(!differs(DType::F16, &half(1.0), &half(1.01)) && differs(DType::F16, &half(1.0), &half(1.1)));
        assert!(differs(DType::I64, &[1; 8], &[2; 8]), "whole numbers are not rounded");
    }

    #[test]
    fn the_first_row_of_strings_ends_where_its_last_string_does() {
        let data = [2, 0, 0, 0, b'a', b'b', 0, 0, 0, 0, 1, 0, 0, 0, b'c'];
        assert_eq!(first_string_row(&data, &[2]), 10);
        assert_eq!(first_string_row(data.get(..3).unwrap(), &[2]), 3);
    }
}
