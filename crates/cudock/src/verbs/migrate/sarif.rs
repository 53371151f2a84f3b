//! Findings for code scanners.

use std::collections::BTreeSet;

use cudock_facts::Facts;
use cudock_migrate::Finding;
use serde_json::{Value, json};

use super::FileReport;
use crate::verbs::sarif;

pub(super) fn report(facts: &Facts, files: &[FileReport]) -> Value {
    let found = || files.iter().flat_map(|file| file.findings.iter().map(move |finding| (file, finding)));
    let codes: BTreeSet<&str> = found().filter_map(|(_, finding)| finding.code).collect();
    let results: Vec<Value> = found().filter_map(|(file, finding)| result(&file.path, finding)).collect();
    sarif::report(facts, &codes, &results)
}

/// A choice that is on sale has no result.
fn result(path: &str, finding: &Finding) -> Option<Value> {
    let code = finding.code?;
    let instead: Vec<&str> = finding.replacements.iter().take(3).map(|one| one.name.as_str()).collect();
    let instead =
        if instead.is_empty() { String::new() } else { format!(" Instead: {}.", instead.join(", ")) };
    let span = finding.choice.span;
    Some(json!({
        "ruleId": code,
        "level": sarif::level(finding.severity),
        "message": {"text": format!("{}.{instead}", finding.message)},
        "locations": [{"physicalLocation": {
            "artifactLocation": {"uri": sarif::uri(path)},
            "region": {"startLine": span.line, "startColumn": span.column, "endColumn": span.end_column},
        }}],
        "partialFingerprints": {"cudock/v1": format!("{code}|{path}|{}|{}", finding.choice.describe(), finding.choice.role)},
        "properties": {"status": finding.status, "replacements": finding.replacements},
    }))
}
