//! Any bytes as a request to `/predict`: no panic; what is taken is JSON, each number as the standard library reads
//! it, and reads the same when it is written back.
#![no_main]

use std::collections::BTreeMap;

use cudock_tensor::envelope::{self, Envelope};
use cudock_tensor::{
    DType, InferenceResponse, RequestError, RequestLimits, ResponseForm, Signature, Tensor, TensorSpec, csv,
    predict,
};
use libfuzzer_sys::fuzz_target;
use serde_json::value::RawValue;

/// The API of another server.
static OTHER: Envelope =
    Envelope { inputs: &[("instances", ResponseForm::Rows)], bare: true, strict: false };

fuzz_target!(|bytes: &[u8]| {
    let Some((choice, body)) = bytes.split_first() else { return };
    let signature = signature(*choice);
    let limits = RequestLimits { body: 1 << 16, rank: 5, elements: 2000 };
    _ = csv::read(body, &signature, &limits);
    _ = envelope::read(body, &OTHER, &signature, &limits);
    let inference = match predict::read(body, &signature, &limits) {
        Ok(inference) => inference,
        Err(error) => {
            assert!(!matches!(error, RequestError::Body { offset, .. } if offset > body.len()), "{error}");
            return;
        }
    };
    let object: BTreeMap<String, &RawValue> = serde_json::from_slice(body).expect("what we take is JSON");
    let given = ["input", "inputs", "instances"].iter().find_map(|key| object.get(*key)).expect("an input");
    // Rows and strings may be objects, which have no literals of their own.
    let has_objects = given.get().get(1..).is_some_and(|rest| rest.contains('{')) || given.get().contains("b64");
    if has_objects {
        // Strings of any bytes cannot be written back.
        return;
    }
    if given.get().starts_with('{') {
        let by_name: BTreeMap<String, &RawValue> = serde_json::from_str(given.get()).expect("an object");
        for (spec, tensor) in signature.inputs.iter().zip(&inference.inputs) {
            compare(by_name[&spec.name], tensor);
        }
    } else {
        compare(given, &inference.inputs[0]);
    }
    write_and_read(&signature, &inference.inputs, inference.single, &limits);
});

fn signature(choice: u8) -> Signature {
    let spec = |name: &str, dtype, shape: &[Option<usize>]| TensorSpec::new(name, dtype, shape);
    let dtype = DType::ALL[usize::from(choice) % DType::ALL.len()];
    let inputs = match choice / 64 {
        0 => vec![spec("x", dtype, &[None, Some(2)])],
        1 => vec![spec("x", dtype, &[None, None, None])],
        2 => vec![spec("x", dtype, &[None])],
        _ => vec![spec("x", dtype, &[None, Some(2)]), spec("y", DType::String, &[None])],
    };
    Signature { outputs: inputs.clone(), inputs, batched: choice & 32 == 0 }
}

/// Compares the elements of a tensor to the literals of the text.
fn compare(text: &RawValue, tensor: &Tensor) {
    let mut literals = Vec::new();
    flatten(text, &mut literals);
    if tensor.dtype() == DType::String {
        let strings: Vec<&[u8]> = tensor.strings().collect();
        let expected: Vec<String> =
            literals.iter().map(|text| serde_json::from_str(text).expect("a string")).collect();
        assert!(strings.iter().eq(expected.iter().map(String::as_bytes).collect::<Vec<_>>().iter()));
        return;
    }
    let size = tensor.dtype().size().expect("numbers have a size");
    assert_eq!(tensor.data().len(), literals.len() * size);
    for (literal, element) in literals.iter().zip(tensor.data().chunks(size)) {
        let expected = match tensor.dtype() {
            DType::F32 => literal.parse::<f32>().expect("a float").to_le_bytes().to_vec(),
            DType::F64 => literal.parse::<f64>().expect("a float").to_le_bytes().to_vec(),
            DType::Bool => vec![u8::from(matches!(*literal, "1" | "true"))],
            // Twice as many bytes as any of them has, of which the first are its own.
            DType::U64 => literal.parse::<u64>().map_or(vec![0; 8], |value| value.to_le_bytes().to_vec()),
            DType::F16 | DType::BF16 => continue,
            _ => literal.parse::<i64>().expect("a whole number").to_le_bytes()[..size].to_vec(),
        };
        assert_eq!(element, expected, "{literal}");
    }
}

fn flatten<'a>(text: &'a RawValue, out: &mut Vec<&'a str>) {
    if !text.get().starts_with('[') {
        out.push(text.get());
        return;
    }
    for item in serde_json::from_str::<Vec<&RawValue>>(text.get()).expect("an array") {
        flatten(item, out);
    }
}

fn write_and_read(signature: &Signature, tensors: &[Tensor], single: bool, limits: &RequestLimits) {
    // Arrays of nothing do not show the dimensions behind the first that is zero.
    if tensors.iter().any(|tensor| tensor.shape().contains(&0)) {
        return;
    }
    let mut out = Vec::new();
    predict::write(&InferenceResponse { outputs: tensors.to_vec() }, signature, single, &[], "d", &mut out)
        .expect("text");
    let text = String::from_utf8(out).expect("text");
    let body = text.replacen("\"prediction\"", "\"input\"", 1).replace(",\"device\":\"d\"}", "}");
    let limits = RequestLimits { body: 1 << 24, ..*limits };
    let back = predict::read(body.as_bytes(), signature, &limits).expect("what we write we take");
    assert_eq!(back.inputs, tensors);
}
