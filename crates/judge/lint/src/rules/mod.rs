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

use crate::context::LintContext;
use crate::rule::Rule;

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
