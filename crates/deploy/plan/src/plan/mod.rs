//! Plans: the offers that fit a workload, ranked, and the reasons why the others do not.

pub(crate) mod availability;
pub(crate) mod evaluate;
pub(crate) mod placement;
pub(crate) mod rank;
pub(crate) mod reject;
pub(crate) mod relax;

use cudock_base::bug::Parts;
use std::cell::OnceCell;

use cudock_facts::Facts;
use schemars::JsonSchema;
use serde::Serialize;

use crate::catalog::{Catalog, bare};
use crate::codes;
use crate::context::{Case, PlanContext};
use crate::feasible::{SERVICE_RULES, SIZE_RULES};
use crate::plan::evaluate::Evaluator;
use crate::plan::placement::{Placement, Rejection};
use crate::plan::rank::{Choices, Ranked};
use crate::plan::reject::RejectedOffer;
use crate::report::describe;
use crate::verdict::Verdicts;
use crate::workload::{Priority, Workload};
use cudock_facts::services::AzureOffering;

/// Ranked placements, and rejections. Text is produced on demand.
pub struct Plan<'a> {
    pub(crate) context: PlanContext<'a>,
    ranked: Vec<Ranked>,
    documented: usize,
    rejected: Vec<RejectedOffer>,
    rejections: OnceCell<Vec<Rejection>>,
}

/// A rule, and whether a size on a service satisfies it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RuleLine {
    /// The code of its rejections.
    pub code: &'static str,
    pub holds: bool,
    /// Text with the available and the needed value.
    pub text: String,
}

/// Evaluates and prices every offer of a catalog for a workload.
pub fn plan<'a>(
    catalog: &'a Catalog,
    facts: &'a Facts,
    workload: &'a Workload,
    verdicts: &'a Verdicts,
) -> Plan<'a> {
    let context = PlanContext::new(catalog, facts, workload, verdicts);
    let mut evaluator = Evaluator { context: &context, ranked: Vec::new(), rejected: Vec::new() };
    for service in AzureOffering::ALL {
        evaluator.evaluate_service(service);
    }
    let Evaluator { mut ranked, rejected, .. } = evaluator;
    let documented = rank::sort(&mut ranked);
    Plan { context, ranked, documented, rejected, rejections: OnceCell::new() }
}

impl<'a> Plan<'a> {
    pub fn workload(&self) -> &'a Workload {
        self.context.workload
    }

    pub fn facts(&self) -> &'a Facts {
        self.context.facts
    }

    pub fn catalog(&self) -> &'a Catalog {
        self.context.catalog
    }

    /// Whether the workload is a service, which is billed by the month.
    pub fn serves(&self) -> bool {
        self.context.serves()
    }

    /// The documented offers that fit the workload, cheapest first. Costs that differ by less than the uncertainty are
    /// equal, and equals are ordered by time, evidence and management.
    pub fn ranked(&self) -> &[Ranked] {
        self.ranked.part(..self.documented)
    }

    /// Offers that would fit the workload, in the same order, but that no source lists.
    pub fn unlisted(&self) -> &[Ranked] {
        self.ranked.part(self.documented..)
    }

    /// The best region of each service, size and priority.
    pub fn best_regions(&self) -> Vec<&Ranked> {
        best_regions(self.ranked())
    }

    /// The same for offers that no source lists.
    pub fn unlisted_best_regions(&self) -> Vec<&Ranked> {
        best_regions(self.unlisted())
    }

    /// The cheapest placement of a size on a service, in a region and at a priority if they are given, documented or
    /// not.
    pub fn find(
        &self,
        service: AzureOffering,
        size: &str,
        region: Option<&str>,
        priority: Option<Priority>,
    ) -> Option<&Ranked> {
        let catalog = self.context.catalog;
        let size = catalog.size(size)?;
        let region = match region {
            Some(name) => Some(catalog.region(name)?),
            None => None,
        };
        self.ranked.iter().find(|entry| {
            let offer = &entry.offer;
            (offer.service, offer.size) == (service, size)
                && region.is_none_or(|region| offer.region == region)
                && priority.is_none_or(|priority| offer.priority == priority)
        })
    }

    /// A placement in full, with its parts, reasons and warnings.
    pub fn placement(&self, ranked: &Ranked) -> Placement {
        describe::placement(&self.context, ranked)
    }

    /// Everything that does not fit the workload: a service, a size on a service, or a single
    /// region or priority of it.
    pub fn rejected(&self) -> &[Rejection] {
        let describe = || self.rejected.iter().map(|offer| offer.describe(&self.context)).collect();
        self.rejections.get_or_init(describe)
    }

    /// The first placement that `cudock up` deploys.
    pub(crate) fn first_deployable(&self) -> Option<&Ranked> {
        self.ranked().iter().find(|ranked| ranked.offer.service.service().is_deployable())
    }

    /// The cheapest, the fastest and the one with the least management.
    pub fn choices(&self) -> Choices<'_> {
        let mut choices = rank::choices(self.ranked());
        if self.compares_published() {
            choices.fastest = self
                .ranked()
                .iter()
                .min_by_key(|entry| (std::cmp::Reverse(self.published(entry)), entry.time, entry.total));
        }
        choices
    }

    /// Whether the fastest is chosen by published throughput, because nothing was measured and the times cannot hold on
    /// all kinds of GPUs.
    pub fn compares_published(&self) -> bool {
        let gpu = &self.context.workload.gpu;
        if self.context.serves() || gpu.measured_on.is_some() || !gpu.speeds.is_empty() {
            return false;
        }
        let mut gpus = self.ranked().iter().map(|entry| self.context.catalog.gpu_of(entry.offer.size));
        let first = gpus.next();
        gpus.any(|gpu| Some(gpu) != first)
    }

    /// Published half-precision throughput of the GPUs that an instance uses.
    fn published(&self, entry: &Ranked) -> u64 {
        let Some(machine) = self.context.catalog.machine(entry.offer.size) else { return 0 };
        let used = self.context.workload.gpu.per_instance.saturating_mul(1000);
        let gpus = u64::from(machine.gpus.unwrap_or(0).min(used));
        machine.gflops.unwrap_or(0).saturating_mul(gpus)
    }

    /// The rejections that are nearest to fitting, one per size, of the sizes and GPUs that the workload names, or else of
    /// all. Of reasons that are equally near, that a size is retired comes first.
    pub fn nearest(&self) -> Vec<&Rejection> {
        const SHOWN: usize = 5;
        let sizes = self.rejected().iter().filter(|rejection| rejection.size.is_some());
        let (named, others): (Vec<_>, Vec<_>) =
            sizes.partition(|rejection| rejection.size.as_deref().is_some_and(|size| self.is_named(size)));
        let mut order = if named.is_empty() { others } else { named };
        let service = |rejection: &Rejection| rejection.service.map_or(u8::MAX, AzureOffering::index);
        order.sort_by_key(|rejection| {
            let is_retired = rejection.code == codes::SIZE_RETIRED;
            (rejection.distance, !is_retired, service(rejection), rejection.size.as_deref())
        });
        let mut nearest: Vec<&Rejection> = Vec::with_capacity(SHOWN);
        for rejection in order {
            if nearest.len() == SHOWN {
                break;
            }
            if nearest.iter().all(|taken| taken.size != rejection.size) {
                nearest.push(rejection);
            }
        }
        nearest
    }

    /// Whether the workload names the size, or its GPU.
    fn is_named(&self, size: &str) -> bool {
        let PlanContext { catalog, workload, .. } = self.context;
        let (sizes, models) = (&workload.constraints.sizes, &workload.gpu.models);
        let gpu = || catalog.size(size).and_then(|size| catalog.gpu_of(size));
        sizes.iter().any(|named| bare(named).eq_ignore_ascii_case(bare(size)))
            || sizes.is_empty() && models.iter().any(|named| Some(named.as_str()) == gpu())
    }

    pub fn considered(&self) -> usize {
        self.context.catalog.offers().len()
    }

    /// Every rule for a size on a service, in order; empty for a size that is not in the catalog.
    pub fn rules(&self, service: AzureOffering, size: &str) -> Vec<RuleLine> {
        let Some(size) = self.context.catalog.size(size) else { return Vec::new() };
        let Some(case) = Case::new(&self.context, service, size) else { return Vec::new() };
        let rules = SERVICE_RULES.iter().chain(&SIZE_RULES);
        rules
            .map(|rule| RuleLine {
                code: rule.code,
                holds: (rule.gap)(&case).is_none(),
                text: (rule.describe)(&case),
            })
            .collect()
    }
}

pub(crate) fn best_regions(ranked: &[Ranked]) -> Vec<&Ranked> {
    let mut seen = std::collections::HashSet::new();
    let key = |entry: &Ranked| (entry.offer.service, entry.offer.size, entry.offer.priority);
    ranked.iter().filter(|entry| seen.insert(key(entry))).collect()
}

#[cfg(test)]
mod tests;
