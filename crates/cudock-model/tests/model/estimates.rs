//! From what a file says to GPU memory.

use std::path::PathBuf;

use cudock_model::figures::{INFERENCE_PERCENT, PROCESS, TRAINING_BYTES, TRAINING_PERCENT};
use cudock_model::{
    Estimate, FileKind, Model, NumberFormat, Question, TermKind, estimate, onnx, safetensors,
};
use proptest::prelude::*;

use crate::write::{Dim, Message, model, node, safetensors as file, tensor, value};

const AS_IT_IS: Question = Question { precision: None, rows: 1, training: false };

fn of(bytes: &[u8]) -> Model {
    let tensors = safetensors::read(bytes).unwrap();
    let files = vec![PathBuf::from("m")];
    Model { kind: FileKind::Safetensors, files, on_disk: bytes.len() as u64, tensors, activations: None }
}

fn term(estimate: &Estimate, kind: TermKind) -> u64 {
    estimate.terms.iter().find(|term| term.kind == kind).unwrap().bytes
}

#[test]
fn every_term_is_visible_and_they_add_up() {
    // A million parameters in 32 bits: 4 MB, and a fifth of it for what lies between.
    let model = of(&file(&[("w", "F32", &[1000, 1000], 4_000_000)]));
    let estimate = estimate(&model, AS_IT_IS);
    assert_eq!(term(&estimate, TermKind::Weights), 4_000_000);
    assert_eq!(term(&estimate, TermKind::Activations), 4_000_000 * INFERENCE_PERCENT.value / 100);
    assert_eq!(term(&estimate, TermKind::Process), PROCESS.value);
    assert_eq!(estimate.total(), 4_800_000 + PROCESS.value);
    assert_eq!(
        estimate.words(),
        "4.0 MB of fp32 weights + 800 kB of activations (estimate: 20 %) + 1.0 GB for the CUDA context and the framework"
    );
}

#[test]
fn a_precision_holds_for_floating_point_weights_alone() {
    let model = of(&file(&[("w", "F32", &[1000], 4000), ("q", "I8", &[1000], 1000)]));
    let question = Question { precision: Some(NumberFormat::F16), ..AS_IT_IS };
    assert_eq!(term(&estimate(&model, question), TermKind::Weights), 2000 + 1000);
    let question = Question { precision: NumberFormat::named("int4"), ..AS_IT_IS };
    assert_eq!(term(&estimate(&model, question), TermKind::Weights), 500 + 1000);
}

#[test]
fn training_takes_sixteen_bytes_a_parameter() {
    let model = of(&file(&[("w", "BF16", &[1_000_000], 2_000_000)]));
    let estimate = estimate(&model, Question { training: true, ..AS_IT_IS });
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
        kind: FileKind::Onnx,
        files: vec![PathBuf::from("m.onnx")],
        on_disk: 900,
        tensors: graph.tensors,
        activations: Some(graph.activations),
    };
    let estimate = estimate(&model, Question { rows: 8, ..AS_IT_IS });
    assert_eq!(term(&estimate, TermKind::Activations), 8 * 4 * (10 + 20));
    assert!(estimate.words().contains("960 B of activations (estimate at 8 rows)"), "{}", estimate.words());
}

proptest! {
    #[test]
    fn more_rows_more_numbers_and_wider_ones_never_take_less(
        numbers in 1_u64..2_000, more in 0_u64..2_000, rows in 1_u32..1_000, training: bool,
    ) {
        let length = |count: u64| usize::try_from(count * 4).unwrap();
        let small = of(&file(&[("w", "F32", &[numbers], length(numbers))]));
        let large = of(&file(&[("w", "F32", &[numbers + more], length(numbers + more))]));
        let question = Question { rows, training, ..AS_IT_IS };
        let total = estimate(&small, question).total();
        prop_assert!(estimate(&large, question).total() >= total);
        let longer = Question { rows: rows + 1, ..question };
        prop_assert!(estimate(&small, longer).total() >= total);
        let half = Question { precision: Some(NumberFormat::F16), ..question };
        prop_assert!(estimate(&small, half).total() <= total);
        let sum: u64 = estimate(&small, question).terms.iter().map(|term| term.bytes).sum();
        prop_assert_eq!(total, sum);
    }
}
