//! No input causes a panic, and totals never exceed what is in the file.

use cudock_model::{onnx, safetensors};
use proptest::prelude::*;

use crate::write::{Dim, Message, external, model, node, safetensors as file, tensor, value};

fn valid_graph() -> Vec<u8> {
    let graph = Message::default()
        .message(1, &node("MatMul", &["x", "w"], &["y"]))
        .message(5, &tensor("w", 1, &[2, 3], &[0; 24]))
        .message(5, &external("e", 10, &[7], "data", 3))
        .message(11, &value("x", &[Dim::Named("n"), Dim::Size(2)]))
        .message(12, &value("y", &[Dim::Named("n"), Dim::Size(3)]));
    model(&graph)
}

fn valid_tensors() -> Vec<u8> {
    file(&[("a", "BF16", &[4, 2], 16), ("b", "F32", &[3], 12)])
}

/// A file with some bytes changed or cut off.
fn corrupted(file: Vec<u8>) -> impl Strategy<Value = Vec<u8>> {
    let length = file.len();
    let edits = prop::collection::vec((0..length, any::<u8>()), 0..6);
    (edits, 0..=length, any::<bool>()).prop_map(move |(edits, cut, cuts)| {
        let mut bytes = file.clone();
        for (index, byte) in edits {
            bytes[index] = byte;
        }
        if cuts {
            bytes.truncate(cut);
        }
        bytes
    })
}

fn check(bytes: &[u8]) {
    if let Ok(stats) = safetensors::read(bytes) {
        assert!(stats.bytes() <= bytes.len() as u64);
    }
    if let Ok(graph) = onnx::read(bytes) {
        if graph.external.is_empty() {
            // Typed data may be packed more tightly than it is counted.
            assert!(graph.tensors.bytes() <= bytes.len() as u64 * 64);
        }
        for rows in [0, 1, u32::MAX] {
            assert!(graph.activations.peak(rows) <= graph.activations.all(rows));
        }
        assert!(graph.activations.known <= graph.activations.values);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        check(&bytes);
    }

    #[test]
    fn corrupted_graphs(bytes in corrupted(valid_graph())) {
        check(&bytes);
    }

    #[test]
    fn corrupted_tensors(bytes in corrupted(valid_tensors())) {
        check(&bytes);
    }
}
