//! Nested arrays become tensors, or an error with the path.

use cudock_tensor::json::{Cursor, write};
use cudock_tensor::{DType, RequestError, RequestLimits};
use proptest::prelude::*;
use serde_json::Value;

use crate::support::{dtypes, f32s, read, strings, tensors};

fn message(text: &str, dtype: DType) -> String {
    read(text, dtype).unwrap_err().to_string()
}

#[test]
fn arrays_of_any_depth_become_their_shape() {
    assert_eq!(read("7", DType::F32).unwrap(), f32s(&[], &[7.0]));
    assert_eq!(read("[1,2 , 3]", DType::F32).unwrap(), f32s(&[3], &[1.0, 2.0, 3.0]));
    assert_eq!(read(" [ [ 1 ] , [ 2 ] ] ", DType::F32).unwrap(), f32s(&[2, 1], &[1.0, 2.0]));
    assert_eq!(
        read("[[[1,2]],\n\t[[3,4]]]\r\n", DType::F32).unwrap(),
        f32s(&[2, 1, 2], &[1.0, 2.0, 3.0, 4.0])
    );
    assert_eq!(read("[]", DType::F32).unwrap(), f32s(&[0], &[]));
    assert_eq!(read("[[],[]]", DType::F32).unwrap(), f32s(&[2, 0], &[]));
    let expected = strings(&[2, 1], &[b"a\n\"", "äé€😀".as_bytes()]);
    assert_eq!(read(r#"[["a\n\""],["ä\u00e9\u20AC\ud83d\uDE00"]]"#, DType::String).unwrap(), expected);
    assert_eq!(read("[true,false,1,0]", DType::Bool).unwrap().data()[..], [1, 0, 1, 0]);
}

#[test]
fn errors_contain_path_and_reason() {
    for (text, dtype, expected) in [
        ("[[1,2],[3]]", DType::F32, "input[1]: 1 number where the rows before have 2 (at byte 10)"),
        ("[[[1],[2]],[[3]]]", DType::F32, "input[1]: 1 array where the rows before have 2 (at byte 16)"),
        ("[[1],[2,3]]", DType::I64, "input[1]: 2 numbers where the rows before have 1 (at byte 10)"),
        ("[[1],[]]", DType::I64, "input[1]: 0 numbers where the rows before have 1 (at byte 7)"),
        ("[[[1]],[]]", DType::I64, "input[1]: 0 arrays where the rows before have 1 (at byte 9)"),
        (
            r#"[["a"],["b","c"]]"#,
            DType::String,
            "input[1]: 2 strings where the rows before have 1 (at byte 16)",
        ),
        ("[[1,2],[3,[4]]]", DType::F32, "input[1][1]: expected a number, found an array (at byte 10)"),
        ("[[1],2]", DType::F32, "input[1]: expected an array, found 2 (at byte 5)"),
        ("[[1],[[2]]]", DType::F32, "input[1][0]: expected a number, found an array (at byte 6)"),
        (
            "[1,NaN]",
            DType::F32,
            "input[1]: JSON has no NaN and no infinity; send such values as binary or .npy (at byte 3)",
        ),
        (
            "[-Infinity]",
            DType::F64,
            "input[0]: JSON has no NaN and no infinity; send such values as binary or .npy (at byte 1)",
        ),
        ("[1e39]", DType::F32, "input[0]: 1e39 is out of range for FP32 (at byte 1)"),
        ("[3.0]", DType::I64, "input[0]: expected an integer for INT64, found 3.0 (at byte 1)"),
        ("[300]", DType::U8, "input[0]: 300 is out of range for UINT8 (at byte 1)"),
        ("[1e2]", DType::I32, "input[0]: expected an integer for INT32, found 1e2 (at byte 1)"),
        ("[\"1\"]", DType::I32, "input[0]: expected a number, found a string (at byte 1)"),
        ("[null]", DType::F32, "input[0]: expected a number, found null (at byte 1)"),
        ("[1]", DType::String, "input[0]: expected a string, found 1 (at byte 1)"),
        ("[2]", DType::Bool, "input[0]: expected true or false, found 2 (at byte 1)"),
        ("[01]", DType::F32, "input[0]: 01 has a leading zero (at byte 1)"),
        ("[1.]", DType::F32, "input[0]: 1. has no digits (at byte 1)"),
        ("[1e]", DType::F32, "input[0]: 1e has no digits (at byte 1)"),
        ("[.5]", DType::F32, "input[0]: expected a number, found `.` (at byte 1)"),
        ("[+5]", DType::F32, "input[0]: expected a number, found `+` (at byte 1)"),
        ("[1 2]", DType::F32, "input[0]: expected `,` or `]`, found 2 (at byte 3)"),
        ("[1,]", DType::F32, "input[1]: expected a number, found `]` (at byte 3)"),
        ("[1", DType::F32, "input[0]: expected `,` or `]`, found the end (at byte 2)"),
        ("[[1]", DType::F32, "input[0]: expected `,` or `]`, found the end (at byte 4)"),
        ("", DType::F32, "input: expected a number, found the end (at byte 0)"),
        (
            "[\"a\u{1}\"]",
            DType::String,
            "input[0]: a control character in a string; write it as an escape (at byte 1)",
        ),
        (r#"["\ud800"]"#, DType::String, "input[0]: half of a surrogate pair (at byte 1)"),
        (r#"["\x"]"#, DType::String, "input[0]: an invalid escape (at byte 1)"),
        (r#"["ab"#, DType::String, "input[0]: a string that does not end (at byte 1)"),
        ("[1.5.5]", DType::F32, "input[0]: expected `,` or `]`, found `.` (at byte 4)"),
        ("[10]", DType::Bool, "input[0]: expected `,` or `]`, found 0 (at byte 2)"),
    ] {
        assert_eq!(message(text, dtype), expected, "{text}");
    }
}

#[test]
fn a_row_of_another_length_is_reported() {
    let row = |count: usize| format!("[{}]", vec!["0.5"; count].join(","));
    let image = |counts: [usize; 18]| format!("[{}]", counts.map(row).join(","));
    let mut last = [512; 18];
    last[17] = 511;
    let text = format!("[{0},{0},{0},{1}]", image([512; 18]), image(last));
    let error = read(&text, DType::F32).unwrap_err();
    assert!(
        error.to_string().starts_with("input[3][17]: 511 numbers where the rows before have 512 (at byte ")
    );
    assert!(matches!(error, RequestError::Body { offset, .. } if offset == text.len() - 2));
}

#[test]
fn nesting_and_elements_have_limits() {
    let limits = RequestLimits { rank: 2, elements: 5, ..RequestLimits::default() };
    let read = |text: &str| Cursor::new(text.as_bytes()).tensor(DType::F32, 1 << 40, &limits, &"input");
    assert_eq!(read("[[[1]]]").unwrap_err().to_string(), "input: more than the 2 dimensions allowed");
    assert!(matches!(read(&"[".repeat(1 << 20)), Err(RequestError::TooLarge { .. })));
    assert_eq!(read("[1,2,3,4,5,6]").unwrap_err().to_string(), "input: more than the 5 elements allowed");
    assert_eq!(
        read("[[1,2],[3,4],[5,6]]").unwrap_err().to_string(),
        "input: more than the 5 elements allowed"
    );
    assert_eq!(read("[1,2,3,4,5]").unwrap().shape(), [5]);
}

#[test]
fn a_truncated_text_is_an_error() {
    let text = r#"[[["ä\u00e9\ud83d\ude00", "b"], ["c", ""]], [["d", "e"], ["f", "g"]]]"#;
    for end in 0..text.len() {
        assert!(
            Cursor::new(&text.as_bytes()[..end])
                .tensor(DType::String, 9, &RequestLimits::default(), &"")
                .is_err()
        );
        assert!(Cursor::new(&text.as_bytes()[..end]).skip(&"").is_err());
    }
    Cursor::new(text.as_bytes()).skip(&"").unwrap();
    for text in
        ["[[0.4967141530112327, -1.5e-3], [17, 1e-7]]", "[[12345678901234567890.5, -0.1], [0.25e+10, 5]]"]
    {
        for dtype in [DType::F16, DType::BF16, DType::F32, DType::F64, DType::I64, DType::Bool] {
            for end in 0..text.len() {
                assert!(
                    Cursor::new(&text.as_bytes()[..end])
                        .tensor(dtype, 9, &RequestLimits::default(), &"")
                        .is_err()
                );
            }
        }
    }
}

#[test]
fn skipped_values_are_validated() {
    for text in ["{}", "[]", "{\"a\":[1,{\"b\":null}],\"c\":\"\"}", "-1.5e3", "true", "[[],{}]"] {
        let mut cursor = Cursor::new(text.as_bytes());
        cursor.skip(&"").unwrap();
        cursor.end().unwrap();
    }
    for text in
        ["{1:2}", "[1,]", "{\"a\":1,}", "{\"a\"}", "[1}", "nul", "tru", "01x", "[", "'a'", "{\"a\":1]"]
    {
        let mut cursor = Cursor::new(text.as_bytes());
        assert!(cursor.skip(&"").and_then(|()| cursor.end()).is_err(), "{text}");
    }
    assert!(Cursor::new("[".repeat(1 << 20).as_bytes()).skip(&"").is_err());
}

/// What a tree of arrays is as a tensor of `f32`: the shape that the first way down shows, if all agree.
fn reference(value: &Value) -> Option<(Vec<usize>, Vec<f32>)> {
    fn shape(value: &Value) -> Vec<usize> {
        let Value::Array(items) = value else { return Vec::new() };
        let mut sizes = vec![items.len()];
        sizes.extend(items.first().map(shape).unwrap_or_default());
        sizes
    }
    fn flatten(value: &Value, shape: &[usize], out: &mut Vec<f32>) -> Option<()> {
        match (value, shape) {
            #[allow(clippy::cast_possible_truncation, reason = "the values are f32")]
            (Value::Number(number), []) => out.push(number.as_f64()? as f32),
            (Value::Array(items), [size, rest @ ..]) if items.len() == *size => {
                items.iter().try_for_each(|item| flatten(item, rest, out))?;
            }
            _ => return None,
        }
        Some(())
    }
    let shape = shape(value);
    let mut out = Vec::new();
    flatten(value, &shape, &mut out)?;
    Some((shape, out))
}

fn trees() -> impl Strategy<Value = Value> {
    let number = prop_oneof![
        10 => any::<f32>().prop_filter("finite", |value| value.is_finite()).prop_map(|value| Value::from(f64::from(value))),
        4 => (-1000_i32..1000).prop_map(Value::from),
        1 => Just(Value::Null),
    ];
    let same_length = |inner: BoxedStrategy<Value>| {
        (0..4_usize).prop_flat_map(move |count| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), count),
                inner.clone().prop_map(move |item| vec![item; count]),
            ]
            .prop_map(Value::Array)
        })
    };
    let rows = same_length(number.boxed()).boxed();
    let matrices = same_length(rows.clone()).boxed();
    prop_oneof![rows.clone(), matrices.clone(), same_length(matrices).boxed()]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn arrays_are_parsed_like_serde_json(tree in trees(), pretty: bool) {
        let text = if pretty { serde_json::to_string_pretty(&tree) } else { serde_json::to_string(&tree) }.unwrap();
        let expected = reference(&tree);
        let found = read(&text, DType::F32).ok();
        prop_assert_eq!(found, expected.map(|(shape, values)| f32s(&shape, &values)), "{}", text);
    }

    #[test]
    fn written_tensors_round_trip(
        tensor in (dtypes(), proptest::collection::vec(0..4_usize, 0..4))
            .prop_flat_map(|(dtype, shape)| tensors(dtype, shape)),
    ) {
        let mut text = Vec::new();
        write::nested(&tensor, tensor.shape(), &mut text).unwrap();
        prop_assert!(text.len() <= write::most_bytes(&tensor), "{} bytes of {:?}", text.len(), tensor);
        let text = String::from_utf8(text).unwrap();
        prop_assert!(serde_json::from_str::<Value>(&text).is_ok(), "{}", text);
        let back = read(&text, tensor.dtype()).unwrap();
        prop_assert_eq!(back.data(), tensor.data());
        // Arrays of nothing do not show the dimensions behind the first that is zero.
        if !tensor.shape().contains(&0) {
            prop_assert_eq!(back.shape(), tensor.shape());
        }
    }

    #[test]
    fn no_bytes_make_a_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..60), dtype in dtypes()) {
        _ = Cursor::new(&bytes).tensor(dtype, 3, &RequestLimits::default(), &"");
        _ = Cursor::new(&bytes).skip(&"");
    }

    #[test]
    fn nearly_json_never_panics_and_agrees_with_serde_json(text in r#"[\[\],: "eE+.\-0-9a-u\\{}]{0,40}"#) {
        let mut cursor = Cursor::new(text.as_bytes());
        let ours = cursor.skip(&"").and_then(|()| cursor.end()).is_ok();
        match serde_json::from_str::<Value>(&text) {
            Ok(_) => prop_assert!(ours, "{}", text),
            Err(error) => prop_assert!(!ours || error.to_string().contains("out of range"), "{}", text),
        }
    }
}
