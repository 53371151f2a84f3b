//! The Open Inference Protocol: JSON, binary, and common mistakes.

use std::time::Duration;

use bytes::Bytes;
use cudock_tensor::oip::{self, ResponseOptions};
use cudock_tensor::{
    DType, InferenceRequest, InferenceResponse, RequestError, RequestLimits, RequestedOutput, Signature,
    Tensor,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::{dtypes, f32s, one, spec, strings, tensors, two};

fn read(body: &str, signature: &Signature) -> Result<InferenceRequest, RequestError> {
    oip::read(&Bytes::copy_from_slice(body.as_bytes()), None, signature, &RequestLimits::default())
}

fn read_binary(head: &str, blobs: &[u8], signature: &Signature) -> Result<InferenceRequest, RequestError> {
    let body = Bytes::from([head.as_bytes(), blobs].concat());
    oip::read(&body, Some(head.len()), signature, &RequestLimits::default())
}

fn pair() -> Signature {
    one(DType::F32, &[None, Some(2)])
}

#[test]
fn keys_come_in_any_order_and_data_flat_or_nested() {
    let expected = f32s(&[2, 2], &[1.0, 2.0, 3.0, 4.0]);
    for input in [
        r#"{"name":"x","shape":[2,2],"datatype":"FP32","data":[1,2,3,4]}"#,
        r#"{"data":[1,2,3,4],"datatype":"FP32","name":"x","shape":[2,2]}"#,
        r#"{"name":"x","data":[[1,2],[3,4]],"shape":[2,2],"datatype":"FP32","parameters":null}"#,
        r#"{"datatype":"FP32","name":"x","more":{"a":[1]},"data":[[1,2],[3,4]],"shape":[2,2],"parameters":{"b":1}}"#,
    ] {
        let body = format!(r#"{{"id":"7","inputs":[{input}],"outputs":null,"else":[{{}}]}}"#);
        let inference = read(&body, &pair()).unwrap();
        assert_eq!((inference.rows, inference.single, inference.id.as_deref()), (2, false, Some("7")));
        assert_eq!(inference.inputs, std::slice::from_ref(&expected), "{body}");
    }
}

#[test]
fn a_request_of_tritonclient_is_parsed_without_copying() {
    let head = r#"{"id":"1","inputs":[{"name":"a","shape":[1,2],"datatype":"FP32","parameters":{"binary_data_size":8}},{"name":"words","shape":[1],"datatype":"BYTES","parameters":{"binary_data_size":6}}],"outputs":[{"name":"label","parameters":{"binary_data":true}},{"name":"score"}],"parameters":{"priority":2,"timeout":1500,"sequence_id":0}}"#;
    let blobs = [&f32s(&[1, 2], &[1.0, f32::NAN]).data()[..], strings(&[1], &[b"\xffz"]).data()].concat();
    let body = Bytes::from([head.as_bytes(), &blobs].concat());
    let inference = oip::read(&body, Some(head.len()), &two(), &RequestLimits::default()).unwrap();
    assert_eq!(inference.inputs[1], strings(&[1], &[b"\xffz"]));
    assert_eq!(inference.inputs[0].data().as_ptr(), body[head.len()..].as_ptr());
    assert_eq!(
        inference.outputs,
        [RequestedOutput { index: 1, binary: true }, RequestedOutput { index: 0, binary: false }]
    );
    assert_eq!((inference.priority, inference.timeout), (2, Some(Duration::from_micros(1500))));
}

#[test]
fn binary_data_output_is_the_default_of_all_outputs() {
    let input = r#""inputs":[{"name":"x","shape":[1,2],"datatype":"FP32","data":[1,2]}]"#;
    let parameters = r#""parameters":{"binary_data_output":true,"timeout":0}"#;
    let body = format!(r#"{{{input},"outputs":[{{"name":"y"}}],{parameters}}}"#);
    let inference = read(&body, &pair()).unwrap();
    assert_eq!(inference.outputs, [RequestedOutput { index: 0, binary: true }]);
    assert_eq!((inference.binary_outputs, inference.timeout), (true, None));
}

#[test]
fn half_floats_and_strings_come_as_json_too() {
    let body = r#"{"inputs":[{"name":"x","shape":[2],"datatype":"BF16","data":[1.5,-2]}]}"#;
    assert_eq!(
        read(body, &one(DType::BF16, &[None])).unwrap().inputs[0].data()[..],
        [0xc0, 0x3f, 0x00, 0xc0]
    );
    let body = r#"{"inputs":[{"name":"x","shape":[1,1],"datatype":"BYTES","data":["é"]}]}"#;
    assert_eq!(
        read(body, &one(DType::String, &[None, None])).unwrap().inputs,
        [strings(&[1, 1], &["é".as_bytes()])]
    );
}

#[test]
fn errors_contain_path_and_reason() {
    let input = |input: &str| format!(r#"{{"inputs":[{{{input}}}]}}"#);
    let x = r#""name":"x","shape":[1,2],"datatype":"FP32""#;
    for (body, expected) in [
        ("{}".to_owned(), "input `x` is missing"),
        (r#"{"inputs":{}}"#.to_owned(), "inputs: expected `[`, found an object (at byte 10)"),
        (input(""), "inputs[0]: `name` is missing"),
        (input(r#""name":"x""#), "inputs[0]: `datatype` is missing"),
        (input(r#""name":"x","datatype":"FP32""#), "inputs[0]: `shape` is missing"),
        (input(x), "inputs[0]: `data` is missing"),
        (input(r#""name":"z""#), "the model has no input `z`; expected `x`"),
        (
            input(r#""name":"x","datatype":"FP64","shape":[1,2],"data":[1,2]"#),
            "inputs[0] (`x`): FP64, but the model expects FP32",
        ),
        (
            input(r#""name":"x","datatype":"float32""#),
            "inputs[0].datatype: no datatype `float32`; expected one of BOOL, UINT8, UINT16, UINT32, UINT64, INT8, INT16, INT32, \
          INT64, FP16, BF16, FP32, FP64, BYTES",
        ),
        (input(&format!(r#"{x},"data":[1,2,3]"#)), "inputs[0].data: 3 elements where shape [1, 2] has 2"),
        (
            input(&format!(r#"{x},"data":[[1],[2]]"#)),
            "inputs[0].data: nested as [2, 1] where the shape is [1, 2]",
        ),
        (
            input(&format!(r#"{x},"data":[1,"2"]"#)),
            "inputs[0].data[1]: expected a number, found a string (at byte 65)",
        ),
        (
            input(r#""data":[1,"2"],"name":"x","shape":[1,2],"datatype":"FP32""#),
            "inputs[0].data[1]: expected a number, found a string (at byte 22)",
        ),
        (
            input(r#""name":"x","shape":[-1,2],"datatype":"FP32""#),
            "inputs[0].shape[0]: expected a non-negative integer: -1 is out of range for a number (at byte 32)",
        ),
        (
            input(r#""name":"x","shape":[1000000,1000000],"datatype":"FP32","data":[1]"#),
            "inputs[0].shape: more than the 67108864 elements allowed",
        ),
        (
            input(r#""name":"x","shape":[60000000,1],"datatype":"FP32","data":[1]"#),
            "inputs[0].data: 1 elements where shape [60000000, 1] has 60000000",
        ),
        (
            input(
                r#""name":"x","shape":[18446744073709551615,18446744073709551615],"datatype":"FP32","data":[1]"#,
            ),
            "inputs[0].shape: more than the 67108864 elements allowed",
        ),
        (
            input(r#""name":"x","shape":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1],"datatype":"FP32","data":[1]"#),
            "inputs[0].shape: more than the 16 dimensions allowed",
        ),
        (
            input(r#""name":"x","shape":[1,3],"datatype":"FP32","data":[1,2,3]"#),
            "inputs[0] (`x`): shape [1, 3], but the model expects [any, 2]",
        ),
        (
            input(&format!(r#"{x},"parameters":{{"binary_data_size":8}}"#)),
            "inputs[0]: a binary tensor needs the header inference-header-content-length",
        ),
        (
            input(&format!(r#"{x},"data":[1,2],"parameters":{{"binary_data_size":8}}"#)),
            "inputs[0]: both `data` and `binary_data_size`",
        ),
        (
            input(&format!(r#"{x},"parameters":{{"shared_memory_region":"r"}}"#)),
            "inputs[0].parameters: shared memory is not supported (at byte 92)",
        ),
        (format!(r#"{{"inputs":[{{{x},"data":[1,2]}},{{{x},"data":[1,2]}}]}}"#), "input `x` is given twice"),
        (r#"{"outputs":[{"name":"yy"}]}"#.to_owned(), "the model has no output `yy`; did you mean `y`?"),
        (
            r#"{"outputs":[{"name":"y"},{"name":"y"}]}"#.to_owned(),
            "outputs[1]: the output is requested twice",
        ),
        (
            r#"{"outputs":[{"name":"y","parameters":{"classification":3}}]}"#.to_owned(),
            "outputs[0].parameters: classification is not supported (at byte 55)",
        ),
        (r#"{"inputs":[],"inputs":[]}"#.to_owned(), "`inputs` is given twice (at byte 22)"),
    ] {
        assert_eq!(read(&body, &pair()).unwrap_err().to_string(), expected, "{body}");
    }
}

#[test]
fn mismatched_binary_parts_are_rejected() {
    let head = |size: u64| {
        format!(
            r#"{{"inputs":[{{"name":"x","shape":[1,2],"datatype":"FP32","parameters":{{"binary_data_size":{size}}}}}]}}"#
        )
    };
    for (size, blob, expected) in [
        (8, 4, "inputs[0]: 8 bytes of binary data, but the body has 4 left"),
        (4, 4, "inputs[0]: FP32 [1, 2] takes 8 bytes, not 4"),
        (8, 9, "1 bytes are left after the last binary tensor"),
        (u64::MAX, 8, "inputs[0]: 18446744073709551615 bytes of binary data, but the body has 8 left"),
    ] {
        let error = read_binary(&head(size), &vec![0; blob], &pair()).unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
    assert!(read_binary(&head(8), &[0; 8], &pair()).is_ok());
    let body = Bytes::from_static(b"{}");
    let error = oip::read(&body, Some(3), &pair(), &RequestLimits::default()).unwrap_err();
    assert_eq!(error.to_string(), "the header claims a JSON length of 3 bytes, but the body has 2");
    let boolean =
        r#"{"inputs":[{"name":"x","shape":[2],"datatype":"BOOL","parameters":{"binary_data_size":2}}]}"#;
    let error = read_binary(boolean, &[1, 2], &one(DType::Bool, &[None])).unwrap_err();
    assert_eq!(error.to_string(), "inputs[0] (`x`): boolean 1 is neither 0 nor 1");
    let bytes =
        r#"{"inputs":[{"name":"x","shape":[1],"datatype":"BYTES","parameters":{"binary_data_size":5}}]}"#;
    let error = read_binary(bytes, &[9, 0, 0, 0, 1], &one(DType::String, &[None])).unwrap_err();
    assert_eq!(error.to_string(), "inputs[0]: string 0 of the tensor runs beyond its end");
}

#[test]
fn a_response_has_a_head_and_binary_parts_in_order() {
    let response =
        InferenceResponse { outputs: vec![f32s(&[1, 2], &[0.1, f32::INFINITY]), strings(&[1], &[b"\xff"])] };
    let outputs = [RequestedOutput { index: 1, binary: true }, RequestedOutput { index: 0, binary: false }];
    let options = ResponseOptions { id: Some("q\""), outputs: &outputs, binary_outputs: false };
    let mut out = b"..".to_vec();
    let length = oip::write(&response, &two(), &options, "m", "3", &mut out).unwrap().unwrap();
    let (head, blob) = out[2..].split_at(length);
    assert_eq!(blob, b"\x01\0\0\0\xff");
    assert_eq!(
        std::str::from_utf8(head).unwrap(),
        r#"{"model_name":"m","model_version":"3","id":"q\"","outputs":[{"name":"label","datatype":"BYTES","shape":[1],"parameters":{"binary_data_size":5}},{"name":"score","datatype":"FP32","shape":[1,2],"data":[0.1,null]}]}"#
    );
}

#[test]
fn strings_that_are_not_utf8_must_be_requested_as_binary() {
    let response = InferenceResponse { outputs: vec![f32s(&[1, 2], &[0.0; 2]), strings(&[1], &[b"\xff"])] };
    let mut out = Vec::new();
    let json = ResponseOptions { id: None, outputs: &[], binary_outputs: false };
    let error = oip::write(&response, &two(), &json, "m", "1", &mut out).unwrap_err();
    assert_eq!(error.to_string(), "output `label`: string 0 is not UTF-8; request it as binary");
    assert!(out.is_empty());
    let binary = ResponseOptions { binary_outputs: true, ..json };
    assert!(oip::write(&response, &two(), &binary, "m", "1", &mut out).unwrap().is_some());
}

#[test]
fn a_truncated_or_changed_request_never_panics() {
    let head = br#"{"id":"1","inputs":[{"name":"a","shape":[1,2],"datatype":"FP32","data":[1.5,2e0]},{"name":"words","shape":[1],"datatype":"BYTES","parameters":{"binary_data_size":5}}],"outputs":[{"name":"label","parameters":{"binary_data":true}}],"parameters":{"timeout":15}}"#;
    let body = [&head[..], &[1, 0, 0, 0, b'x']].concat();
    let run = |body: &[u8], length| {
        oip::read(&Bytes::copy_from_slice(body), Some(length), &two(), &RequestLimits::default()).is_ok()
    };
    assert!(run(&body, head.len()));
    for end in 0..body.len() {
        assert!(!run(&body[..end], head.len().min(end)));
        assert!(!run(&body, end) || end == head.len());
    }
    for path in 0..body.len() {
        for byte in [0, b'"', b'[', b']', b'{', b'}', b',', b'0', b'9', b'-', b'e', b'\\', 0x80, 0xff] {
            let mut body = body.clone();
            body[path] = byte;
            run(&body, head.len());
        }
    }
}

fn wide(tensors: &[Tensor]) -> Signature {
    let specs = |prefix: &str| {
        let specs = tensors.iter().enumerate().map(|(index, tensor)| {
            spec(&format!("{prefix}{index}"), tensor.dtype(), &vec![None; tensor.shape().len()])
        });
        specs.collect::<Vec<_>>()
    };
    Signature { inputs: specs("i"), outputs: specs("o"), batched: true }
}

proptest! {
    #[test]
    fn a_response_round_trips_as_a_request(
        tensors in proptest::collection::vec(
            (dtypes(), proptest::collection::vec(1..4_usize, 0..3)).prop_flat_map(|(dtype, mut shape)| {
                shape.insert(0, 2);
                tensors(dtype, shape)
            }),
            1..4,
        ),
        binary in proptest::collection::vec(any::<bool>(), 4),
    ) {
        let signature = wide(&tensors);
        let outputs: Vec<RequestedOutput> =
            (0..tensors.len()).map(|index| RequestedOutput { index, binary: binary[index] }).collect();
        let options = ResponseOptions { id: None, outputs: &outputs, binary_outputs: binary[3] };
        let mut out = Vec::new();
        let length = oip::write(&InferenceResponse { outputs: tensors.clone() }, &signature, &options, "m", "1", &mut out).unwrap();
        let head: Value = serde_json::from_slice(&out[..length.unwrap_or(out.len())]).unwrap();
        prop_assert_eq!(&head["outputs"][0]["name"], &json!("o0"));
        // The head of a response is that of a request but for two names.
        let text = String::from_utf8(out[..length.unwrap_or(out.len())].to_vec()).unwrap();
        let text = text.replace("\"outputs\":", "\"inputs\":").replace("{\"name\":\"o", "{\"name\":\"i");
        let body = Bytes::from([text.as_bytes(), &out[length.unwrap_or(out.len())..]].concat());
        let back = oip::read(&body, length.map(|_| text.len()), &signature, &RequestLimits::default()).unwrap();
        prop_assert_eq!(back.inputs, tensors);
    }
}
