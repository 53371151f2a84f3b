//! The findings of a check, for code scanners and workflow annotations.

use std::path::Path;

use cudock_facts::formats::{ReportedFinding, ReportedLocation};
use serde_json::json;

use super::TargetResult;

pub(crate) fn findings(subject: &str, results: &[TargetResult]) -> Vec<ReportedFinding> {
    let mut findings = Vec::new();
    for result in results {
        let target = result.target.to_string();
        for finding in &result.judgement.findings {
            let paths = finding.evidence.iter().map(|evidence| evidence.path.as_str());
            let mut locations: Vec<ReportedLocation> = paths.map(|path| location(subject, path)).collect();
            if locations.is_empty() {
                locations.push(ReportedLocation { file: subject.to_owned(), ..ReportedLocation::default() });
            }
            findings.push(ReportedFinding {
                // The same finding for another target is another result.
                fingerprint: format!("{}|{subject}|{target}|{}", finding.code, finding.message),
                target: Some(target.clone()),
                locations,
                properties: json!({"verdict": result.judgement.verdict, "target": result.target}),
                ..ReportedFinding::new(finding.clone())
            });
        }
    }
    findings
}

/// `requirements.txt:3` is a line of a file; other paths are inside of the subject.
fn location(subject: &str, path: &str) -> ReportedLocation {
    let line_of = |path: &str| {
        let (file, line) = path.rsplit_once(':')?;
        let line: usize = line.parse().ok()?;
        let file = named_file(subject, file)?;
        Some(ReportedLocation { file, line: Some(line.max(1)), ..ReportedLocation::default() })
    };
    line_of(path).unwrap_or_else(|| ReportedLocation {
        file: subject.to_owned(),
        inside: Some(path.to_owned()),
        ..ReportedLocation::default()
    })
}

/// The subject itself, or a file next to it or in it that it refers to.
fn named_file(subject: &str, name: &str) -> Option<String> {
    if name == subject {
        return Some(subject.to_owned());
    }
    let directory =
        if Path::new(subject).is_dir() { Some(Path::new(subject)) } else { Path::new(subject).parent() };
    let beside = directory.map(|directory| directory.join(name));
    let files = [Some(Path::new(name).to_owned()), beside].into_iter().flatten();
    files.filter(|file| file.is_file()).map(|file| file.display().to_string()).next()
}
