//! What each service says about one size.

use cudock_base::{UsageError, suggest};
use serde::Serialize;

use crate::placement::{Placement, Rejection};
use crate::plan::{Plan, RuleLine};
use crate::service::ServiceKind;
use crate::workload::Priority;

/// What one service says about a size.
#[derive(Debug, Serialize)]
pub struct SizeAnswer<'a> {
    /// The service.
    pub service: ServiceKind,
    /// The cheapest region of each priority.
    pub placements: Vec<Placement>,
    /// Why it does not fit.
    pub rejections: Vec<&'a Rejection>,
    /// Every rule, in the order they are applied.
    pub rules: Vec<RuleLine>,
}

impl SizeAnswer<'_> {
    /// The rejections that no unmet rule already states.
    pub fn other_rejections(&self) -> impl Iterator<Item = &Rejection> {
        let stated = |rejection: &Rejection| {
            self.rules
                .iter()
                .any(|rule| !rule.holds && rule.code == rejection.code && rule.text == rejection.reason)
        };
        self.rejections.iter().copied().filter(move |rejection| !stated(rejection))
    }

    /// The rules that are worth showing, without those that all services share. If the service is out as a whole, the
    /// rules that hold say nothing.
    pub fn own_rules(&self, shared: &[&RuleLine]) -> impl Iterator<Item = &RuleLine> {
        let whole = self.rejections.iter().any(|rejection| rejection.size.is_none());
        self.rules.iter().filter(move |rule| !(shared.contains(rule) || whole && rule.holds))
    }
}

/// The rules with the same result on every service: what is true of the size itself.
pub fn shared_rules<'a>(answers: &'a [SizeAnswer<'_>]) -> Vec<&'a RuleLine> {
    let Some((first, others)) = answers.split_first().filter(|(_, others)| !others.is_empty()) else {
        return Vec::new();
    };
    first.rules.iter().filter(|rule| others.iter().all(|answer| answer.rules.contains(rule))).collect()
}

impl<'p> Plan<'p> {
    /// The tables' spelling of a size or profile.
    pub fn size_named(&self, name: &str) -> Result<&'p str, UsageError> {
        let facts = self.question.facts;
        let sizes = facts.sizes().size.iter().map(|size| size.name.as_str());
        let profiles = facts.services().profile.iter().map(|profile| profile.name.as_str());
        let all: Vec<&str> = sizes.chain(profiles).chain(facts.prices().sizes()).collect();
        let wanted = suggest::normalize(name);
        let prefixed = suggest::normalize(&format!("Standard_{name}"));
        let same = |known: &&&str| [&wanted, &prefixed].contains(&&suggest::normalize(known));
        all.iter().find(same).copied().ok_or_else(|| {
            UsageError::new(format!("no size or profile is called `{name}`"))
                .near(&suggest::nearest(name, all.iter().copied()))
                .hint("`cudock facts size` lists the sizes on sale, `cudock facts service container-apps` the profiles")
        })
    }

    /// What the services that are allowed say about a size; those that know nothing of it are left out.
    pub fn size_answers(&self, size: &str) -> Vec<SizeAnswer<'_>> {
        let allowed = &self.question.workload.wishes.services;
        let is_allowed =
            |service: &ServiceKind| allowed.is_empty() || allowed.iter().any(|id| id == service.id());
        let answers = ServiceKind::ALL.into_iter().filter(is_allowed).map(|service| {
            let cheapest = [Priority::Regular, Priority::Spot]
                .into_iter()
                .filter_map(|priority| self.find(service, size, None, Some(priority)));
            let about = |rejection: &&Rejection| {
                rejection.service.is_none_or(|of| of == service)
                    && rejection.size.as_deref().is_none_or(|of| of == size)
                    && (rejection.service.is_some() || rejection.size.is_some())
            };
            SizeAnswer {
                service,
                placements: cheapest.map(|ranked| self.placement(ranked)).collect(),
                rejections: self.rejected().iter().filter(about).collect(),
                rules: self.rules(service, size),
            }
        });
        answers.filter(|answer| !answer.placements.is_empty() || !answer.rejections.is_empty()).collect()
    }
}
