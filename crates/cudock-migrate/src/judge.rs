//! Choices held against the tables.

mod assess;
mod change;
pub mod codes;
mod fit;
mod old;
mod price;
mod replacement;
mod service;
mod status;

use std::collections::HashMap;

use cudock_base::LineIndex;
use cudock_facts::Facts;
use cudock_facts::finding::{Finding, Severity, TextEdit, TextRegion};
use cudock_facts::version::Date;
use serde::Serialize;

pub use change::Change;
pub use fit::Fit;
pub use old::{Gpu, Old};
pub use price::{Against, Priced};
pub use replacement::Replacement;
pub use status::Status;

use crate::choice::{Choice, Service, What};
use assess::Assessment;
use price::Place;

/// A choice and whether it still works.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ChoiceFinding {
    /// The choice.
    #[serde(flatten)]
    pub choice: Choice,
    /// What it is now.
    pub status: Status,
    /// The page of the finding; none where all is well.
    pub code: Option<&'static str>,
    /// How bad it is: an error does not work any more.
    pub severity: Severity,
    /// One sentence.
    pub message: String,
    /// What the choice gave.
    pub old: Option<Old>,
    /// What to take now, the most fitting and cheapest first.
    pub replacements: Vec<Replacement>,
    /// What else to know, from the tables.
    pub notes: Vec<String>,
}

/// The number of replacements that a finding suggests.
const SUGGESTED: usize = 3;

impl ChoiceFinding {
    /// Whether the choice does not work any more.
    pub fn is_over(&self) -> bool {
        self.severity == Severity::Error
    }

    /// The first replacement of each series, which is its cheapest.
    pub fn cheapest_of_each_series(&self) -> Vec<&Replacement> {
        let mut cheapest: Vec<&Replacement> = Vec::new();
        for one in &self.replacements {
            if one.series.is_none() || cheapest.iter().all(|other| other.series != one.series) {
                cheapest.push(one);
            }
        }
        cheapest
    }

    /// The finding in a file, whose text `index` is of; none if all is well. Each replacement of a size by another one is a
    /// suggested edit.
    pub fn finding(&self, path: &str, index: &LineIndex<'_>) -> Option<Finding> {
        let mut replacements = self.cheapest_of_each_series();
        replacements.truncate(SUGGESTED);
        let names: Vec<&str> = replacements.iter().map(|one| one.name.as_str()).collect();
        let fix = match names.as_slice() {
            [] => String::new(),
            [only] => format!("use {only}"),
            [first @ .., last] => format!("use {} or {last}", first.join(", ")),
        };
        let region = TextRegion::new(index, self.choice.span.start..self.choice.span.end);
        let finding = Finding::new(self.code?, self.severity, self.message.clone(), fix).at(path, region);
        let What::Size { name } = &self.choice.what else { return Some(finding) };
        // A choice can also be spread over the text: then no single edit is right.
        if index.text().get(region.span.bytes()) != Some(name) {
            return Some(finding);
        }
        let sizes = replacements.into_iter().filter(|one| one.service == Service::Vm.id());
        Some(sizes.fold(finding, |finding, size| {
            let edit = TextEdit { region, text: spelled_like(name, &size.name) };
            finding.suggest(format!("use {}", size.name), vec![edit])
        }))
    }
}

/// A size without the prefix `Standard_` where the old one has none.
fn spelled_like(old: &str, new: &str) -> String {
    const PREFIX: &str = "standard_";
    let has_prefix = |name: &str| name.to_ascii_lowercase().starts_with(PREFIX);
    let bare = new.get(PREFIX.len()..).filter(|_| has_prefix(new) && !has_prefix(old));
    bare.unwrap_or(new).to_owned()
}

/// All that an answer depends on.
type Question<'c> = (&'c What, Option<&'c str>, Option<Service>, bool);

/// Tells of each choice what became of it on a day. A region given here goes before those of the texts.
///
/// Choices that are not known to be of GPUs at all have no finding.
pub fn judge(facts: &Facts, day: Date, region: Option<&str>, choices: &[Choice]) -> Vec<ChoiceFinding> {
    // Texts repeat themselves: the same choice in the same region is looked up once.
    let mut known: HashMap<Question<'_>, Option<Assessment>> = HashMap::new();
    let mut findings = Vec::new();
    for choice in choices {
        let wanted = region.or(choice.region.as_deref());
        let key = (&choice.what, wanted, choice.service, choice.low_priority);
        let assessment =
            known.entry(key).or_insert_with(|| assess::assess(facts, day, &Place::of(facts, wanted), choice));
        let Some(assessment) = assessment else { continue };
        let Assessment { status, code, severity, message, old, replacements, notes } = assessment.clone();
        let choice = choice.clone();
        findings.push(ChoiceFinding { choice, status, code, severity, message, old, replacements, notes });
    }
    findings
}
