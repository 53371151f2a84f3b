//! Findings for code scanners.

use std::collections::BTreeSet;

use cudock_facts::Facts;
use cudock_facts::finding::Finding;
use serde_json::{Value, json};

use super::Answer;
use crate::verbs::sarif;

pub(super) fn report(facts: &Facts, subject: &str, answers: &[Answer]) -> Value {
    let codes: BTreeSet<&str> = answers
        .iter()
        .flat_map(|answer| answer.judgement.findings.iter().map(|finding| finding.code))
        .collect();
    let results: Vec<Value> = answers
        .iter()
        .flat_map(|answer| {
            answer.judgement.findings.iter().map(move |finding| result(subject, answer, finding))
        })
        .collect();
    sarif::report(facts, &codes, &results)
}

fn result(subject: &str, answer: &Answer, finding: &Finding) -> Value {
    let target = answer.target.words();
    let mut result = json!({
        "ruleId": finding.code,
        "level": sarif::level(finding.severity),
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
            "artifactLocation": {"uri": sarif::uri(file)},
            "region": {"startLine": line.max(1)},
        }});
    }
    json!({
        "physicalLocation": {"artifactLocation": {"uri": sarif::uri(subject)}},
        "logicalLocations": [{"fullyQualifiedName": path}],
    })
}
