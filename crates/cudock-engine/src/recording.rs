//! Recording the launches of a batch (CUDA graphs), and what must not happen meanwhile.
//!
//! While a lane records, the driver lets nobody in this process do much else: memory that is taken, or a library that
//! sets itself up in another thread, makes both fail. So whoever records is alone, and all others hold it up.

use std::sync::RwLock;

use cudock_tensor::Signature;

use crate::EngineError;
use crate::plan::Extent;

static RECORDING: RwLock<()> = RwLock::new(());

/// Waits until no lane of this process records, and keeps all from it for as long as what it gives is held.
pub(crate) fn nobody_records() -> impl Sized {
    RECORDING.read()
}

/// Waits until no lane of this process does anything, and keeps all from it for as long as what it gives is held.
pub(crate) fn nobody_else_runs() -> impl Sized {
    RECORDING.write()
}

/// Whether a batch differs from others of the model in its rows alone, and is as the model says. Only such are recorded:
/// there are few of them, and they do not fail for what a client sent.
pub(crate) fn is_regular(signature: &Signature, batch: &[Extent]) -> bool {
    let fits =
        |(place, (size, expected)): (usize, (&usize, &Option<usize>))| place == 0 || Some(*size) == *expected;
    signature.inputs.iter().zip(batch).all(|(spec, extent)| {
        spec.shape.len() == extent.shape.len() && extent.shape.iter().zip(&spec.shape).enumerate().all(fits)
    })
}

/// A recording that fails can leave the engine with one that does nothing, and later batches with old answers: seen with
/// ONNX Runtime 1.31. The process must not go on.
pub(crate) fn recording_failed(error: &EngineError) -> EngineError {
    EngineError::Died(format!("launches cannot be recorded: {error}"))
}

#[cfg(test)]
mod tests {
    use cudock_tensor::{DType, Signature, TensorSpec};

    use super::is_regular;
    use crate::plan::Extent;

    #[test]
    fn only_batches_that_differ_in_rows_are_regular() {
        let spec = |shape: &[Option<usize>]| TensorSpec {
            name: "x".into(),
            dtype: DType::F32,
            shape: shape.into(),
            any_rank: false,
        };
        let batch = |shape: &[usize]| [Extent { shape: shape.into(), bytes: 0 }];
        let model = |shape| Signature { inputs: vec![spec(shape)], outputs: vec![], batched: true };
        let fixed = model(&[None, Some(4)]);
        assert!(is_regular(&fixed, &batch(&[7, 4])));
        assert!(!is_regular(&fixed, &batch(&[7, 5])));
        assert!(!is_regular(&fixed, &batch(&[7])));
        assert!(!is_regular(&model(&[None, None]), &batch(&[7, 4])));
    }
}
