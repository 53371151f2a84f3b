//! Any bytes as a request of the Open Inference Protocol: no panic; what is taken has a head of JSON and tensors that
//! fit the model, and reads the same when it is written back. A zero byte ends the head, if the first byte says so.
#![no_main]

use bytes::Bytes;
use cudock_tensor::oip::{self, ResponseOptions};
use cudock_tensor::{
    DType, InferenceResponse, RequestError, RequestLimits, RequestedOutput, Signature, TensorSpec,
};
use libfuzzer_sys::fuzz_target;
use serde_json::value::RawValue;

fuzz_target!(|bytes: &[u8]| {
    let Some((choice, rest)) = bytes.split_first() else { return };
    let split = rest.iter().position(|byte| *byte == 0).filter(|_| choice & 128 != 0);
    let body = match split {
        Some(end) => Bytes::from([&rest[..end], &rest[end + 1..]].concat()),
        None => Bytes::copy_from_slice(rest),
    };
    let signature = signature(*choice & 127);
    let limits = RequestLimits { body: 1 << 16, rank: 5, elements: 2000 };
    let inference = match oip::read(&body, split, &signature, &limits) {
        Ok(inference) => inference,
        Err(error) => {
            assert!(!matches!(error, RequestError::Body { offset, .. } if offset > body.len()), "{error}");
            return;
        }
    };
    let head = &body[..split.unwrap_or(body.len())];
    serde_json::from_slice::<&RawValue>(head).expect("what we take is JSON");
    assert_eq!(inference.inputs.len(), signature.inputs.len());
    for (tensor, spec) in inference.inputs.iter().zip(&signature.inputs) {
        assert_eq!(tensor.dtype(), spec.dtype);
        assert!(tensor.shape().len() == spec.shape.len() && tensor.shape().iter().product::<usize>() <= 2000);
        assert!(!signature.batched || tensor.rows() == inference.rows);
    }
    for binary in [false, true] {
        let outputs: Vec<RequestedOutput> = (0..signature.outputs.len())
            .map(|index| RequestedOutput { index, binary: binary || index == 1 })
            .collect();
        let reply = ResponseOptions { id: inference.id.as_deref(), outputs: &outputs, binary_outputs: false };
        let answer = InferenceResponse { outputs: inference.inputs.clone() };
        let mut out = Vec::new();
        // JSON has no NaN, and strings that came as binary may be no text.
        let Ok(length) = oip::write(&answer, &signature, &reply, "m", "1", &mut out) else {
            assert!(!binary);
            continue;
        };
        let (head, blobs) = out.split_at(length.unwrap_or(out.len()));
        let head =
            std::str::from_utf8(head).expect("a head of text").replacen(",\"outputs\":[", ",\"inputs\":[", 1);
        if !binary && head.contains("null") {
            continue;
        }
        let body = Bytes::from([head.as_bytes(), blobs].concat());
        let limits = RequestLimits { body: 1 << 24, ..limits };
        let back =
            oip::read(&body, length.map(|_| head.len()), &signature, &limits).expect("what we write we take");
        assert_eq!((back.inputs, back.id), (inference.inputs.clone(), inference.id.clone()));
    }
});

fn signature(choice: u8) -> Signature {
    let spec = |name: &str, dtype, shape: &[Option<usize>]| TensorSpec::new(name, dtype, shape);
    let dtype = DType::ALL[usize::from(choice) % DType::ALL.len()];
    let inputs = match choice / 32 {
        0 => vec![spec("x", dtype, &[None, Some(2)])],
        1 => vec![spec("x", dtype, &[None, None, None])],
        2 => vec![spec("x", dtype, &[None])],
        _ => vec![spec("x", dtype, &[None, Some(2)]), spec("y", DType::String, &[None])],
    };
    Signature { outputs: inputs.clone(), inputs, batched: choice & 16 == 0 }
}
