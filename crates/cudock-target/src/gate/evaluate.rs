//! One variable, evaluated for one card.

use std::cmp::Reverse;

use super::term::{Distance, GrammarError, Numbers, Op, Property, Term};
use super::{GateGpu, GateHost, NearMiss, Requirement};

/// How one variable comes out for one card.
pub(super) enum Outcome {
    Met,
    Assumed { alternative: String, missing: Vec<Property> },
    Unmet(NearMiss),
    Malformed(GrammarError),
}

/// What one evaluation looks at.
pub(super) struct Seen<'a> {
    pub(super) host: &'a GateHost,
    pub(super) card: Option<&'a GateGpu>,
}

/// The less, the nearer; see [`super::GateVerdict::Refused`].
type Nearness = (bool, usize, Reverse<usize>, bool, Distance);

impl Seen<'_> {
    /// Alternatives from the left until one holds, as libnvidia-container does. What is not known counts as met
    /// there; here such an alternative is set aside in the hope of one that holds for certain.
    pub(super) fn evaluate(&self, requirement: &Requirement) -> Outcome {
        let mut nearest: Option<(Nearness, NearMiss)> = None;
        let mut assumed: Option<(String, Vec<Property>)> = None;
        for (alternative, written) in requirement.alternatives.iter().zip(requirement.written()) {
            if alternative.is_empty() {
                // Only commas: libnvidia-container stops here with whatever the last condition came to.
                break;
            }
            let mut missing = Vec::new();
            let mut failed = None;
            for term in alternative {
                match self.term(term, &requirement.variable) {
                    Ok((_, Some(true))) => {}
                    Ok((term, None)) => missing.push(term.property),
                    Ok((term, Some(false))) => {
                        failed = Some(term);
                        break;
                    }
                    // Behind an alternative that was taken to hold, a mistake is one that may never be reached.
                    Err(error) => return assumed.map_or(Outcome::Malformed(error), Outcome::assumed),
                }
            }
            match failed {
                Some(failed) if assumed.is_none() => {
                    let near = self.nearness(alternative, failed);
                    if nearest.as_ref().is_none_or(|(best, _)| near < *best) {
                        let miss = NearMiss { alternative: written.to_owned(), failed: failed.clone() };
                        nearest = Some((near, miss));
                    }
                }
                Some(_) => {}
                None if missing.is_empty() => return Outcome::Met,
                None => {
                    missing.sort_unstable();
                    missing.dedup();
                    assumed.get_or_insert_with(|| (written.to_owned(), missing));
                }
            }
        }
        match (assumed, nearest) {
            (Some(assumed), _) => Outcome::assumed(assumed),
            (None, Some((_, miss))) => Outcome::Unmet(miss),
            (None, None) => Outcome::Met,
        }
    }

    /// A condition, and whether it holds.
    fn term<'t>(
        &self,
        term: &'t Result<Term, GrammarError>,
        variable: &str,
    ) -> Result<(&'t Term, Option<bool>), GrammarError> {
        let term = term.as_ref().map_err(Clone::clone)?;
        let held = self.holds(term).map_err(|message| GrammarError {
            variable: variable.to_owned(),
            text: term.to_string(),
            position: term.position,
            message,
        })?;
        Ok((term, held))
    }

    /// Whether a condition holds; `None` if that is not known.
    fn holds(&self, term: &Term) -> Result<Option<bool>, &'static str> {
        match (term.property, self.card) {
            // No card is visible: libnvidia-container takes it for met, and does not read the value.
            (Property::Arch | Property::Brand, None) => Ok(Some(true)),
            (Property::Brand, Some(card)) => {
                card.brand.as_deref().map(|brand| term.holds_for_brand(brand)).transpose()
            }
            (Property::Driver, _) => match self.host.driver {
                Some(driver) if !driver.is_exact() => term.holds_for_branch(driver.branch()),
                _ => self.by_number(term),
            },
            (Property::Cuda, _) | (Property::Arch, Some(_)) => self.by_number(term),
        }
    }

    fn by_number(&self, term: &Term) -> Result<Option<bool>, &'static str> {
        self.number(term.property).map(|found| term.holds_for_version(&found)).transpose()
    }

    fn number(&self, property: Property) -> Option<Numbers> {
        let text = match property {
            Property::Cuda => self.host.cuda?.to_string(),
            Property::Driver => self.host.driver?.to_string(),
            Property::Arch => self.card?.capability?.to_string(),
            Property::Brand => return None,
        };
        Numbers::parse(&text).ok()
    }

    fn nearness(&self, alternative: &[Result<Term, GrammarError>], failed: &Term) -> Nearness {
        let terms = || alternative.iter().flatten();
        let unmet = || terms().filter(|term| self.holds(term) == Ok(Some(false)));
        let needs_another_card = unmet().any(|term| !term.property.follows_the_driver());
        let needs_an_older_driver = !matches!(failed.op, Op::Greater | Op::GreaterEqual);
        let distance = self.number(failed.property).map_or(Distance::MAX, |found| failed.distance(&found));
        let (unmet, all) = (unmet().count(), terms().count());
        (needs_another_card, unmet, Reverse(all - unmet), needs_an_older_driver, distance)
    }
}

impl Outcome {
    fn assumed((alternative, missing): (String, Vec<Property>)) -> Self {
        Self::Assumed { alternative, missing }
    }
}
