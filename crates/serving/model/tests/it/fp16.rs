//! Conversion to fp16. `tests/fp16/make.py` writes the models, one for each rule.

use std::path::{Path, PathBuf};

use cudock_model::onnx::fp16::{Fp16Stats, Weights, to_fp16};
use cudock_model::{NumberFormat, onnx};
use proptest::prelude::*;

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fp16")
}

fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(directory().join(format!("{name}.onnx"))).unwrap()
}

fn convert(name: &str) -> (Vec<u8>, Fp16Stats) {
    let converted = to_fp16(&fixture(name), Some(&directory()), Weights::Inline).unwrap();
    (converted.bytes, converted.stats)
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

/// Model, operators in fp16, added casts, and operators that stay in fp32 with their number.
const CONVERTED: &[(&str, usize, usize, &str)] = &[
    ("conv_bn", 6, 2, ""),
    ("layer_norm", 3, 5, ""),
    ("layer_norm_parts", 3, 4, "Add 1 Div 1 Pow 1 ReduceMean 2 Sqrt 1 Sub 1"),
    ("attention", 10, 2, ""),
    ("resize", 3, 2, ""),
    ("branch", 3, 4, "If 1"),
    ("loop", 2, 4, "Loop 1"),
    ("constants", 2, 2, ""),
    ("casts", 2, 2, ""),
    ("external", 2, 1, ""),
    ("overflow", 3, 2, ""),
    ("infinite", 3, 2, ""),
    ("sizes", 1, 2, "Floor 1 Mul 1"),
    ("positions", 4, 4, "Cos 1 MatMul 1 Sin 1"),
    ("detection", 3, 4, "NonMaxSuppression 1 TopK 1"),
    ("old_format", 2, 4, "Clip 1"),
    ("quantized", 1, 2, "DequantizeLinear 1 QuantizeLinear 1"),
    ("function", 2, 3, "Add 1 Double 1"),
    ("tokens", 5, 1, ""),
    ("recurrent", 1, 2, ""),
    ("names", 3, 2, ""),
];

#[test]
fn each_operator_has_the_precision_it_needs() {
    for &(name, half_nodes, casts, full_nodes) in CONVERTED {
        let (_, stats) = convert(name);
        let full: Vec<String> =
            stats.full_nodes.iter().map(|(name, count)| format!("{name} {count}")).collect();
        assert_eq!(
            (stats.half_nodes, stats.casts, &*full.join(" ")),
            (half_nodes, casts, full_nodes),
            "{name}"
        );
    }
}

#[test]
fn weights_are_fp16_unless_fp32_operators_use_them() {
    for (name, full, half) in [
        ("conv_bn", 0, 149),
        // The exponent and epsilon of the variance.
        ("layer_norm_parts", 2, 80),
        ("resize", 4, 54),
        // A weight that both a branch and the rest of the model use exists twice.
        ("branch", 16, 33),
        ("loop", 1, 16),
        ("quantized", 1, 16),
        ("old_format", 2, 56),
    ] {
        let formats = onnx::read(&convert(name).0).unwrap().tensors.by_format;
        let elements = |format| formats.get(&format).map_or(0, |stats| stats.elements);
        assert_eq!((elements(NumberFormat::F32), elements(NumberFormat::F16)), (full, half), "{name}");
    }
}

#[test]
fn weights_beyond_the_range_are_counted() {
    for (name, clamped, raised) in [("overflow", 2, 1), ("attention", 1, 0), ("constants", 0, 1)] {
        let (_, stats) = convert(name);
        assert_eq!((stats.clamped, stats.raised), (clamped, raised), "{name}");
    }
}

#[test]
fn an_input_that_declares_a_converted_weight_is_removed() {
    let (bytes, _) = convert("old_format");
    assert!(contains(&bytes, "shared_fp16") && contains(&bytes, "k_fp16"));
    // `k` would be a field of one byte: in the inputs of the model, but not of the converted one.
    let field = "\n\u{1}k";
    assert!(contains(&fixture("old_format"), field) && !contains(&bytes, field));
}

#[test]
fn names_of_the_model_are_not_used_twice() {
    let (bytes, _) = convert("names");
    assert!(contains(&bytes, "x_fp16__fp16__"), "{}", String::from_utf8_lossy(&bytes));
}

#[test]
fn a_model_without_anything_to_convert_is_an_error() {
    let error = to_fp16(&fixture("nothing"), None, Weights::Inline).unwrap_err();
    assert_eq!(error, "no operator of the model can compute in fp16");
    assert!(to_fp16(b"", None, Weights::Inline).unwrap_err().contains("no graph"));
}

#[test]
fn external_weights_are_read_and_written() {
    let error = to_fp16(&fixture("external"), None, Weights::Inline).unwrap_err();
    assert!(error.contains("external.data"), "{error}");
    let missing = tempfile::tempdir().unwrap();
    let error = to_fp16(&fixture("external"), Some(missing.path()), Weights::Inline).unwrap_err();
    assert!(error.contains("cannot read"), "{error}");
    let (inline, _) = convert("external");
    assert!(onnx::read(&inline).unwrap().external.is_empty());
    let mut file = Vec::new();
    let weights = Weights::File { location: "w", file: &mut file };
    let converted = to_fp16(&fixture("external"), Some(&directory()), weights).unwrap();
    // The integers have 1,024 bytes; the two tensors of 128 and 256 fp16 numbers are smaller and stay inside.
    let external = onnx::read(&converted.bytes).unwrap().external;
    assert_eq!((external.get("w"), file.len()), (Some(&1024), 1024));
    let numbers: Vec<i64> = file.as_chunks().0.iter().map(|bytes| i64::from_le_bytes(*bytes)).collect();
    assert!(numbers.iter().zip(0..).all(|(number, index)| *number == index / 16), "{numbers:?}");
}

#[test]
fn a_location_outside_the_directory_is_rejected() {
    let mut model = fixture("external");
    let at = model.windows(13).position(|window| window == b"external.data").unwrap();
    model[at..at + 13].copy_from_slice(b"../../../e.da");
    let error = to_fp16(&model, Some(&directory()), Weights::Inline).unwrap_err();
    assert!(error.contains("outside the model's directory"), "{error}");
}

/// A model with some bytes changed.
fn corrupted() -> impl Strategy<Value = Vec<u8>> {
    let edits = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8);
    (0..CONVERTED.len(), edits).prop_map(|(model, edits)| {
        let mut bytes = fixture(CONVERTED[model].0);
        for (index, byte) in edits {
            let index = index.index(bytes.len());
            bytes[index] = byte;
        }
        bytes
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_corrupt_model_is_an_error_or_converted_to_something_readable(bytes in corrupted()) {
        if let Ok(converted) = to_fp16(&bytes, None, Weights::Inline) {
            prop_assert!(converted.bytes.len() <= 4 * bytes.len() + 1000);
            let (before, after) = (onnx::read(&bytes), onnx::read(&converted.bytes));
            prop_assert!(before.is_err() || after.is_ok(), "{:?}", after);
        }
    }
}
