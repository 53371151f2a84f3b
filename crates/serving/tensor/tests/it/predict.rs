//! `/predict`: accepted and rejected requests, and responses.

use std::time::Duration;

use cudock_tensor::{
    DType, InferenceRequest, InferenceResponse, RequestError, RequestLimits, RequestedOutput, Signature,
    TensorSpec, envelope, predict,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::{dtypes, f32s, one, spec, strings, tensors, two};

fn read(body: &str, signature: &Signature) -> Result<InferenceRequest, RequestError> {
    predict::read(body.as_bytes(), signature, &RequestLimits::default())
}

fn write(response: &InferenceResponse, signature: &Signature, single: bool, requested: &[usize]) -> String {
    let requested: Vec<RequestedOutput> =
        requested.iter().map(|index| RequestedOutput { index: *index, binary: false }).collect();
    let mut out = Vec::new();
    predict::write(response, signature, single, &requested, "cpu", &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn rows_of_two() -> Signature {
    one(DType::F32, &[None, Some(2)])
}

#[test]
fn one_row_and_many_rows_are_distinguished_by_depth() {
    let single = read(r#"{"input": [1.5, 2]}"#, &rows_of_two()).unwrap();
    assert_eq!((single.rows, single.single), (1, true));
    assert_eq!(single.inputs, [f32s(&[1, 2], &[1.5, 2.0])]);
    let many = read(r#"{"input": [[1.5, 2], [3, 4]]}"#, &rows_of_two()).unwrap();
    assert_eq!((many.rows, many.single), (2, false));
    assert_eq!(many.inputs, [f32s(&[2, 2], &[1.5, 2.0, 3.0, 4.0])]);
}

#[test]
fn a_lone_number_is_one_row_of_a_model_that_takes_a_list() {
    let inference = read(r#"{"input": 7}"#, &one(DType::F32, &[None])).unwrap();
    assert_eq!((inference.rows, inference.single, inference.inputs), (1, true, vec![f32s(&[1], &[7.0])]));
}

#[test]
fn dynamic_dimensions_accept_any_size() {
    let signature = one(DType::F32, &[None, None, Some(1)]);
    assert_eq!(read(r#"{"input": [[[1],[2],[3]]]}"#, &signature).unwrap().inputs[0].shape(), [1, 3, 1]);
    assert_eq!(read(r#"{"input": [[1],[2],[3]]}"#, &signature).unwrap().inputs[0].shape(), [1, 3, 1]);
}

#[test]
fn several_inputs_come_by_name_in_any_order() {
    let inference = read(r#"{"input": {"words": ["x", "y"], "a": [[1, 2], [3, 4]]}}"#, &two()).unwrap();
    assert_eq!(inference.rows, 2);
    assert_eq!(inference.inputs, [f32s(&[2, 2], &[1.0, 2.0, 3.0, 4.0]), strings(&[2], &[b"x", b"y"])]);
    let single = read(r#"{"input": {"words": "x", "a": [1, 2]}}"#, &two()).unwrap();
    assert_eq!((single.rows, single.single), (1, true));
}

#[test]
fn a_model_whose_rows_depend_on_each_other_takes_one_without_the_row_dimension_too() {
    let signature = Signature { batched: false, ..one(DType::F32, &[None, Some(2)]) };
    let inference = read(r#"{"input": [[1, 2], [3, 4]]}"#, &signature).unwrap();
    assert_eq!((inference.rows, inference.single), (1, false));
    let inference = read(r#"{"input": [1, 2]}"#, &signature).unwrap();
    assert_eq!((inference.rows, inference.single, inference.inputs[0].shape()), (1, true, &[1, 2][..]));
    assert!(read(r#"{"input": [1, 2, 3]}"#, &signature).is_err());
}

#[test]
fn a_model_without_rows_takes_its_shape_and_no_other() {
    let signature = Signature { batched: false, ..one(DType::F32, &[Some(1), Some(2)]) };
    assert!(!read(r#"{"input": [[1, 2]]}"#, &signature).unwrap().single);
    assert!(read(r#"{"input": [1, 2]}"#, &signature).is_err());
}

/// A model that takes and returns rows of JSON.
fn rows_of_json() -> Signature {
    let json = TensorSpec { json: true, ..spec("json", DType::String, &[None]) };
    Signature { inputs: vec![json.clone()], outputs: vec![json], batched: true }
}

#[test]
fn rows_of_json_may_be_anything() {
    let body = r#"{"input": [{"age": 3, "tags": ["\u00e9", null]}, [1.50, {}], "x", true ]}"#;
    let many = read(body, &rows_of_json()).unwrap();
    assert_eq!((many.rows, many.single), (4, false));
    let texts: [&[u8]; 4] = [br#"{"age": 3, "tags": ["\u00e9", null]}"#, b"[1.50, {}]", br#""x""#, b"true"];
    assert_eq!(many.inputs, [strings(&[4], &texts)]);
    let single = read(r#"{"id": "a", "input": {"age": 3} }"#, &rows_of_json()).unwrap();
    assert_eq!((single.rows, single.single, single.id.as_deref()), (1, true, Some("a")));
    assert_eq!(single.inputs, [strings(&[1], &[br#"{"age": 3}"#])]);
}

#[test]
fn rows_that_are_not_json_are_rejected_with_their_place() {
    for (body, message) in [
        (r#"{"input": [{"age": 3}, {"age": x}]}"#, "input[1]: expected a number, found x (at byte 31)"),
        (r#"{"input": [1, 2"#, "input: expected `,` or `]`, found the end (at byte 15)"),
        (r#"{"input": []}"#, "json: no rows"),
    ] {
        assert_eq!(read(body, &rows_of_json()).unwrap_err().to_string(), message, "{body}");
    }
    let limits = RequestLimits { elements: 2, ..RequestLimits::default() };
    let error = predict::read(br#"{"input": [1, 2, 3]}"#, &rows_of_json(), &limits).unwrap_err();
    assert_eq!(error.to_string(), "input: more than the 2 elements allowed");
}

#[test]
fn results_of_json_are_written_as_they_are() {
    let outputs = vec![strings(&[2], &[br#"{"risk": 0.1}"#, b"null"])];
    let text = write(&InferenceResponse { outputs }, &rows_of_json(), false, &[]);
    assert_eq!(text, r#"{"prediction":[{"risk": 0.1},null],"device":"cpu"}"#);
    let outputs = vec![strings(&[1], &[br#"{"risk": 0.1}"#])];
    let text = write(&InferenceResponse { outputs }, &rows_of_json(), true, &[]);
    assert_eq!(text, r#"{"prediction":{"risk": 0.1},"device":"cpu"}"#);
}

#[test]
fn optional_keys_are_parsed() {
    let body = r#"{"id": "a\u00e9", "outputs": ["label"], "parameters": {"timeout_ms": 2.5, "priority": 3},
        "instances": {"a": [1, 2], "words": ""}}"#;
    let inference = read(body, &two()).unwrap();
    assert_eq!(inference.id.as_deref(), Some("aé"));
    assert_eq!(inference.outputs, [RequestedOutput { index: 1, binary: false }]);
    assert_eq!((inference.priority, inference.timeout), (3, Some(Duration::from_micros(2500))));
}

#[test]
fn errors_contain_path_and_reason() {
    let list = one(DType::F32, &[None, Some(2)]);
    for (body, signature, expected) in [
        ("", &list, "expected `{`, found the end (at byte 0)"),
        ("[1]", &list, "expected `{`, found an array (at byte 0)"),
        ("{}", &list, "`input` is missing"),
        (r#"{"input": [1,2]} x"#, &list, "expected the end, found x (at byte 17)"),
        (r#"{"input": [1,2]"#, &list, "expected `,` or `}`, found the end (at byte 15)"),
        (r#"{"imput": [1,2]}"#, &list, "unknown key `imput`; did you mean `input`? (at byte 10)"),
        (
            r#"{"zzz": 1}"#,
            &list,
            "unknown key `zzz`; expected `input`, `inputs`, `instances`, `outputs`, `parameters`, `id` (at byte 8)",
        ),
        (r#"{"input": [1,2], "input": [1,2]}"#, &list, "`input` is given twice (at byte 26)"),
        (r#"{"input": [1,2], "inputs": [1,2]}"#, &list, "inputs: the input is given twice (at byte 27)"),
        (r#"{"input": [1,2,3]}"#, &list, "input: shape [3], but a row of the model has [2]"),
        (r#"{"input": [[1],[2]]}"#, &list, "input: shape [2, 1], but the model expects [any, 2]"),
        (r#"{"input": [[[1]]]}"#, &list, "input: shape [1, 1, 1], but the model expects [any, 2]"),
        (r#"{"input": 1}"#, &list, "input: shape [], but the model expects [any, 2]"),
        (r#"{"input": []}"#, &list, "input: shape [0], but a row of the model has [2]"),
        (
            r#"{"input": [[1,2],[3,NaN]]}"#,
            &list,
            "input[1][1]: JSON has no NaN and no infinity; send such values as binary or .npy (at byte 20)",
        ),
        (r#"{"input": {"y": [1,2]}}"#, &list, "the model has no input `y`; expected `x`"),
        (r#"{"input": {}}"#, &list, "input `x` is missing"),
        (
            r#"{"input": [1,2]}"#,
            &two(),
            "input: the model has the inputs `a`, `words`: give an object with each by name (at byte 10)",
        ),
        (r#"{"input": {"a": [1,2], "a": [1,2]}}"#, &two(), "input `a` is given twice"),
        (r#"{"input": {"a": [1,2]}}"#, &two(), "input `words` is missing"),
        (
            r#"{"input": {"a": [1,2], "words": ["x"]}}"#,
            &two(),
            "input.a is one row and input.words an array of rows; give both alike",
        ),
        (r#"{"input": {"a": [[1,2]], "words": ["x", "y"]}}"#, &two(), "words: 2 rows, but a has 1"),
        (
            r#"{"input": {"a": [[1,2]], "word": ["x"]}}"#,
            &two(),
            "the model has no input `word`; did you mean `words`?",
        ),
        (r#"{"outputs": ["labels"]}"#, &two(), "the model has no output `labels`; did you mean `label`?"),
        (r#"{"outputs": ["label", "label"]}"#, &two(), "output `label` is requested twice"),
        (
            r#"{"parameters": {"timeout": 5}}"#,
            &list,
            "parameters: unknown key `timeout`; did you mean `timeout_ms`? (at byte 27)",
        ),
        (
            r#"{"parameters": {"timeout_ms": 0}}"#,
            &list,
            "parameters.timeout_ms: expected a time in milliseconds above 0 (at byte 31)",
        ),
        (
            r#"{"parameters": {"timeout_ms": -1}}"#,
            &list,
            "parameters.timeout_ms: expected a time in milliseconds above 0 (at byte 32)",
        ),
        (
            r#"{"parameters": {"priority": -1}}"#,
            &list,
            "parameters.priority: expected a non-negative integer: -1 is out of range for a number (at byte 28)",
        ),
        (r#"{"id": 5}"#, &list, "id: expected a string, found 5 (at byte 7)"),
    ] {
        assert_eq!(read(body, signature).unwrap_err().to_string(), expected, "{body}");
    }
}

#[test]
fn a_request_without_rows_is_rejected() {
    let error = read(r#"{"input": []}"#, &one(DType::F32, &[None])).unwrap_err();
    assert_eq!(error.to_string(), "x: no rows");
    assert!(read(r#"{"input": [[]]}"#, &one(DType::F32, &[None, None])).is_ok());
}

#[test]
fn a_body_over_the_limit_is_not_parsed() {
    let limits = RequestLimits { body: 10, ..RequestLimits::default() };
    let error = predict::read(br#"{"input": [1,2]}"#, &rows_of_two(), &limits).unwrap_err();
    assert!(matches!(error, RequestError::TooLarge { .. }));
    assert_eq!(error.to_string(), "more than the 10 bytes allowed");
}

#[test]
fn one_output_is_an_array_and_several_are_an_object() {
    let response = InferenceResponse {
        outputs: vec![f32s(&[1, 2], &[0.1, f32::NAN]), strings(&[1], &["é\"\u{1}\n".as_bytes()])],
    };
    assert_eq!(
        write(&response, &two(), false, &[]),
        r#"{"prediction":{"score":[[0.1,null]],"label":["é\"\u0001\n"]},"device":"cpu"}"#
    );
    assert_eq!(write(&response, &two(), true, &[0]), r#"{"prediction":[0.1,null],"device":"cpu"}"#);
    assert_eq!(write(&response, &two(), true, &[1]), r#"{"prediction":"é\"\u0001\n","device":"cpu"}"#);
    assert_eq!(
        write(&response, &two(), true, &[1, 0]),
        r#"{"prediction":{"label":"é\"\u0001\n","score":[0.1,null]},"device":"cpu"}"#
    );
}

#[test]
fn a_failed_write_appends_nothing() {
    let response =
        InferenceResponse { outputs: vec![f32s(&[2, 2], &[1.0; 4]), strings(&[2], &[b"a", b"\xff"])] };
    let mut out = b"before".to_vec();
    let error = predict::write(&response, &two(), false, &[], "cpu", &mut out).unwrap_err();
    assert_eq!(error.to_string(), "output `label`: string 1 is not UTF-8; request it as binary");
    assert_eq!(out, b"before");
}

#[test]
fn a_truncated_request_is_an_error() {
    let body = r#"{"id":"é","parameters":{"priority":1,"timeout_ms":1e3},"outputs":["label"],"input":{"a":[[1.5,-2e1]],"words":["\u00e9"]}}"#;
    assert!(read(body, &two()).is_ok());
    for end in 0..body.len() {
        let cut = &body.as_bytes()[..end];
        assert!(
            predict::read(cut, &two(), &RequestLimits::default()).is_err(),
            "{}",
            String::from_utf8_lossy(cut)
        );
    }
}

#[test]
fn a_byte_changed_anywhere_never_panics() {
    let body = br#"{"id":"e","parameters":{"priority":1},"outputs":["label"],"input":{"a":[[1.5,-2e1]],"words":["\u00e9"]}}"#;
    for path in 0..body.len() {
        for byte in 0..=255 {
            let mut body = body.to_vec();
            body[path] = byte;
            _ = predict::read(&body, &two(), &RequestLimits::default());
        }
    }
}

proptest! {
    #[test]
    fn a_prediction_round_trips(
        tensor in (dtypes(), proptest::collection::vec(1..4_usize, 1..4))
            .prop_flat_map(|(dtype, shape)| tensors(dtype, shape)),
    ) {
        let dims: Vec<Option<usize>> = tensor.shape().iter().map(|_| None).collect();
        let signature = Signature {
            inputs: vec![spec("x", tensor.dtype(), &dims)],
            outputs: vec![spec("y", tensor.dtype(), &dims)],
            batched: true,
        };
        let single = tensor.rows() == 1;
        let text = write(&InferenceResponse { outputs: vec![tensor.clone()] }, &signature, single, &[]);
        let response: Value = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(&response["device"], &json!("cpu"));
        let body = text.replacen("prediction", "input", 1).replacen(",\"device\":\"cpu\"", "", 1);
        let back = read(&body, &signature).unwrap();
        prop_assert_eq!(back.single, single);
        prop_assert_eq!(&back.inputs, &[tensor]);
    }
}

#[test]
fn strings_in_place_of_numbers_are_recognized() {
    let is_text = |body: &str| envelope::is_text(body.as_bytes(), &envelope::PREDICT, "x");
    for body in [
        r#"{"input": "a"}"#,
        r#"{"id": "7", "parameters": {"priority": [1]}, "instances": [ [ "a", 1] ]}"#,
        r#"{"inputs": {"y": [[1]], "x": ["a"]}}"#,
        r#"{"input": ["a"#,
        r#"{"input": [{"y": 1, "x": "a"}]}"#,
        r#"{"input": [{"b64": "a"}]}"#,
    ] {
        assert!(is_text(body), "{body}");
    }
    for body in
        ["", "[]", r#"{"input": [1, "a"]}"#, r#"{"inputs": {"y": "a"}}"#, r#"{"id": "a"}"#, r#"{"id": "#]
    {
        assert!(!is_text(body), "{body}");
    }
}

#[test]
fn keys_are_added_to_a_response() {
    let mut out = br#"{"prediction":1}"#.to_vec();
    predict::add_key("labels", &mut out, |out| out.extend(b"[]"));
    predict::add_id("\"", &mut out);
    assert_eq!(String::from_utf8(out).unwrap(), r#"{"prediction":1,"labels":[],"id":"\""}"#);
}
