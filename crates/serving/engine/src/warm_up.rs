//! Warm-up batches.

use std::time::Duration;

use cudock_tensor::{Signature, elements};

use crate::{EngineError, Lane};

/// Runs a batch of zeros for each row count, so that memory is allocated, algorithms are chosen and CUDA graphs are
/// captured before the first request. Dynamic dimensions are set to one; a model that fails with them is not warmed up:
/// only an engine that died or timed out is an error. Returns the row counts that ran.
///
/// Largest first: its memory is enough for the others.
pub fn warm_up(
    lane: &mut dyn Lane,
    signature: &Signature,
    rows: &[usize],
    limit: Duration,
) -> Result<Vec<usize>, EngineError> {
    let mut rows = if signature.batched { rows.to_vec() } else { vec![1] };
    rows.sort_unstable();
    rows.dedup();
    let mut ran = Vec::new();
    for &rows in rows.iter().rev().filter(|rows| **rows > 0) {
        match run_zeros(lane, signature, rows, limit) {
            Err(error) if error.is_fatal() => return Err(error),
            Err(_) => {}
            Ok(()) => ran.push(rows),
        }
    }
    Ok(ran)
}

fn run_zeros(
    lane: &mut dyn Lane,
    signature: &Signature,
    rows: usize,
    limit: Duration,
) -> Result<(), EngineError> {
    for (index, spec) in signature.inputs.iter().enumerate() {
        let open = |index: usize| if signature.batched && index == 0 { rows } else { 1 };
        let shape: Vec<usize> =
            spec.shape.iter().enumerate().map(|(index, size)| size.unwrap_or_else(|| open(index))).collect();
        // An empty string is four bytes of length, all zero.
        let size = spec.dtype.size().unwrap_or(4);
        let bytes = elements(&shape).and_then(|elements| elements.checked_mul(size)).ok_or_else(|| {
            EngineError::Failed(format!("input {:?} of {shape:?} cannot be counted", spec.name))
        })?;
        lane.input(index, &shape, bytes)?.fill(0);
    }
    lane.run(limit).map(drop)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use cudock_tensor::{DType, Signature, TensorSpec};

    use super::warm_up;
    use crate::{EngineError, Lane, OutputView};

    #[derive(Default)]
    struct MockLane {
        room: Vec<u8>,
        inputs: Vec<(usize, Vec<usize>, usize)>,
        runs: usize,
        dies: bool,
        /// Maximum number of rows with which it does not fail.
        fits: usize,
    }

    impl Lane for MockLane {
        fn input(&mut self, index: usize, shape: &[usize], bytes: usize) -> Result<&mut [u8], EngineError> {
            self.inputs.push((index, shape.to_vec(), bytes));
            self.room = vec![7; bytes];
            Ok(&mut self.room)
        }

        fn run_while(
            &mut self,
            _limit: Duration,
            _is_wanted: &dyn Fn() -> bool,
        ) -> Result<Vec<OutputView<'_>>, EngineError> {
            self.runs += 1;
            assert!(self.room.iter().all(|byte| *byte == 0));
            if self.inputs.last().is_some_and(|(_, shape, _)| shape[0] <= self.fits) {
                return Ok(Vec::new());
            }
            Err(if self.dies { EngineError::Died("x".into()) } else { EngineError::Failed("y".into()) })
        }
    }

    fn signature(batched: bool) -> Signature {
        let floats = TensorSpec::new("x", DType::F32, [None, Some(3), None]);
        let inputs = vec![floats, TensorSpec::new("s", DType::String, [None])];
        Signature { inputs, outputs: vec![], batched }
    }

    #[test]
    fn every_row_count_is_run_once_the_largest_first() {
        let mut lane = MockLane::default();
        assert!(warm_up(&mut lane, &signature(true), &[1, 4, 0, 4], Duration::ZERO).is_ok());
        let expected = [(0, vec![4, 3, 1], 48), (1, vec![4], 16), (0, vec![1, 3, 1], 12), (1, vec![1], 4)];
        assert_eq!(lane.inputs, expected);
    }

    #[test]
    fn a_model_without_rows_is_run_once() {
        let mut lane = MockLane::default();
        assert!(warm_up(&mut lane, &signature(false), &[2, 4], Duration::ZERO).is_ok());
        assert_eq!(lane.runs, 1);
    }

    #[test]
    fn row_counts_that_fail_are_left_out() {
        let mut lane = MockLane { fits: 4, ..MockLane::default() };
        assert_eq!(warm_up(&mut lane, &signature(true), &[1, 8, 4], Duration::ZERO).unwrap(), [4, 1]);
    }

    #[test]
    fn an_engine_that_dies_is_an_error_at_once() {
        let mut lane = MockLane { dies: true, ..MockLane::default() };
        let outcome = warm_up(&mut lane, &signature(true), &[1, 2], Duration::ZERO);
        assert!(matches!(outcome, Err(EngineError::Died(_))));
        assert_eq!(lane.runs, 1);
    }
}
