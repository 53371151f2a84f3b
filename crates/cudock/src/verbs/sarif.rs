//! What all SARIF reports share: version 2.1.0, which code scanners read.

use std::collections::BTreeSet;

use cudock_facts::Facts;
use cudock_facts::finding::Severity;
use serde_json::{Value, json};

/// A report of results, with the pages of the codes they have. Columns count characters.
pub(crate) fn report(facts: &Facts, codes: &BTreeSet<&str>, results: &[Value]) -> Value {
    let rules: Vec<Value> = codes.iter().map(|code| rule(facts, code)).collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {"name": "cudock", "version": env!("CARGO_PKG_VERSION"), "rules": rules}},
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    })
}

fn rule(facts: &Facts, code: &str) -> Value {
    match facts.findings().get(code) {
        Some(page) => json!({
            "id": code,
            "shortDescription": {"text": page.title},
            "fullDescription": {"text": page.why},
            "help": {"text": page.fix.join("\n")},
        }),
        None => json!({"id": code}),
    }
}

/// What SARIF calls a severity.
pub(crate) const fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    }
}

/// A path as a relative or absolute URI: what may not stand in one is written in hexadecimal.
pub(crate) fn uri(path: &str) -> String {
    let kept = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/:@!$&'()*+,;=".contains(&byte);
    path.bytes()
        .map(|byte| if kept(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}
