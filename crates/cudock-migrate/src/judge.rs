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

use std::collections::HashMap;

use cudock_facts::Facts;
use cudock_facts::finding::Severity;
use cudock_facts::version::Date;
use serde::Serialize;

pub use change::Change;
pub use fit::Fit;
pub use old::{MachineGpu, OldMachine};
pub use price::{HourlyPrice, PriceComparison};
pub use replacement::Replacement;
pub use status::Status;

use crate::choice::{Choice, ChoiceKind, Service};
use assess::Assessment;
use price::known_region;

/// The verdict on a choice.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// The choice.
    #[serde(flatten)]
    pub choice: Choice,
    /// Its status.
    pub status: Status,
    /// The finding code; `None` if the choice is on sale.
    pub code: Option<&'static str>,
    /// An error no longer works.
    pub severity: Severity,
    /// One sentence.
    pub message: String,
    /// The machine that was chosen.
    pub old: Option<OldMachine>,
    /// Replacements, the best fitting and cheapest first.
    pub replacements: Vec<Replacement>,
    /// Notes from the tables.
    pub notes: Vec<String>,
}

impl Finding {
    /// Whether the choice no longer works.
    pub fn is_over(&self) -> bool {
        self.severity == Severity::Error
    }
}

/// Everything that an assessment depends on.
type AssessmentKey<'c> = (&'c ChoiceKind, Option<&'c str>, Option<Service>, bool);

/// Judges each choice on a day. A region given here takes precedence over those of the texts.
///
/// Choices of unknown GPUs have no finding.
pub fn judge(facts: &Facts, day: Date, region: Option<&str>, choices: &[Choice]) -> Vec<Finding> {
    // Texts repeat themselves: the same choice in the same region is looked up once.
    let mut known: HashMap<AssessmentKey<'_>, Option<Assessment>> = HashMap::new();
    let mut findings = Vec::new();
    for choice in choices {
        let wanted = region.or(choice.region.as_deref());
        let key = (&choice.kind, wanted, choice.service, choice.low_priority);
        let assessment = known
            .entry(key)
            .or_insert_with(|| assess::assess(facts, day, known_region(facts, wanted), choice));
        let Some(assessment) = assessment else { continue };
        let Assessment { status, code, severity, message, old, replacements, notes } = assessment.clone();
        let choice = choice.clone();
        findings.push(Finding { choice, status, code, severity, message, old, replacements, notes });
    }
    findings
}
