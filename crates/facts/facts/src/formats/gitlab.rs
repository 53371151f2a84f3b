//! GitLab's Code Quality report, which merge requests show.

use std::collections::HashMap;

use cudock_base::Digest;
use serde_json::{Value, json};

use super::ReportedFinding;
use crate::finding::Severity;

pub(crate) fn report(findings: &[ReportedFinding]) -> Value {
    // GitLab drops all but one issue of a fingerprint.
    let mut seen: HashMap<&str, usize> = HashMap::new();
    let issues = findings.iter().map(|reported| {
        let before = seen.entry(&reported.fingerprint).or_default();
        *before += 1;
        issue(reported, &format!("{}|{before}", reported.fingerprint))
    });
    issues.collect()
}

fn issue(reported: &ReportedFinding, identity: &str) -> Value {
    let finding = &reported.finding;
    let severity = match finding.severity {
        Severity::Error => "major",
        Severity::Warning => "minor",
        Severity::Note => "info",
    };
    let location = reported.locations.first();
    let path = location.map_or("", |location| location.file.strip_prefix("./").unwrap_or(&location.file));
    let line = location.and_then(|location| location.line).unwrap_or(1);
    json!({
        "check_name": finding.code,
        "description": reported.message(),
        "fingerprint": Digest::sha256_of(identity.as_bytes()).hex(),
        "severity": severity,
        "location": {"path": path, "lines": {"begin": line}},
    })
}
