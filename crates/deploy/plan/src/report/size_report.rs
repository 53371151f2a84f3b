//! How one size fares on each service.

use cudock_base::UsageError;
use cudock_base::text::suggest;
use schemars::JsonSchema;
use serde::Serialize;

use crate::plan::placement::{Placement, Rejection};
use crate::plan::{Plan, RuleLine};
use crate::workload::Priority;
use cudock_facts::services::AzureOffering;

#[derive(Debug, Serialize, JsonSchema)]
pub struct SizeReport<'a> {
    pub service: AzureOffering,
    /// The cheapest region of each priority.
    pub placements: Vec<Placement>,
    pub rejections: Vec<&'a Rejection>,
    /// Every rule, in the order of evaluation.
    pub rules: Vec<RuleLine>,
}

impl SizeReport<'_> {
    /// The rejections that no failed rule states already.
    pub fn other_rejections(&self) -> impl Iterator<Item = &Rejection> {
        let stated = |rejection: &Rejection| {
            self.rules
                .iter()
                .any(|rule| !rule.holds && rule.code == rejection.code && rule.text == rejection.reason)
        };
        self.rejections.iter().copied().filter(move |rejection| !stated(rejection))
    }

    /// The rules that are worth showing, without those that all services share. If the whole service is rejected, the
    /// rules that hold do not matter.
    pub fn own_rules(&self, shared: &[&RuleLine]) -> impl Iterator<Item = &RuleLine> {
        let whole = self.rejections.iter().any(|rejection| rejection.size.is_none());
        self.rules.iter().filter(move |rule| !(shared.contains(rule) || whole && rule.holds))
    }
}

/// The rules with the same result on every service: facts about the size itself.
pub fn shared_rules<'a>(reports: &'a [SizeReport<'_>]) -> Vec<&'a RuleLine> {
    let Some((first, others)) = reports.split_first().filter(|(_, others)| !others.is_empty()) else {
        return Vec::new();
    };
    first.rules.iter().filter(|rule| others.iter().all(|report| report.rules.contains(rule))).collect()
}

impl<'p> Plan<'p> {
    /// The name of a size or profile as the tables spell it.
    pub fn size_named(&self, name: &str) -> Result<&'p str, UsageError> {
        let facts = self.context.facts;
        let sizes = facts.sizes().size.iter().map(|size| size.name.as_str());
        let profiles = facts.services().profile.iter().map(|profile| profile.name.as_str());
        let all: Vec<&str> = sizes.chain(profiles).chain(facts.prices().sizes()).collect();
        let wanted = suggest::normalize(name);
        let prefixed = suggest::normalize(&format!("Standard_{name}"));
        let same = |known: &&&str| [&wanted, &prefixed].contains(&&suggest::normalize(known));
        all.iter().find(same).copied().ok_or_else(|| {
            UsageError::new(format!("unknown size or profile `{name}`"))
                .near(&suggest::nearest(name, all.iter().copied()))
                .hint("`cudock facts size` lists the sizes on sale, `cudock facts service container-apps` the profiles")
        })
    }

    /// How a size fares on the allowed services; those that do not offer it are left out.
    pub fn size_reports(&self, size: &str) -> Vec<SizeReport<'_>> {
        let allowed = &self.context.workload.constraints.services;
        let is_allowed =
            |service: &AzureOffering| allowed.is_empty() || allowed.iter().any(|id| id == service.id());
        let reports = AzureOffering::ALL.into_iter().filter(is_allowed).map(|service| {
            let cheapest = [Priority::Regular, Priority::Spot]
                .into_iter()
                .filter_map(|priority| self.find(service, size, None, Some(priority)));
            SizeReport {
                service,
                placements: cheapest.map(|ranked| self.placement(ranked)).collect(),
                rejections: self.rejected().iter().filter(|one| one.is_about(&[service], size)).collect(),
                rules: self.rules(service, size),
            }
        });
        reports.filter(|report| !report.placements.is_empty() || !report.rejections.is_empty()).collect()
    }
}
