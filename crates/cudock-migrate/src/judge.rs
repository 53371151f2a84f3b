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

use cudock_facts::Facts;
use cudock_facts::finding::Severity;
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

/// What became of a choice.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
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

impl Finding {
    /// Whether the choice does not work any more.
    pub fn is_over(&self) -> bool {
        self.severity == Severity::Error
    }
}

/// All that an answer depends on.
type Question<'c> = (&'c What, Option<&'c str>, Option<Service>, bool);

/// Tells of each choice what became of it on a day. A region given here goes before those of the texts.
///
/// Choices that are not known to be of GPUs at all have no finding.
pub fn judge(facts: &Facts, day: Date, region: Option<&str>, choices: &[Choice]) -> Vec<Finding> {
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
        findings.push(Finding { choice, status, code, severity, message, old, replacements, notes });
    }
    findings
}
