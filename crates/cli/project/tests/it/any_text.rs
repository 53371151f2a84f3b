//! Any text is parsed, or rejected with a location.

use std::path::Path;

use cudock_project::{ProjectError, parse};
use proptest::prelude::*;

/// Lines that a file may have, right and wrong ones.
fn line() -> impl Strategy<Value = String> {
    let key = prop::sample::select(vec![
        "duration",
        "items",
        "item_time",
        "trials",
        "trial_time",
        "rate",
        "replica_rate",
        "gpus",
        "nodes",
        "fill",
        "budget",
        "spot",
        "capability",
        "gpu",
        "size",
        "access",
        "begins",
        "deadline",
        "speeds",
        "regions",
    ]);
    let value = prop::sample::select(vec![
        "0",
        "-1",
        "5",
        "nan",
        "-inf",
        "1e300",
        "\"\"",
        "\"1h\"",
        "\"-1h\"",
        "\"4GB\"",
        "true",
        "[]",
        "[1, 2]",
        "{ day = 5, from = \"08:00\", to = \"24:00\" }",
        "{ allow = false, evictions = 1 }",
        "2026-01-01",
        "{ least = \"9.0\", greatest = 7.0 }",
        "[\"a\", \"b\"]",
        "9223372036854775807",
    ]);
    let table = prop::sample::select(vec!["workload", "needs", "data", "start", "deploy"]);
    prop_oneof![
        (key, value).prop_map(|(key, value)| format!("{key} = {value}")),
        table.prop_map(|table| format!("[{table}]")),
        ".{0,40}",
    ]
}

proptest! {
    #[test]
    fn an_error_lies_in_the_text(lines in prop::collection::vec(line(), 0..8)) {
        let text = lines.join("\n");
        if let Err(error) = parse(Path::new("cudock.toml"), &text) {
            let ProjectError::Parse { line, column, problem, .. } = error else { panic!("{error}") };
            prop_assert!((1..=text.split('\n').count()).contains(&line), "line {line}");
            prop_assert!(column >= 1 && !problem.is_empty());
        }
    }
}
