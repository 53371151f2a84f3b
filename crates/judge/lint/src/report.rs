//! Findings as `--format json` has them, and their totals.

use cudock_facts::finding::{Finding, FindingEvidence, Severity, Suggestion};
use schemars::JsonSchema;
use serde::Serialize;

use crate::rule::Rule;
use crate::rules::RULES;

/// The findings in one file.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FileReport<'a> {
    pub path: &'a str,
    pub findings: Vec<FindingReport<'a>>,
    /// The number of findings that were fixed.
    pub fixed: usize,
    /// What fixes change, as a unified diff.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<&'a str>,
}

/// A finding with its place as plain fields.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FindingReport<'a> {
    code: &'a str,
    severity: Severity,
    message: &'a str,
    evidence: &'a [FindingEvidence],
    fix: &'a str,
    /// From 1.
    line: usize,
    /// In characters, from 1.
    column: usize,
    end_line: usize,
    end_column: usize,
    /// Whether `--fix` fixes it.
    fixable: bool,
    /// The bytes that the fix takes off the image, if they are known.
    saves_bytes: Option<u64>,
    suggestions: &'a [Suggestion],
}

impl<'a> From<&'a Finding> for FindingReport<'a> {
    fn from(finding: &'a Finding) -> Self {
        let region = finding.location.as_ref().map(|location| location.region);
        Self {
            code: finding.code,
            severity: finding.severity,
            message: &finding.message,
            evidence: &finding.evidence,
            fix: &finding.fix,
            line: region.map_or(1, |region| region.span.line),
            column: region.map_or(1, |region| region.span.column),
            end_line: region.map_or(1, |region| region.end_line),
            end_column: region.map_or(1, |region| region.end_column),
            fixable: !finding.suggestions.is_empty(),
            saves_bytes: finding.saves_bytes,
            suggestions: &finding.suggestions,
        }
    }
}

/// The numbers of findings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Totals {
    pub errors: usize,
    pub warnings: usize,
    pub notes: usize,
    pub fixable: usize,
    /// The bytes that all fixes together take off images, as far as they are known.
    pub saves_bytes: u64,
}

impl Totals {
    pub fn of<'a>(findings: impl IntoIterator<Item = &'a Finding>) -> Self {
        let mut totals = Self::default();
        for finding in findings {
            match finding.severity {
                Severity::Error => totals.errors += 1,
                Severity::Warning => totals.warnings += 1,
                Severity::Note => totals.notes += 1,
            }
            totals.fixable += usize::from(!finding.suggestions.is_empty());
            totals.saves_bytes = totals.saves_bytes.saturating_add(finding.saves_bytes.unwrap_or(0));
        }
        totals
    }

    pub fn findings(&self) -> usize {
        self.errors + self.warnings + self.notes
    }
}

/// A rule of the table.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RuleReport {
    pub code: &'static str,
    pub name: &'static str,
    pub severity: Severity,
    pub fixable: bool,
    /// Rules of hadolint and `BuildKit` for the same problem.
    pub also: &'static [&'static str],
}

impl From<&'static Rule> for RuleReport {
    fn from(rule: &'static Rule) -> Self {
        let Rule { code, name, severity, also, is_fixable: fixable, .. } = *rule;
        Self { code, name, severity, fixable, also }
    }
}

/// The table of rules, by code.
pub fn rule_reports() -> Vec<RuleReport> {
    let mut rules: Vec<RuleReport> =
        RULES.iter().flat_map(|group| group.iter()).map(RuleReport::from).collect();
    rules.sort_by_key(|rule| rule.code);
    rules
}
