//! Any bytes as an ONNX file: no panic, no memory for what is merely claimed, and no more counted than is there.
#![no_main]

use cudock_model::onnx;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(graph) = onnx::read(bytes) else { return };
    if graph.external.is_empty() {
        assert!(graph.tensors.bytes() <= (bytes.len() as u64).saturating_mul(64));
    }
    assert!(graph.activations.known <= graph.activations.values);
    for rows in [0, 1, 8, u32::MAX] {
        assert!(graph.activations.peak(rows) <= graph.activations.all(rows));
    }
});
