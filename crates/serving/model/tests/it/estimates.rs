//! Estimates of GPU memory.

use std::path::PathBuf;

use cudock_model::figures::{INFERENCE_PERCENT, PROCESS, TRAINING_BYTES, TRAINING_PERCENT};
use cudock_model::{
    Estimate, EstimateOptions, Model, ModelFormat, NumberFormat, TermKind, estimate, onnx, safetensors,
};
use proptest::prelude::*;

use crate::write::{Dim, Message, model, node, safetensors as file, tensor, value};

const AS_IT_IS: EstimateOptions = EstimateOptions { precision: None, rows: 1, training: false };

fn of(bytes: &[u8]) -> Model {
    let tensors = safetensors::read(bytes).unwrap();
    let files = vec![PathBuf::from("m")];
    Model { kind: ModelFormat::Safetensors, files, on_disk: bytes.len() as u64, tensors, activations: None }
}

fn term(estimate: &Estimate, kind: TermKind) -> u64 {
    estimate.terms.iter().find(|term| term.kind == kind).unwrap().bytes
}

#[test]
fn all_terms_are_listed_and_add_up() {
    // A million 32-bit parameters: 4 MB, and a fifth of that for activations.
    let model = of(&file(&[("w", "F32", &[1000, 1000], 4_000_000)]));
    let estimate = estimate(&model, AS_IT_IS);
    assert_eq!(term(&estimate, TermKind::Weights), 4_000_000);
    assert_eq!(term(&estimate, TermKind::Activations), 4_000_000 * INFERENCE_PERCENT.value / 100);
    assert_eq!(term(&estimate, TermKind::Process), PROCESS.value);
    assert_eq!(estimate.total(), 4_800_000 + PROCESS.value);
    assert_eq!(
        estimate.summary(),
        "4.0 MB of fp32 weights + 800 kB of activations (estimate: 20 %) + 1.0 GB for the CUDA context and the framework"
    );
}

#[test]
fn a_precision_applies_only_to_floating_point_weights() {
    let model = of(&file(&[("w", "F32", &[1000], 4000), ("q", "I8", &[1000], 1000)]));
    let options = EstimateOptions { precision: Some(NumberFormat::F16), ..AS_IT_IS };
    assert_eq!(term(&estimate(&model, options), TermKind::Weights), 2000 + 1000);
    let options = EstimateOptions { precision: NumberFormat::from_name("int4"), ..AS_IT_IS };
    assert_eq!(term(&estimate(&model, options), TermKind::Weights), 500 + 1000);
}

#[test]
fn training_takes_sixteen_bytes_per_parameter() {
    let model = of(&file(&[("w", "BF16", &[1_000_000], 2_000_000)]));
    let estimate = estimate(&model, EstimateOptions { training: true, ..AS_IT_IS });
    assert_eq!(TRAINING_BYTES.value, 16);
    assert_eq!(term(&estimate, TermKind::Weights), 16_000_000);
    assert_eq!(term(&estimate, TermKind::Activations), 16_000_000 * TRAINING_PERCENT.value / 100);
    assert!(estimate.terms[1].basis.starts_with("assumed: "), "{:?}", estimate.terms[1]);
}

#[test]
fn shapes_in_the_file_give_the_activations_of_a_batch() {
    let graph = Message::default()
        .message(1, &node("MatMul", &["x", "w"], &["y"]))
        .message(5, &tensor("w", 1, &[10, 20], &[0; 800]))
        .message(11, &value("x", &[Dim::Named("n"), Dim::Size(10)]))
        .message(12, &value("y", &[Dim::Named("n"), Dim::Size(20)]));
    let graph = onnx::read(&model(&graph)).unwrap();
    let model = Model {
        kind: ModelFormat::Onnx,
        files: vec![PathBuf::from("m.onnx")],
        on_disk: 900,
        tensors: graph.tensors,
        activations: Some(graph.activations),
    };
    let estimate = estimate(&model, EstimateOptions { rows: 8, ..AS_IT_IS });
    assert_eq!(term(&estimate, TermKind::Activations), 8 * 4 * (10 + 20));
    assert!(
        estimate.summary().contains("960 B of activations (estimate at 8 rows)"),
        "{}",
        estimate.summary()
    );
}

proptest! {
    #[test]
    fn estimates_are_monotonic(
        numbers in 1_u64..2_000, more in 0_u64..2_000, rows in 1_u32..1_000, training: bool,
    ) {
        let length = |count: u64| usize::try_from(count * 4).unwrap();
        let small = of(&file(&[("w", "F32", &[numbers], length(numbers))]));
        let large = of(&file(&[("w", "F32", &[numbers + more], length(numbers + more))]));
        let options = EstimateOptions { rows, training, ..AS_IT_IS };
        let total = estimate(&small, options).total();
        prop_assert!(estimate(&large, options).total() >= total);
        let longer = EstimateOptions { rows: rows + 1, ..options };
        prop_assert!(estimate(&small, longer).total() >= total);
        let half = EstimateOptions { precision: Some(NumberFormat::F16), ..options };
        prop_assert!(estimate(&small, half).total() <= total);
        let sum: u64 = estimate(&small, options).terms.iter().map(|term| term.bytes).sum();
        prop_assert_eq!(total, sum);
    }
}
