//! Any bytes as a `.npy` file, as CSV and as raw elements: no panic; what is taken fits the model, and reads the same when
//! it is written back. The first byte selects format, type and shape.
#![no_main]

use bytes::Bytes;
use cudock_tensor::{
    DType, InferenceRequest, InferenceResponse, RequestError, RequestLimits, Signature, TensorSpec, csv, npy, raw,
};
use libfuzzer_sys::fuzz_target;

const LIMITS: RequestLimits = RequestLimits { body: 1 << 16, rank: 5, elements: 2000 };

fuzz_target!(|bytes: &[u8]| {
    let Some((&choice, body)) = bytes.split_first() else { return };
    let dtype = DType::ALL[usize::from(choice >> 2 & 31) % DType::ALL.len()];
    let shape: &[Option<usize>] = if choice & 128 == 0 { &[None, Some(2)] } else { &[None] };
    let spec = TensorSpec::new("x", dtype, shape);
    let signature = Signature { inputs: vec![spec.clone()], outputs: vec![spec], batched: true };
    let Ok(request) = read(choice, &Bytes::copy_from_slice(body), &signature) else { return };
    let [tensor] = request.inputs.as_slice() else { panic!("one input, {} tensors", request.inputs.len()) };
    assert_eq!((tensor.dtype(), tensor.shape().len()), (dtype, shape.len()));
    assert!(tensor.shape().iter().product::<usize>() <= LIMITS.elements);
    let response = InferenceResponse { outputs: request.inputs.clone() };
    let Some(written) = write(choice, &response, &signature) else {
        assert_eq!(dtype, DType::String, "everything else can be written");
        return;
    };
    // numpy has no bfloat16, and text has no infinity.
    let is_changed = choice & 3 == 0 && dtype == DType::BF16 || written.windows(4).any(|text| text == b"null");
    if !is_changed {
        let again = read(choice, &written, &signature).expect("what we write we take");
        assert_eq!(again.inputs, request.inputs);
    }
});

fn read(choice: u8, body: &Bytes, signature: &Signature) -> Result<InferenceRequest, RequestError> {
    match choice & 3 {
        0 => npy::read(body, signature, &LIMITS),
        1 => csv::read(body, signature, &LIMITS),
        _ => raw::read(body, signature, &LIMITS),
    }
}

fn write(choice: u8, response: &InferenceResponse, signature: &Signature) -> Option<Bytes> {
    let mut out = Vec::new();
    match choice & 3 {
        0 => npy::write(response, signature, &[], &mut out).ok()?,
        1 => csv::write(response, signature, &[], &mut out).ok()?,
        _ => return raw::write(response, signature, &[]).ok(),
    }
    Some(out.into())
}
