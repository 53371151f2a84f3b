//! Runs `cudock plan` on the example files, with prices that do not change with the embedded table.

use std::process::Output;

use serde_json::Value;

use crate::support::{code, json, run, shown};

/// Prices and sizes of the scenario tests of cudock-plan: the same figures on the same day.
const FACTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/plan/tests/facts");
const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../examples/plan");

/// Every example that can be planned for.
pub(crate) const NAMES: [&str; 8] = [
    "batch-job",
    "data-bound",
    "daytime-inference",
    "llm-training",
    "nightly-rendering",
    "spot-training",
    "sweep",
    "v100-binary",
];

pub(crate) fn file(name: &str) -> String {
    format!("{EXAMPLES}/{name}.toml")
}

pub(crate) fn with_facts(args: &[&str]) -> Output {
    run(&[&["plan", "--facts", FACTS], args].concat())
}

pub(crate) fn example(name: &str, args: &[&str]) -> Output {
    with_facts(&[&[file(name).as_str()], args].concat())
}

/// The report of an example as JSON, which must have succeeded.
pub(crate) fn report(name: &str, args: &[&str]) -> Value {
    let output = example(name, &[args, &["--format", "json"]].concat());
    assert_eq!(code(&output), 0, "{name}: {}", shown(&output));
    json(&output)
}

pub(crate) fn list<'a>(value: &'a Value, key: &str) -> &'a Vec<Value> {
    value[key].as_array().unwrap_or_else(|| panic!("no list {key} in {value}"))
}

pub(crate) fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("no number: {value}"))
}
