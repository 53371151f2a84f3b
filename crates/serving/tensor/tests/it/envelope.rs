//! The JSON of other model servers, and CSV.

use cudock_tensor::envelope::{self, Envelope};
use cudock_tensor::{
    DType, InferenceRequest, InferenceResponse, RequestError, RequestLimits, ResponseForm, Signature, csv,
};
use serde_json::{Value, json};

use crate::support::{f32s, one, strings, two};

static ROWS_OR_COLUMNS: Envelope = Envelope {
    inputs: &[("instances", ResponseForm::Rows), ("inputs", ResponseForm::Columns)],
    bare: true,
    strict: false,
};

fn read(body: &str, signature: &Signature) -> Result<InferenceRequest, RequestError> {
    envelope::read(body.as_bytes(), &ROWS_OR_COLUMNS, signature, &RequestLimits::default())
}

fn write(response: &InferenceResponse, single: bool, form: ResponseForm) -> Value {
    let mut out = Vec::new();
    envelope::write(response, &two(), single, &[], form, "cpu", &mut out).unwrap();
    serde_json::from_slice(&out).unwrap()
}

#[test]
fn the_key_of_the_input_decides_about_the_response() {
    let signature = one(DType::F32, &[None, Some(2)]);
    for (body, form, single) in [
        (r#"{"instances": [[1, 2]], "parameters": {"a": [{}]}, "x": null}"#, ResponseForm::Rows, false),
        (r#"{"signature_name": "s", "inputs": [[1, 2]]}"#, ResponseForm::Columns, false),
        (" [[1, 2]] ", ResponseForm::Bare, false),
        ("[1, 2]", ResponseForm::Bare, true),
    ] {
        let request = read(body, &signature).unwrap();
        assert_eq!((request.form, request.single), (form, single), "{body}");
        assert_eq!(request.inputs, [f32s(&[1, 2], &[1.0, 2.0])], "{body}");
    }
}

#[test]
fn rows_may_be_objects_with_each_input_by_name() {
    let body = r#"{"instances": [{"words": "x", "a": [1, 2]}, {"a": [3, 4], "words": "y"}]}"#;
    let request = read(body, &two()).unwrap();
    assert_eq!((request.rows, request.single), (2, false));
    assert_eq!(request.inputs, [f32s(&[2, 2], &[1.0, 2.0, 3.0, 4.0]), strings(&[2], &[b"x", b"y"])]);
}

#[test]
fn bytes_are_base64_in_an_object() {
    let signature = one(DType::String, &[None]);
    for body in [
        r#"{"instances": [{"b64": "/wA="}, "a"]}"#,
        r#"{"inputs": {"x": [ { "b64" : "/wA=" } , "a"]}}"#,
        r#"{"instances": [{"x": {"b64": "/wA="}}, {"x": "a"}]}"#,
    ] {
        assert_eq!(read(body, &signature).unwrap().inputs, [strings(&[2], &[&[255, 0], b"a"])], "{body}");
    }
}

#[test]
fn invalid_rows_are_rejected_with_their_path() {
    for (body, error) in [
        (r#"{"instances": [{"a": [1, 2]}]}"#, "instances[0]: input `words` is missing"),
        (
            r#"{"instances": [{"a": [1, 2], "words": "x"}, {"a": [1], "words": "x"}]}"#,
            "instances[1].a: shape [1], but the rows before have [2]",
        ),
        (r#"{"instances": [{"a": [1, 2], "a": [1, 2]}]}"#, "instances[0].a: it is given twice"),
        (r#"{"instances": [{"b": 1}]}"#, "the model has no input `b`; expected `a`, `words`"),
        (
            r#"{"instances": [{"a": [1, 2], "words": "x"}, 7]}"#,
            "instances[1]: expected `{`, found 7 (at byte 44)",
        ),
        (
            r#"{"instances": [{"a": [1, 2], "words": {"b64": "?"}}]}"#,
            "instances[0].words: expected {\"b64\": \"…\"} with base64 (at byte 38)",
        ),
        (r#"{"instances": [], "inputs": []}"#, "the model has the inputs"),
        (r#"{"rows": []}"#, "`instances` is missing"),
    ] {
        let found = read(body, &two()).unwrap_err().to_string();
        assert!(found.contains(error), "{body}: {found}");
    }
    let limits = RequestLimits { elements: 3, ..RequestLimits::default() };
    let body = br#"{"instances": [{"x": [1, 2]}, {"x": [3, 4]}]}"#;
    let error = envelope::read(body, &ROWS_OR_COLUMNS, &one(DType::F32, &[None, None]), &limits).unwrap_err();
    assert_eq!(error.to_string(), "instances[1].x: more than the 3 elements allowed");
}

#[test]
fn responses_have_rows_columns_or_nothing_around_them() {
    let response = InferenceResponse {
        outputs: vec![f32s(&[2, 2], &[1.0, 2.0, 3.0, 4.0]), strings(&[2], &[b"long", b""])],
    };
    let columns = json!({"score": [[1.0, 2.0], [3.0, 4.0]], "label": ["long", ""]});
    let rows = json!([{"score": [1.0, 2.0], "label": "long"}, {"score": [3.0, 4.0], "label": ""}]);
    for (form, expected) in [
        (ResponseForm::Rows, json!({ "predictions": rows })),
        (ResponseForm::Columns, json!({ "outputs": columns })),
        (ResponseForm::Bare, columns.clone()),
        (ResponseForm::Prediction, json!({"prediction": columns, "device": "cpu"})),
    ] {
        assert_eq!(write(&response, false, form), expected, "{form:?}");
    }
    let row = InferenceResponse { outputs: vec![f32s(&[1, 2], &[1.0, 2.0]), strings(&[1], &[b"x"])] };
    let single = json!({"predictions": {"score": [1.0, 2.0], "label": "x"}});
    assert_eq!(write(&row, true, ResponseForm::Rows), single);
}

#[test]
fn csv_has_a_row_on_each_line() {
    let read = |body: &str, shape: &[Option<usize>]| {
        csv::read(body.as_bytes(), &one(DType::F32, shape), &RequestLimits::default())
    };
    let rows = read("1, 2\r\n\n3,4e0", &[None, Some(2)]).unwrap();
    assert_eq!((rows.rows, &rows.inputs[0]), (2, &f32s(&[2, 2], &[1.0, 2.0, 3.0, 4.0])));
    let nested = read("1,2,3,4\n", &[None, Some(2), Some(2)]).unwrap();
    assert_eq!(nested.inputs, [f32s(&[1, 2, 2], &[1.0, 2.0, 3.0, 4.0])]);
    assert_eq!(read("1\n2\n", &[None]).unwrap().inputs, [f32s(&[2], &[1.0, 2.0])]);
    for (body, error) in [
        ("", "no rows"),
        ("1,2\n3\n", "line 2: 1 values where the lines before have 2"),
        ("a,2\n", "line 1[0]: expected a number, found a (at byte 1)"),
        ("1],[2\n", "expected the end"),
        ("1,2,3\n", "shape [1, 3], but the model expects [any, 2]"),
    ] {
        let found = read(body, &[None, Some(2)]).unwrap_err().to_string();
        assert!(found.contains(error), "{body}: {found}");
    }
    let request =
        csv::read(b"a, b\nc,\"\n", &one(DType::String, &[None, Some(2)]), &RequestLimits::default());
    assert_eq!(request.unwrap().inputs, [strings(&[2, 2], &[b"a", b"b", b"c", b"\""])]);
}

#[test]
fn csv_responses_have_a_line_for_each_row() {
    let response = InferenceResponse { outputs: vec![f32s(&[2, 2], &[1.0, f32::NAN, 3.0, 4.5])] };
    let mut out = Vec::new();
    csv::write(&response, &one(DType::F32, &[None, Some(2)]), &[], &mut out).unwrap();
    assert_eq!(String::from_utf8(out).unwrap(), "1.0,null\n3.0,4.5\n");
}
