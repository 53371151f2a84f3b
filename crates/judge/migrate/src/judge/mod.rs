//! Judges choices by the tables.

mod assess;
mod change;
pub mod codes;
mod fit;
mod old;
mod price;
mod replacement;
mod service;
mod status;

use cudock_facts::services::AzureService;
use std::collections::HashMap;

use cudock_base::LineIndex;
use cudock_facts::Facts;
use cudock_facts::finding::{Finding, Severity, TextEdit, TextRegion};
use cudock_facts::version::Date;
use schemars::JsonSchema;
use serde::Serialize;

pub use change::Change;
pub use fit::Fit;
pub use old::{MachineGpu, OldMachine};
pub use price::{HourlyPrice, PriceComparison};
pub use replacement::Replacement;
pub use status::Status;

use crate::choice::{Choice, ChoiceKind};
use price::known_region;

/// A choice and whether it still works.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ChoiceFinding {
    #[serde(flatten)]
    pub choice: Choice,
    pub status: Status,
    /// The finding code; `None` if the choice is on sale.
    pub code: Option<&'static str>,
    /// An error no longer works.
    pub severity: Severity,
    pub message: String,
    pub old: Option<OldMachine>,
    /// Replacements, the best fitting and cheapest first.
    pub replacements: Vec<Replacement>,
    pub notes: Vec<String>,
}

/// The number of replacements that a finding suggests.
const SUGGESTED: usize = 4;

impl ChoiceFinding {
    /// Whether the choice no longer works.
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
        let ChoiceKind::Size { name } = &self.choice.kind else { return Some(finding) };
        // A choice can also be spread over the text: then no single edit is right.
        if index.text().get(region.span.bytes()) != Some(name) {
            return Some(finding);
        }
        let sizes = replacements.into_iter().filter(|one| one.service == AzureService::Vm.id());
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

/// Assesses a choice on a day, in a region of the tables.
#[derive(Clone, Copy)]
struct Assessor<'a> {
    facts: &'a Facts,
    day: Date,
    region: Option<&'a str>,
    choice: &'a Choice,
}

/// Everything that an assessment depends on.
type AssessmentKey<'c> = (&'c ChoiceKind, Option<&'c str>, Option<AzureService>, bool);

/// Judges each choice on a day. A region given here takes precedence over those of the texts.
///
/// Choices of unknown GPUs have no finding.
pub fn judge(facts: &Facts, day: Date, region: Option<&str>, choices: &[Choice]) -> Vec<ChoiceFinding> {
    // Texts repeat themselves: the same choice in the same region is looked up once.
    let mut known: HashMap<AssessmentKey<'_>, Option<ChoiceFinding>> = HashMap::new();
    let mut findings = Vec::new();
    for choice in choices {
        let wanted = region.or(choice.region.as_deref());
        let key = (&choice.kind, wanted, choice.service, choice.low_priority);
        let assess = || Assessor { facts, day, region: known_region(facts, wanted), choice }.assess();
        if let Some(finding) = known.entry(key).or_insert_with(assess) {
            findings.push(ChoiceFinding { choice: choice.clone(), ..finding.clone() });
        }
    }
    findings
}
