//! The table of rules.

mod apt;
mod conda;
mod downloads;
mod layers;
mod libraries;
mod packages;
mod pip;
mod python;
mod secrets;
mod stages;
mod start;
mod system;
mod tags;
mod target;
mod variables;

use cudock_facts::finding::Severity;

use crate::context::{LintContext, Report};
pub(crate) use pip::Compilation;

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

/// All rules, by topic.
pub static RULES: &[&[Rule]] = &[
    tags::RULES,
    stages::RULES,
    target::RULES,
    python::RULES,
    conda::RULES,
    system::RULES,
    libraries::RULES,
    variables::RULES,
    apt::RULES,
    downloads::RULES,
    layers::RULES,
    secrets::RULES,
    start::RULES,
];

/// Computes what the rules of `cudock check` report.
pub(crate) fn predict(context: &LintContext<'_>) {
    target::predicted(context);
}

/// The rule of a code.
pub fn rule(code: &str) -> Option<&'static Rule> {
    RULES.iter().flat_map(|group| group.iter()).find(|rule| rule.code == code)
}
