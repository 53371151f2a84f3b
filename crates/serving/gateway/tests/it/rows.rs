//! Joining and splitting over arbitrary rows.

use bytes::Bytes;
use cudock_gateway::batching::rows::{RequestRows, RowFormat, SplitError, join};
use proptest::collection::vec;
use proptest::prelude::*;

/// A scalar, string or object as text, in spellings that parsers would change.
fn leaf() -> impl Strategy<Value = String> {
    prop_oneof![
        "-?(0|[1-9][0-9]{0,18})(\\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?",
        prop::sample::select(vec!["NaN", "-Infinity", "null", "true"]).prop_map(str::to_owned),
        "\"([ -!#-\\[\\]-~é]|\\\\\\\\|\\\\\"|\\\\u00e9)*\"",
    ]
}

/// The text of a row that is a list of leaves, with spaces.
fn row() -> impl Strategy<Value = String> {
    (vec(leaf(), 3), "[ \n]{0,2}").prop_map(|(leaves, space)| {
        // The kind of the first leaf is part of the shape.
        format!("[{space}0{space},{}{space}]", leaves.join(&format!("{space},")))
    })
}

/// One row, or a list of rows.
fn input() -> impl Strategy<Value = (Vec<String>, bool)> {
    prop_oneof![row().prop_map(|row| (vec![row], true)), vec(row(), 1..4).prop_map(|rows| (rows, false))]
}

fn value(rows: &[String], is_single: bool) -> String {
    if is_single { rows.concat() } else { format!("[{}]", rows.join(" ,")) }
}

proptest! {
    #[test]
    fn every_request_gets_its_own_rows_byte_for_byte(
        inputs in vec(input(), 1..6),
        before in "(\"a\": ?[0-9],)?",
        after in "(,\"b\":\\[\\[1\\],\"\\]\"\\])?",
    ) {
        let format = RowFormat { shared_keys: vec!["b".to_owned()], ..RowFormat::default() };
        let envelope = |value: &str| format!("{{{before}\"input\":{value}{after}}}");
        let requests: Vec<RequestRows> = inputs
            .iter()
            .map(|(rows, is_single)| format.read_request(envelope(&value(rows, *is_single)).into()).unwrap())
            .collect();
        let requests: Vec<&RequestRows> = requests.iter().collect();
        let joined = join(&requests);
        let all: Vec<&String> = inputs.iter().flat_map(|(rows, _)| rows).collect();
        let again = format.read_request(joined.clone()).unwrap();
        prop_assert_eq!(again.count(), all.len());
        prop_assert_eq!(join(&[&again]), joined.clone());
        // A server that returns its rows.
        let text = String::from_utf8(joined.to_vec()).unwrap();
        let answer = Bytes::from(text.replacen("\"input\"", "\"prediction\"", 1));
        for ((rows, is_single), pieces) in inputs.iter().zip(format.split(&answer, &requests).unwrap()) {
            let own = String::from_utf8(pieces.concat()).unwrap();
            let own = own.replacen("\"prediction\"", "\"input\"", 1);
            // Rows of one list are joined as they were, those of others by a comma.
            prop_assert_eq!(own, envelope(&value(rows, *is_single)));
        }
        // One row more or less is never given to anybody.
        let fewer = format.split(&answer, &requests[1..]);
        let is_wrong = matches!(fewer, Err(SplitError::WrongRows { .. }));
        prop_assert!(is_wrong);
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in vec(prop::sample::select(&b"{}[],:\"\\ 1a\n"[..]), 0..40)) {
        let format = RowFormat { input_key: String::new(), output_keys: vec![String::new()], ..RowFormat::default() };
        let request = format.read_request(Bytes::from(bytes.clone()));
        if let Some(request) = request {
            prop_assert_eq!(format.read_request(join(&[&request])).map(|again| again.count()), Some(request.count()));
            let _ = format.split(&Bytes::from(bytes), &[&request]);
        }
    }
}
