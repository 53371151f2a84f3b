//! SARIF 2.1.0, which code scanners read.

use std::collections::BTreeSet;

use cudock_facts::Facts;
use cudock_facts::finding::Severity;
use cudock_migrate::Finding;
use serde_json::{Value, json};

use super::FileReport;

pub(super) fn report(facts: &Facts, files: &[FileReport]) -> Value {
    let found = || files.iter().flat_map(|file| file.findings.iter().map(move |finding| (file, finding)));
    let codes: BTreeSet<&str> = found().filter_map(|(_, finding)| finding.code).collect();
    let rules: Vec<Value> = codes.iter().map(|code| rule(facts, code)).collect();
    let results: Vec<Value> = found().filter_map(|(file, finding)| result(&file.path, finding)).collect();
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

/// What is fine is no result.
fn result(path: &str, finding: &Finding) -> Option<Value> {
    let code = finding.code?;
    let level = match finding.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    };
    let instead: Vec<&str> = finding.replacements.iter().take(3).map(|one| one.name.as_str()).collect();
    let instead =
        if instead.is_empty() { String::new() } else { format!(" Instead: {}.", instead.join(", ")) };
    let span = finding.choice.span;
    Some(json!({
        "ruleId": code,
        "level": level,
        "message": {"text": format!("{}.{instead}", finding.message)},
        "locations": [{"physicalLocation": {
            "artifactLocation": {"uri": uri(path)},
            "region": {"startLine": span.line, "startColumn": span.column, "endColumn": span.end_column},
        }}],
        "partialFingerprints": {"cudock/v1": format!("{code}|{path}|{}|{}", finding.choice.words(), finding.choice.by)},
        "properties": {"status": finding.status, "replacements": finding.replacements},
    }))
}

/// A path as a relative or absolute URI: what may not stand in one is written in hexadecimal.
fn uri(path: &str) -> String {
    let kept = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/:@!$&'()*+,;=".contains(&byte);
    path.bytes()
        .map(|byte| if kept(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}
