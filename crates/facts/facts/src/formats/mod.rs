//! Renders findings in the formats of other services: SARIF, GitHub workflow annotations, GitLab Code Quality.

mod github;
mod gitlab;
mod sarif;

use serde_json::Value;

use crate::Facts;
use crate::finding::{FileLocation, Finding};

/// The formats of findings that other services define.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServiceFormat {
    /// SARIF 2.1.0, for code scanners.
    Sarif,
    /// Workflow annotations, for GitHub Actions.
    Github,
    /// A Code Quality report, for GitLab.
    Gitlab,
}

/// The findings as text of a format, without a newline at the end; empty for no annotations.
pub fn render(facts: &Facts, format: ServiceFormat, findings: &[ReportedFinding]) -> String {
    match format {
        ServiceFormat::Sarif => format!("{:#}", sarif::log(facts, findings)),
        ServiceFormat::Github => github::annotations(findings),
        ServiceFormat::Gitlab => format!("{:#}", gitlab::report(findings)),
    }
}

/// A finding for programs, with what its verb adds to it.
#[derive(Debug)]
pub struct ReportedFinding {
    pub finding: Finding,
    /// The target that the finding is about, if there are several.
    pub target: Option<String>,
    pub locations: Vec<ReportedLocation>,
    /// Identifies the problem from one run to the next, whatever line it moves to.
    pub fingerprint: String,
    pub properties: Value,
}

impl ReportedFinding {
    /// A finding at its own location, if it has one.
    pub fn new(finding: Finding) -> Self {
        let locations = finding.location.iter().map(ReportedLocation::from).collect();
        Self { finding, target: None, locations, fingerprint: String::new(), properties: Value::Null }
    }

    fn message(&self) -> String {
        let target = self.target.as_ref().map_or_else(String::new, |target| format!("{target}: "));
        format!("{target}{}", self.finding.message)
    }
}

/// Where a finding is: a file or image, as exactly as is known.
#[derive(Debug, Default)]
pub struct ReportedLocation {
    pub file: String,
    /// The first line, from 1.
    pub line: Option<usize>,
    /// The first and the last column with the last line.
    pub columns: Option<(usize, usize, usize)>,
    /// The path inside the file or image.
    pub inside: Option<String>,
}

impl From<&FileLocation> for ReportedLocation {
    fn from(location: &FileLocation) -> Self {
        let region = &location.region;
        Self {
            file: location.path.clone(),
            line: Some(region.span.line),
            columns: Some((region.span.column, region.end_line, region.end_column)),
            inside: None,
        }
    }
}
