//! Capture of CUDA graphs, and exclusion of everything else meanwhile.
//!
//! While a lane captures, the driver allows little else in this process: an allocation, or a library that initializes
//! itself in another thread, makes both fail. So a capture runs alone, and everything else blocks it.

use std::sync::RwLock;

use cudock_engine::{EngineError, Extent};
use cudock_tensor::Signature;

static CAPTURE: RwLock<()> = RwLock::new(());

/// Waits until no lane of this process captures, and blocks captures while the guard is held.
pub(crate) fn block_capture() -> impl Sized {
    CAPTURE.read()
}

/// Waits until no lane of this process runs, and blocks all of them while the guard is held.
pub(crate) fn exclusive_capture() -> impl Sized {
    CAPTURE.write()
}

/// Whether a batch has exactly the model's declared shapes except for its rows. Only such batches are captured: there
/// are few of them, and they do not fail because of what a client sent.
pub(crate) fn is_capturable(signature: &Signature, batch: &[Extent]) -> bool {
    let fits =
        |(index, (size, expected)): (usize, (&usize, &Option<usize>))| index == 0 || Some(*size) == *expected;
    signature.inputs.iter().zip(batch).all(|(spec, extent)| {
        spec.shape.len() == extent.shape.len() && extent.shape.iter().zip(&spec.shape).enumerate().all(fits)
    })
}

/// A failed capture can leave the engine with an empty graph, and later batches with stale results (seen with ONNX
/// Runtime 1.31). The process must end.
pub(crate) fn capture_failed(error: &EngineError) -> EngineError {
    EngineError::Died(format!("cannot capture a CUDA graph: {error}"))
}

#[cfg(test)]
mod tests {
    use cudock_engine::Extent;
    use cudock_tensor::{DType, Signature, TensorSpec};

    use super::is_capturable;

    #[test]
    fn only_batches_that_differ_in_rows_are_capturable() {
        let batch = |shape: &[usize]| [Extent { shape: shape.into(), bytes: 0 }];
        let model = |shape: &[Option<usize>]| {
            let inputs = vec![TensorSpec::new("x", DType::F32, shape)];
            Signature { inputs, outputs: vec![], batched: true }
        };
        let fixed = model(&[None, Some(4)]);
        assert!(is_capturable(&fixed, &batch(&[7, 4])));
        assert!(!is_capturable(&fixed, &batch(&[7, 5])));
        assert!(!is_capturable(&fixed, &batch(&[7])));
        assert!(!is_capturable(&model(&[None, None]), &batch(&[7, 4])));
    }
}
