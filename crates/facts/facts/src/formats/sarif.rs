//! SARIF 2.1.0, which code scanners read.

use std::collections::BTreeSet;

use cudock_base::text::percent::encode_path;
use serde_json::{Value, json};

use super::{ReportedFinding, ReportedLocation};
use crate::Facts;
use crate::finding::{FileLocation, Suggestion, TextRegion};

/// A log of findings, with the pages of their codes as rules. Columns count characters.
pub(crate) fn log(facts: &Facts, findings: &[ReportedFinding]) -> Value {
    let codes: BTreeSet<&str> = findings.iter().map(|reported| reported.finding.code).collect();
    let rules: Vec<Value> = codes.iter().map(|code| rule(facts, code)).collect();
    let results: Vec<Value> = findings.iter().map(result).collect();
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

fn result(reported: &ReportedFinding) -> Value {
    let finding = &reported.finding;
    let fix = if finding.fix.is_empty() { String::new() } else { format!(" Fix: {}", finding.fix) };
    let mut result = json!({
        "ruleId": finding.code,
        // SARIF has the same names.
        "level": finding.severity.name(),
        "message": {"text": format!("{}.{fix}", reported.message())},
        "locations": reported.locations.iter().map(location).collect::<Vec<_>>(),
        "partialFingerprints": {"cudock/v1": reported.fingerprint},
        "properties": reported.properties,
    });
    if let (Some(location), false) = (&finding.location, finding.suggestions.is_empty()) {
        let fixes = finding.suggestions.iter().map(|suggestion| sarif_fix(location, suggestion));
        set(&mut result, "fixes", fixes.collect());
    }
    result
}

fn location(location: &ReportedLocation) -> Value {
    let mut physical = json!({"artifactLocation": {"uri": encode_path(&location.file)}});
    if let Some(line) = location.line {
        let region = match location.columns {
            Some((column, end_line, end_column)) => region(line, column, end_line, end_column),
            None => json!({"startLine": line}),
        };
        set(&mut physical, "region", region);
    }
    match &location.inside {
        Some(name) => {
            json!({"physicalLocation": physical, "logicalLocations": [{"fullyQualifiedName": name}]})
        }
        None => json!({"physicalLocation": physical}),
    }
}

/// The last line is left out where it is the first one, as SARIF assumes it.
fn region(line: usize, column: usize, end_line: usize, end_column: usize) -> Value {
    let mut region = json!({"startLine": line, "startColumn": column, "endColumn": end_column});
    if end_line != line {
        set(&mut region, "endLine", end_line.into());
    }
    region
}

fn set(object: &mut Value, key: &str, value: Value) {
    if let Some(object) = object.as_object_mut() {
        object.insert(key.to_owned(), value);
    }
}

/// One way to fix a finding: edits that are applied together.
fn sarif_fix(location: &FileLocation, suggestion: &Suggestion) -> Value {
    let deleted = |TextRegion { span, end_line, end_column }: &TextRegion| {
        region(span.line, span.column, *end_line, *end_column)
    };
    let replacements: Vec<Value> = suggestion
        .edits
        .iter()
        .map(|edit| json!({"deletedRegion": deleted(&edit.region), "insertedContent": {"text": edit.text}}))
        .collect();
    json!({
        "description": {"text": suggestion.message},
        "artifactChanges": [{
            "artifactLocation": {"uri": encode_path(&location.path)},
            "replacements": replacements,
        }],
    })
}

#[cfg(test)]
mod tests {
    use crate::finding::{Finding, Severity, TextEdit};
    use cudock_base::LineIndex;

    use super::*;

    #[test]
    fn every_suggestion_is_a_fix_with_its_replacements() {
        let text = "FROM a\nRUN pip install \\\n  torch\n";
        let index = LineIndex::new(text);
        let edit = |bytes, text: &str| TextEdit { region: TextRegion::new(&index, bytes), text: text.into() };
        let finding = Finding::new("CD0701", Severity::Warning, "unpinned", "pin it")
            .at("my app/Dockerfile", TextRegion::new(&index, 11..text.len() - 1))
            .suggest("pin torch", vec![edit(32..32, "==2.5.1"), edit(5..6, "b")])
            .suggest("remove it", vec![edit(11..32, "")]);
        let result = result(&ReportedFinding::new(finding));
        assert_eq!(result["message"]["text"], "unpinned. Fix: pin it");
        assert_eq!(
            result["locations"][0]["physicalLocation"]["region"],
            json!({"startLine": 2, "startColumn": 5, "endLine": 3, "endColumn": 8})
        );
        assert_eq!(
            result["fixes"],
            json!([
                {
                    "description": {"text": "pin torch"},
                    "artifactChanges": [{
                        "artifactLocation": {"uri": "my%20app/Dockerfile"},
                        "replacements": [
                            {
                                "deletedRegion": {"startLine": 3, "startColumn": 8, "endColumn": 8},
                                "insertedContent": {"text": "==2.5.1"},
                            },
                            {
                                "deletedRegion": {"startLine": 1, "startColumn": 6, "endColumn": 7},
                                "insertedContent": {"text": "b"},
                            },
                        ],
                    }],
                },
                {
                    "description": {"text": "remove it"},
                    "artifactChanges": [{
                        "artifactLocation": {"uri": "my%20app/Dockerfile"},
                        "replacements": [{
                            "deletedRegion": {"startLine": 2, "startColumn": 5, "endLine": 3, "endColumn": 8},
                            "insertedContent": {"text": ""},
                        }],
                    }],
                },
            ])
        );
    }

    #[test]
    fn a_finding_without_suggestions_has_no_fixes() {
        let result = result(&ReportedFinding::new(Finding::new("CD0501", Severity::Note, "no code", "")));
        assert_eq!(result["message"]["text"], "no code.");
        assert_eq!((result.get("fixes"), &result["locations"]), (None, &json!([])));
    }
}
