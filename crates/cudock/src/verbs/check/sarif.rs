//! SARIF 2.1.0, which code scanners read.

use std::collections::BTreeSet;

use cudock_facts::Facts;
use cudock_facts::finding::{Finding, Severity};
use serde_json::{Value, json};

use super::Answer;

pub(super) fn report(facts: &Facts, subject: &str, answers: &[Answer]) -> Value {
    let codes: BTreeSet<&str> = answers
        .iter()
        .flat_map(|answer| answer.judgement.findings.iter().map(|finding| finding.code))
        .collect();
    let rules: Vec<Value> = codes.iter().map(|code| rule(facts, code)).collect();
    let results: Vec<Value> = answers
        .iter()
        .flat_map(|answer| {
            answer.judgement.findings.iter().map(move |finding| result(subject, answer, finding))
        })
        .collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {"name": "cudock", "version": env!("CARGO_PKG_VERSION"), "rules": rules}},
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

fn result(subject: &str, answer: &Answer, finding: &Finding) -> Value {
    let level = match finding.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    };
    let target = answer.target.words();
    let mut result = json!({
        "ruleId": finding.code,
        "level": level,
        "message": {"text": format!("{target}: {}. Fix: {}", finding.message, finding.fix)},
        "locations": locations(subject, finding),
        // The same finding for another target is another result.
        "partialFingerprints": {"cudock/v1": format!("{}|{subject}|{target}|{}", finding.code, finding.message)},
    });
    if let Some(object) = result.as_object_mut() {
        object.insert(
            "properties".to_owned(),
            json!({"verdict": answer.judgement.verdict, "target": answer.target}),
        );
    }
    result
}

/// Where the evidence lies. `requirements.txt:3` is a file and a line; what lies inside an image is named below it.
fn locations(subject: &str, finding: &Finding) -> Vec<Value> {
    let mut locations: Vec<Value> =
        finding.evidence.iter().map(|seen| location(subject, &seen.path)).collect();
    if locations.is_empty() {
        locations.push(location(subject, subject));
    }
    locations
}

fn location(subject: &str, path: &str) -> Value {
    if let Some((file, line)) =
        path.strip_prefix(subject).and_then(|rest| rest.strip_prefix(':')).and_then(|rest| {
            let line: u32 = rest.split(':').next()?.parse().ok()?;
            Some((subject, line))
        })
    {
        return json!({"physicalLocation": {
            "artifactLocation": {"uri": uri(file)},
            "region": {"startLine": line.max(1)},
        }});
    }
    json!({
        "physicalLocation": {"artifactLocation": {"uri": uri(subject)}},
        "logicalLocations": [{"fullyQualifiedName": path}],
    })
}

/// A path as a relative or absolute URI: what may not stand in one is written in hexadecimal.
fn uri(path: &str) -> String {
    let kept = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/:@!$&'()*+,;=".contains(&byte);
    path.bytes()
        .map(|byte| if kept(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}
