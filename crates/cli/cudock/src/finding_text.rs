//! The text layout of findings: severity, message and code, then evidence and fix.

use anstyle::Style;
use cudock_facts::finding::{Finding, FindingEvidence, Severity};

use crate::output::{BLUE, BOLD, DIM, RED, YELLOW, line, styled, width, wrapped, wrapped_within};

/// The longest label is `warning`.
const LABEL: usize = 7;

/// Maximum number of pieces of evidence in the text; `--format json` has all.
const SHOWN_EVIDENCE: usize = 3;

/// A finding as it is printed.
pub(crate) struct FindingText<'a> {
    /// `error`, `warning`, `note` or `ok`, in its color.
    pub(crate) label: (Style, &'a str),
    /// `file:line:column`, before everything else.
    pub(crate) position: Option<String>,
    pub(crate) message: &'a str,
    pub(crate) code: Option<&'a str>,
    /// The part of a file that it is about.
    pub(crate) excerpt: Option<String>,
    pub(crate) evidence: &'a [FindingEvidence],
    pub(crate) fix: Option<&'a str>,
}

impl<'a> From<&'a Finding> for FindingText<'a> {
    fn from(finding: &'a Finding) -> Self {
        Self {
            label: severity_label(finding.severity),
            position: finding.location.as_ref().map(|location| {
                let span = location.region.span;
                format!("{}:{}:{}", location.path, span.line, span.column)
            }),
            message: &finding.message,
            code: Some(finding.code),
            excerpt: None,
            evidence: &finding.evidence,
            fix: Some(finding.fix.as_str()).filter(|fix| !fix.is_empty()),
        }
    }
}

/// A severity and its color.
pub(crate) fn severity_label(severity: Severity) -> (Style, &'static str) {
    let style = match severity {
        Severity::Error => RED,
        Severity::Warning => YELLOW,
        Severity::Note => BLUE,
    };
    (style, severity.name())
}

/// Prints a finding, indented by some spaces.
pub(crate) fn print(indent: usize, finding: &FindingText<'_>) {
    let margin = match &finding.position {
        Some(position) => print_at(indent, position, finding),
        None => print_with_code_at_edge(indent, finding),
    };
    finding.excerpt.iter().for_each(line);
    for evidence in finding.evidence.iter().take(SHOWN_EVIDENCE) {
        let text = format!("{}: {}", evidence.path, evidence.detail);
        line(styled(DIM, &wrapped(&format!("{margin}evidence: "), &text)));
    }
    if let Some(more) = finding.evidence.len().checked_sub(SHOWN_EVIDENCE + 1) {
        line(styled(DIM, &format!("{margin}and {} more", more + 1)));
    }
    if let Some(fix) = finding.fix {
        line(wrapped(&format!("{margin}fix: "), fix));
    }
}

/// Prints `file:line:column: error: message  code` on one line, as compilers do and editors understand; returns the margin
/// of what follows.
fn print_at(indent: usize, position: &str, finding: &FindingText<'_>) -> String {
    let (style, label) = finding.label;
    let code = finding.code.map_or_else(String::new, |code| format!("  {}", styled(DIM, code)));
    let indent = " ".repeat(indent);
    line(format!("{indent}{}: {}: {}{code}", styled(BOLD, position), styled(style, label), finding.message));
    format!("{indent}  ")
}

/// Prints the message, wrapped next to its label, with the code at the right edge; returns the
/// margin of the following lines.
fn print_with_code_at_edge(indent: usize, finding: &FindingText<'_>) -> String {
    let (style, label) = finding.label;
    let margin = " ".repeat(indent + LABEL + 2);
    let code = finding.code.unwrap_or_default();
    let room = width().saturating_sub(if code.is_empty() { 0 } else { code.len() + 2 });
    let text = wrapped_within(room, &margin, finding.message);
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default().trim_start();
    let blank = " ".repeat(LABEL.saturating_sub(label.len()) + 2);
    let first = if code.is_empty() {
        first.to_owned()
    } else {
        format!("{first:<0$}  {1}", room.saturating_sub(margin.len()), styled(DIM, code))
    };
    line(format!("{}{}{blank}{first}", " ".repeat(indent), styled(style, label)));
    lines.for_each(line);
    margin
}
