//! Findings: what every verb reports about a file, an image or a machine, in one form.
//!
//! A rule builds a [`Finding`] and adds what it knows: evidence, the place in a file, edits that fix it. How it is printed,
//! as text, JSON, SARIF or a workflow annotation, is decided elsewhere.

use std::ops::Range;

use cudock_base::{LineIndex, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One statement of a report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Finding {
    /// `CD` and four digits; `cudock explain` has a page for it.
    pub code: &'static str,
    pub severity: Severity,
    /// One sentence.
    pub message: String,
    pub evidence: Vec<FindingEvidence>,
    /// What to do; empty if there is nothing to do.
    pub fix: String,
    /// The text that it is about, if that is a part of a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location: Option<FileLocation>,
    /// The bytes that the fix takes off the image, as far as the tables know.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub saves_bytes: Option<u64>,
    /// Edits of that file, each of which fixes it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub suggestions: Vec<Suggestion>,
}

impl Finding {
    pub fn new(
        code: &'static str,
        severity: Severity,
        message: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self {
            code,
            severity,
            message: message.into(),
            evidence: Vec::new(),
            fix: fix.into(),
            location: None,
            saves_bytes: None,
            suggestions: Vec::new(),
        }
    }

    #[must_use]
    pub fn with_evidence(mut self, evidence: impl IntoIterator<Item = FindingEvidence>) -> Self {
        self.evidence.extend(evidence);
        self
    }

    #[must_use]
    pub fn at(mut self, path: impl Into<String>, region: TextRegion) -> Self {
        self.location = Some(FileLocation { path: path.into(), region });
        self
    }

    /// Adds a way to fix it by replacing texts of its file.
    #[must_use]
    pub fn suggest(mut self, message: impl Into<String>, edits: Vec<TextEdit>) -> Self {
        self.suggestions.push(Suggestion { message: message.into(), edits });
        self
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    Note,
    /// May fail.
    Warning,
    /// Will fail.
    Error,
}

impl Severity {
    pub const fn name(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
        }
    }
}

/// A file and what was read in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FindingEvidence {
    /// The file, or the name of another source.
    pub path: String,
    pub detail: String,
}

impl FindingEvidence {
    pub fn new(path: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { path: path.into(), detail: detail.into() }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FileLocation {
    pub path: String,
    #[serde(flatten)]
    pub region: TextRegion,
}

/// A part of a text, with both ends as lines and columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TextRegion {
    /// The bytes, and the line and column of the first one.
    #[serde(flatten)]
    pub span: Span,
    pub end_line: usize,
    pub end_column: usize,
}

impl TextRegion {
    pub fn new(index: &LineIndex<'_>, bytes: Range<usize>) -> Self {
        let span = index.span(bytes);
        let (end_line, end_column) = index.location(span.end);
        Self { span, end_line, end_column }
    }
}

/// Edits that fix a finding when they are applied together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Suggestion {
    /// What the edits do, in the imperative.
    pub message: String,
    /// The edits, none of which overlap.
    pub edits: Vec<TextEdit>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TextEdit {
    /// What is replaced; an empty region for an insertion.
    #[serde(flatten)]
    pub region: TextRegion,
    pub text: String,
}

/// Defines the codes that a crate reports, and lists them in `ALL`. Their pages explain them.
#[macro_export]
macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $code:literal;)+) => {
        $(
            $(#[$doc])*
            pub const $name: &str = $code;
        )+

        /// Every code this crate can report.
        pub const ALL: &[&str] = &[$($code),+];
    };
}
