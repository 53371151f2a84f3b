//! The findings of `migrate`, for code scanners and workflow annotations.

use cudock_base::LineIndex;
use cudock_facts::formats::ReportedFinding;
use serde_json::json;

use super::FileReport;

pub(crate) fn findings(files: &[FileReport]) -> Vec<ReportedFinding> {
    let mut findings = Vec::new();
    for file in files {
        let index = LineIndex::new(&file.text);
        for of_choice in &file.findings {
            let Some(finding) = of_choice.finding(&file.path, &index) else { continue };
            let choice = &of_choice.choice;
            findings.push(ReportedFinding {
                fingerprint: format!("{}|{}|{}|{}", finding.code, file.path, choice.describe(), choice.role),
                properties: json!({"status": of_choice.status, "replacements": of_choice.replacements}),
                ..ReportedFinding::new(finding)
            });
        }
    }
    findings
}
