//! Requests and responses, compared with the bytes of the official client's classes.

use std::time::{Duration, Instant};

use bytes::Bytes;
use cudock_tensor::{
    DType, InferenceRequest, InferenceResponse, RequestLimits, RequestedOutput, Signature, Tensor, TensorSpec,
};

use super::*;
use crate::grpc::fixtures;
use crate::grpc::status::GrpcCode;

fn signature(inputs: Vec<TensorSpec>, batched: bool) -> Signature {
    let first = TensorSpec::new("first", DType::F32, [None, Some(1)]);
    let second = TensorSpec::new("second", DType::String, [None]);
    Signature { inputs, outputs: vec![first, second], batched }
}

fn one_input() -> Signature {
    signature(vec![TensorSpec::new("x", DType::F32, [None, None])], true)
}

fn two_inputs() -> Vec<TensorSpec> {
    let a = TensorSpec::new("a", DType::F16, [None, Some(2)]);
    vec![a, TensorSpec::new("b", DType::I64, [None, Some(1)])]
}

fn inference(message: &Bytes, signature: &Signature) -> Result<InferenceRequest, GrpcStatus> {
    let limits = RequestLimits::default();
    let request = InferRequest::read(message, limits.rank)?;
    request.into_inference(signature, &limits, Deadline::default(), Instant::now())
}

fn rejected(message: &Bytes, signature: &Signature) -> (GrpcCode, String) {
    let status = inference(message, signature).unwrap_err();
    (status.code, status.message)
}

#[test]
fn a_request_with_raw_tensors_is_read() {
    let message = fixtures::message("raw_fp32");
    let request = InferRequest::read(&message, 16).unwrap();
    assert_eq!((request.model.as_str(), request.version.as_str()), ("model", "3"));
    let inference = inference(&message, &one_input()).unwrap();
    assert_eq!(inference.id.as_deref(), Some("seven"));
    assert_eq!((inference.rows, inference.priority), (1, 2));
    assert_eq!(inference.timeout, Some(Duration::from_millis(5)));
    let tensor = &inference.inputs[0];
    assert_eq!((tensor.dtype(), tensor.shape()), (DType::F32, &[1, 3][..]));
    assert_eq!(*tensor.data(), [1.5_f32, -2.0, 3.25].map(f32::to_le_bytes).concat());
    assert!(message.as_ptr_range().contains(&tensor.data().as_ptr()), "it was copied");
}

#[test]
fn inputs_are_sorted_and_outputs_selected() {
    let model = signature(two_inputs(), true);
    let inference = inference(&fixtures::message("raw_two_inputs"), &model).unwrap();
    assert_eq!(inference.rows, 2);
    assert_eq!(inference.inputs[0].data()[..], [0x00, 0x38, 0x00, 0x3c, 0x00, 0x40, 0x00, 0x44]);
    assert_eq!(*inference.inputs[1].data(), [7_i64, -8].map(i64::to_le_bytes).concat());
    assert_eq!(inference.outputs, [RequestedOutput { index: 1, binary: true }]);
}

#[test]
fn raw_strings_are_parsed() {
    let inputs = vec![TensorSpec::new("s", DType::String, [None, Some(2)])];
    let inference = inference(&fixtures::message("raw_bytes"), &signature(inputs, true)).unwrap();
    assert_eq!(inference.inputs[0].strings().collect::<Vec<_>>(), [&b"hi"[..], b""]);
}

#[test]
fn typed_tensors_of_every_type_are_parsed() {
    let cases: [(&str, DType, Vec<usize>, Vec<u8>); 12] = [
        ("bool", DType::Bool, vec![2], vec![1, 0]),
        ("int8", DType::I8, vec![3], vec![0x80, 0, 0x7f]),
        ("int16", DType::I16, vec![2], [i16::MIN, i16::MAX].map(i16::to_le_bytes).concat()),
        ("int32", DType::I32, vec![2], [i32::MIN, i32::MAX].map(i32::to_le_bytes).concat()),
        ("int64", DType::I64, vec![2], [i64::MIN, i64::MAX].map(i64::to_le_bytes).concat()),
        ("uint8", DType::U8, vec![2], vec![0, 255]),
        ("uint16", DType::U16, vec![1], u16::MAX.to_le_bytes().to_vec()),
        ("uint32", DType::U32, vec![1], u32::MAX.to_le_bytes().to_vec()),
        ("uint64", DType::U64, vec![1], u64::MAX.to_le_bytes().to_vec()),
        ("fp32", DType::F32, vec![1, 2], [1.5_f32, -0.0].map(f32::to_le_bytes).concat()),
        ("fp64", DType::F64, vec![2], [1e300_f64, -2.5].map(f64::to_le_bytes).concat()),
        ("bytes", DType::String, vec![2], b"\x02\0\0\0hi\x02\0\0\0\xff\0".to_vec()),
    ];
    let spec = |(name, dtype, shape, _): &(&str, DType, Vec<usize>, _)| {
        TensorSpec::new(*name, *dtype, vec![None; shape.len()])
    };
    let inputs = cases.iter().map(spec).collect();
    let inference = inference(&fixtures::message("typed"), &signature(inputs, false)).unwrap();
    for (tensor, (name, dtype, shape, data)) in inference.inputs.iter().zip(cases) {
        assert_eq!(*tensor, Tensor::new(dtype, shape, data.into()).unwrap(), "{name}");
    }
}

#[test]
fn parameters_that_change_the_meaning_of_a_request_are_rejected() {
    for (name, word) in
        [("sequence", "sequence"), ("classification", "classes"), ("shared_memory", "shared memory")]
    {
        let (code, message) = rejected(&fixtures::message(name), &one_input());
        assert_eq!(code, GrpcCode::Unimplemented, "{name}");
        assert!(message.contains(word), "{message}");
    }
}

#[test]
fn an_unknown_output_is_rejected_with_the_known_ones() {
    let outputs = vec![TensorSpec::new("only", DType::F32, [None])];
    let model = Signature { inputs: two_inputs(), outputs, batched: true };
    let (code, message) = rejected(&fixtures::message("raw_two_inputs"), &model);
    assert_eq!(code, GrpcCode::InvalidArgument);
    assert_eq!(message, "unknown output `second`; the model has only");
}

#[test]
fn a_request_that_does_not_match_the_model_is_rejected() {
    let model = signature(vec![TensorSpec::new("x", DType::F32, [None, Some(4)])], true);
    assert_eq!(rejected(&fixtures::message("raw_fp32"), &model).0, GrpcCode::InvalidArgument);
}

/// A request with one input: type, shape, and raw contents.
fn request(datatype: &str, shape: &[u8], raw: &[&[u8]]) -> Bytes {
    let block =
        |field: u8, bytes: &[u8]| [&[field << 3 | 2, u8::try_from(bytes.len()).unwrap()], bytes].concat();
    let input = [block(1, b"x"), block(2, datatype.as_bytes()), block(3, shape)].concat();
    let mut message = block(5, &input);
    message.extend(raw.iter().flat_map(|raw| block(7, raw)));
    message.into()
}

#[test]
fn invalid_tensors_are_rejected_by_name() {
    let minus_one = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
    let cases = [
        (request("FP32", &[1, 2], &[&[0; 7]]), "input `x`: FP32 [1, 2] takes 8 bytes, not 7"),
        (request("FP33", &[1, 1], &[&[0; 4]]), "input `x`: unknown datatype \"FP33\""),
        (request("FP32", &minus_one, &[&[0; 4]]), "input `x`: the shape has a negative dimension"),
        (request("FP32", &[1, 1], &[&[0; 4], &[0; 4]]), "the request has 1 inputs, raw_input_contents has 2"),
        (request("FP32", &[1, 1], &[]), "input `x`: the shape has 1 elements, the contents have 0"),
        (request("FP32", &[1; 17], &[&[0; 4]]), "an input has more than 16 dimensions"),
    ];
    for (message, expected) in cases {
        assert_eq!(rejected(&message, &one_input()), (GrpcCode::InvalidArgument, expected.to_owned()));
    }
}

#[test]
fn an_invalid_message_is_reported_with_the_field_and_its_position() {
    for (message, expected) in [
        (&b"\x0a\x01m\x12\x01\xff"[..], "a string is not UTF-8 (field 2 at byte 3)"),
        (b"\x0a\x01m\x2a\x09", "field claims 9 bytes, but 0 are left (field 5 at byte 3)"),
        (b"\x0a\x01m\x2a\x02\x08\x01", "expected a string or message, found a number (field 1 at byte 0)"),
        (b"\x0a\x01m\x00", "invalid field number 0 (at byte 3)"),
    ] {
        let rejected = rejected(&Bytes::copy_from_slice(message), &one_input());
        assert_eq!(rejected, (GrpcCode::InvalidArgument, format!("invalid protobuf message: {expected}")));
    }
}

#[test]
fn a_shape_that_overflows_is_rejected() {
    let large = [0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x40];
    let (code, message) = rejected(&request("FP32", &[large, large].concat(), &[&[0; 4]]), &one_input());
    assert_eq!(code, GrpcCode::InvalidArgument);
    assert!(message.contains("elements"), "{message}");
}

#[test]
fn many_empty_inputs_are_rejected() {
    let rejected = rejected(&[0x2a, 0].repeat(100_000).into(), &one_input());
    let message = "the request has more than 1024 inputs or outputs".to_owned();
    assert_eq!(rejected, (GrpcCode::InvalidArgument, message));
}

#[test]
fn the_earlier_of_both_timeouts_applies() {
    let message = fixtures::message("raw_fp32");
    let now = Instant::now();
    for (header, timeout) in [(&b"1m"[..], Duration::from_millis(1)), (b"1S", Duration::from_millis(5))] {
        let deadline = Deadline::of_request(Some(header), now).unwrap();
        let request = InferRequest::read(&message, 16).unwrap();
        let inference =
            request.into_inference(&one_input(), &RequestLimits::default(), deadline, now).unwrap();
        assert_eq!(inference.timeout, Some(timeout));
    }
}

#[test]
fn corrupt_messages_never_panic() {
    let model = one_input();
    for message in fixtures::all() {
        for end in 0..message.len() {
            let _ = inference(&message.slice(..end), &model);
        }
        for index in 0..message.len() {
            for value in [0, 0x7f, 0x80, 0xff, message[index] ^ 1] {
                let mut changed = message.to_vec();
                changed[index] = value;
                let _ = inference(&changed.into(), &model);
            }
        }
    }
}

fn result() -> InferenceResponse {
    let first = [1.5_f32, -2.0].map(f32::to_le_bytes).concat();
    InferenceResponse {
        outputs: vec![
            Tensor::new(DType::F32, vec![2, 1], first.into()).unwrap(),
            Tensor::new(DType::String, vec![2], Bytes::from_static(b"\x02\0\0\0hi\0\0\0\0")).unwrap(),
        ],
    }
}

fn response<'a>(
    signature: &'a Signature,
    wanted: &'a [RequestedOutput],
    response: &'a InferenceResponse,
) -> InferResponse<'a> {
    InferResponse { model: "model", version: "3", id: "seven", signature, wanted, response }
}

#[test]
fn responses_match_those_of_the_official_classes() {
    let (model, result) = (one_input(), result());
    let response = response(&model, &[], &result);
    let parts = response.message().unwrap();
    assert_eq!(parts.concat(), fixtures::message("answer"));
    assert!(parts.iter().any(|part| part.as_ptr() == result.outputs[0].data().as_ptr()), "it was copied");
    assert_eq!(response.stream_message().unwrap().concat(), fixtures::message("answer_in_stream"));
    assert_eq!(error_in_stream("model", "3", "seven", "too late"), fixtures::message("error_in_stream"));
}

#[test]
fn only_requested_outputs_are_written_in_the_requested_order() {
    let (model, result) = (one_input(), result());
    let wanted = [1, 0].map(|index| RequestedOutput { index, binary: true });
    let both = response(&model, &wanted, &result).message().unwrap();
    assert_eq!(both[1], *result.outputs[1].data());
    assert_eq!(both[3], *result.outputs[0].data());
    let second = response(&model, &wanted[..1], &result).message().unwrap();
    assert_eq!(second.len(), 2);
    assert_eq!(second[1], *result.outputs[1].data());
}

#[test]
fn an_engine_with_too_few_outputs_is_an_error() {
    let (model, mut result) = (one_input(), result());
    result.outputs.pop();
    assert_eq!(response(&model, &[], &result).message().unwrap_err().code, GrpcCode::Internal);
}
