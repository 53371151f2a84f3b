//! Renders the findings of every verb: as text, as SARIF, as GitHub workflow annotations and for GitLab.

pub(crate) mod github;
mod gitlab;
mod sarif;
pub(crate) mod text;

use cudock_facts::Facts;
use cudock_facts::finding::{FileLocation, Finding};
use serde_json::Value;

use crate::output::ServiceFormat;

/// Prints findings for another service.
pub(crate) fn print(facts: &Facts, format: ServiceFormat, findings: &[ReportedFinding]) {
    match format {
        ServiceFormat::Sarif => sarif::print(facts, findings),
        ServiceFormat::Github => github::print(findings),
        ServiceFormat::Gitlab => gitlab::print(findings),
    }
}

/// A finding for programs, with what its verb adds to it.
#[derive(Debug)]
pub(crate) struct ReportedFinding {
    pub(crate) finding: Finding,
    /// What it holds for, if there are several targets.
    pub(crate) target: Option<String>,
    pub(crate) locations: Vec<ReportedLocation>,
    /// Identifies the problem from one run to the next, whatever line it moves to.
    pub(crate) fingerprint: String,
    pub(crate) properties: Value,
}

impl ReportedFinding {
    /// A finding at its own location, if it has one.
    pub(crate) fn new(finding: Finding) -> Self {
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
pub(crate) struct ReportedLocation {
    pub(crate) file: String,
    /// The first line, from 1.
    pub(crate) line: Option<usize>,
    /// The first and the last column with the last line.
    pub(crate) columns: Option<(usize, usize, usize)>,
    /// What is inside of the file or image.
    pub(crate) inside: Option<String>,
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
