//! Renders the findings of every verb: as text, as SARIF and as GitHub workflow annotations.

pub(crate) mod github;
pub(crate) mod sarif;
pub(crate) mod text;

use cudock_facts::finding::{FileLocation, Finding};
use serde_json::Value;

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
