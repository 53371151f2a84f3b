//! Any bytes as an ONNX file to convert to fp16: no panic, no memory for what is merely claimed, and a model that can be
//! read is readable after the conversion.
#![no_main]

use cudock_model::onnx::fp16::{Weights, to_fp16};
use cudock_model::onnx::read;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(converted) = to_fp16(bytes, None, Weights::Inline) else { return };
    assert!(converted.bytes.len() <= 8 * bytes.len() + 1024);
    assert!(read(bytes).is_err() || read(&converted.bytes).is_ok());
});
