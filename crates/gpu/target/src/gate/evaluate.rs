//! Evaluates one variable for one GPU.

use std::cmp::Reverse;

use super::term::{Distance, GrammarError, Numbers, Op, Property, Term};
use super::{GateGpu, GateHost, GateRequirement, NearMiss};

/// The result of one variable for one GPU.
pub(super) enum TermOutcome {
    Met,
    /// An alternative that may be satisfied, and the unknown properties.
    Assumed(String, Vec<Property>),
    Unmet(NearMiss),
    Malformed(GrammarError),
}

pub(super) struct GateInputs<'a> {
    pub(super) host: &'a GateHost,
    pub(super) card: Option<&'a GateGpu>,
}

/// Smaller is closer; see [`super::GateVerdict::Refused`].
type Nearness = (bool, usize, Reverse<usize>, bool, Distance);

impl GateInputs<'_> {
    /// Evaluates alternatives from the left until one is satisfied, like libnvidia-container. Unknown properties count as
    /// satisfied there; here such an alternative is only used if no other one is certainly satisfied.
    pub(super) fn evaluate(&self, requirement: &GateRequirement) -> TermOutcome {
        let mut nearest: Option<(Nearness, NearMiss)> = None;
        let mut assumed: Option<TermOutcome> = None;
        for (alternative, written) in requirement.alternatives.iter().zip(requirement.written()) {
            if alternative.is_empty() {
                // Only commas: libnvidia-container stops here with the result of the last condition.
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
                    // After an alternative that may be satisfied, an error may never be reached.
                    Err(error) => return assumed.unwrap_or(TermOutcome::Malformed(error)),
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
                None if missing.is_empty() => return TermOutcome::Met,
                None => {
                    missing.sort_unstable();
                    missing.dedup();
                    assumed.get_or_insert_with(|| TermOutcome::Assumed(written.to_owned(), missing));
                }
            }
        }
        match (assumed, nearest) {
            (Some(assumed), _) => assumed,
            (None, Some((_, miss))) => TermOutcome::Unmet(miss),
            (None, None) => TermOutcome::Met,
        }
    }

    /// A condition and whether it is satisfied.
    fn term<'t>(
        &self,
        term: &'t Result<Term, GrammarError>,
        variable: &str,
    ) -> Result<(&'t Term, Option<bool>), GrammarError> {
        let term = term.as_ref().map_err(Clone::clone)?;
        let invalid = |message| GrammarError::new(variable, &term.to_string(), term.position, message);
        Ok((term, self.holds(term).map_err(invalid)?))
    }

    /// Whether a condition is satisfied; `None` if unknown.
    fn holds(&self, term: &Term) -> Result<Option<bool>, &'static str> {
        match (term.property, self.card) {
            // Without a visible GPU, libnvidia-container treats it as satisfied and ignores the value.
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
