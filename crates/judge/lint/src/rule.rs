//! A rule, and how it reports.

use cudock_base::{LineIndex, Span};
use cudock_facts::finding::{Finding, Severity, TextRegion};

use crate::context::LintContext;

/// One rule. Its page, which says why and what to do, is in the table of findings under its code.
#[derive(Debug)]
pub struct Rule {
    /// `CD` and four digits; never changes its meaning. `CD07` is the linter's own, the others are those of `cudock check`.
    pub code: &'static str,
    /// The name in `cudock.toml` and the documentation.
    pub name: &'static str,
    pub severity: Severity,
    /// Rules of other linters for the same problem: comments that switch those off count here, too.
    pub also: &'static [&'static str],
    /// Whether every finding in the example has an edit that fixes it.
    pub is_fixable: bool,
    /// A file with the problem. The first line may name a target: `# for: H100`, `# driver: 535`.
    pub bad: &'static str,
    /// A similar file without it.
    pub good: &'static str,
    pub(crate) check: fn(&LintContext<'_>, &mut Report<'_, '_>),
}

/// Takes the findings of one rule.
pub struct Report<'a, 'f> {
    rule: &'static Rule,
    path: &'a str,
    lines: &'a LineIndex<'a>,
    findings: &'f mut Vec<Finding>,
}

impl<'a, 'f> Report<'a, 'f> {
    pub(crate) fn new(
        rule: &'static Rule,
        context: &LintContext<'a>,
        findings: &'f mut Vec<Finding>,
    ) -> Self {
        Self { rule, path: context.path, lines: context.build.lines, findings }
    }

    /// The rule's finding at a part of the file, to be completed and then reported with [`Self::push`].
    pub fn finding(&self, span: Span, message: impl Into<String>, fix: impl Into<String>) -> Finding {
        let finding = Finding::new(self.rule.code, self.rule.severity, message, fix);
        finding.at(self.path, TextRegion::new(self.lines, span.bytes()))
    }

    /// The rule's own code.
    pub fn code(&self) -> &'static str {
        self.rule.code
    }

    pub fn push(&mut self, finding: Finding) {
        self.findings.push(finding);
    }

    /// Reports the rule's finding without edits.
    pub fn add(&mut self, span: Span, message: impl Into<String>, fix: impl Into<String>) {
        let finding = self.finding(span, message, fix);
        self.push(finding);
    }
}
