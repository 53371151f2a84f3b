//! A workload against a catalogue: what holds it, in order, and why the rest does not.

use std::cell::OnceCell;

use cudock_facts::Facts;
use serde::Serialize;

use crate::catalog::Catalog;
use crate::feasible::{SERVICE_RULES, SIZE_RULES};
use crate::placement::{Placement, Rejection};
use crate::question::{Case, Question};
use crate::rank::{self, Choices, Ranked};
use crate::refusal::Refusal;
use crate::relax::{Relaxed, relaxed};
use crate::service::ServiceKind;
use crate::sift::Sorter;
use crate::tell;
use crate::verdict::Verdicts;
use crate::workload::{Priority, Workload};

/// Placements in order, and rejections. Words are made for what is looked at.
pub struct Plan<'a> {
    pub(crate) question: Question<'a>,
    ranked: Vec<Ranked>,
    /// How many of them some source proves.
    proven: usize,
    refusals: Vec<Refusal>,
    told: OnceCell<Vec<Rejection>>,
}

/// A rule, and whether a size on a service meets it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RuleLine {
    /// The code of a rejection for it.
    pub code: &'static str,
    /// Whether it holds.
    pub holds: bool,
    /// What is there and what is needed.
    pub text: String,
}

/// Judges and prices every offer of a catalogue for a workload.
pub fn plan<'a>(
    catalog: &'a Catalog,
    facts: &'a Facts,
    workload: &'a Workload,
    verdicts: &'a Verdicts,
) -> Plan<'a> {
    let question = Question::new(catalog, facts, workload, verdicts);
    let mut sorter = Sorter { question: &question, ranked: Vec::new(), refusals: Vec::new() };
    for service in ServiceKind::ALL {
        sorter.service(service);
    }
    let Sorter { mut ranked, refusals, .. } = sorter;
    let proven = rank::sort(&mut ranked);
    Plan { question, ranked, proven, refusals, told: OnceCell::new() }
}

impl<'a> Plan<'a> {
    /// The workload that is planned for.
    pub fn workload(&self) -> &'a Workload {
        self.question.workload
    }

    /// The tables it is planned with.
    pub fn facts(&self) -> &'a Facts {
        self.question.facts
    }

    /// What was on offer.
    pub fn catalog(&self) -> &'a Catalog {
        self.question.catalog
    }

    /// Whether the workload is a service, whose cost is by the month.
    pub fn serves(&self) -> bool {
        self.question.serves()
    }

    /// What would fit if something gave way.
    pub fn relaxed(&self) -> Vec<Relaxed> {
        let question = &self.question;
        relaxed(question.catalog, question.facts, question.workload, question.verdicts)
    }

    /// Every offer that holds the workload and that the tables prove to exist, cheapest first. Costs that differ by less
    /// than what is assumed are equal, and equals are ordered by evidence, management and time.
    pub fn ranked(&self) -> &[Ranked] {
        self.ranked.get(..self.proven).unwrap_or_default()
    }

    /// Offers that would hold the workload, in the same order, but that no source says the service has there.
    pub fn unlisted(&self) -> &[Ranked] {
        self.ranked.get(self.proven..).unwrap_or_default()
    }

    /// The first of each service, size and priority: the best region of each.
    pub fn best_regions(&self) -> Vec<&Ranked> {
        best_regions(self.ranked())
    }

    /// The same of what no source lists.
    pub fn unlisted_best_regions(&self) -> Vec<&Ranked> {
        best_regions(self.unlisted())
    }

    /// The cheapest placement of a size on a service, in a region and at a priority if they are given, whether some source
    /// proves it or not.
    pub fn find(
        &self,
        service: ServiceKind,
        size: &str,
        region: Option<&str>,
        priority: Option<Priority>,
    ) -> Option<&Ranked> {
        let catalog = self.question.catalog;
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
        tell::placement(&self.question, ranked)
    }

    /// What does not hold the workload: one for each service, or size on a service, and for a region or priority
    /// where only that is out.
    pub fn rejected(&self) -> &[Rejection] {
        self.told.get_or_init(|| self.refusals.iter().map(|refusal| refusal.told(&self.question)).collect())
    }

    /// The cheapest, the fastest and the one with the least to do.
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

    /// Whether the fastest is told by published throughput: nothing was measured, so that times are taken to hold on
    /// GPUs of several kinds, which they cannot all do.
    pub fn compares_published(&self) -> bool {
        let gpu = &self.question.workload.gpu;
        if self.question.serves() || gpu.measured_on.is_some() || !gpu.speeds.is_empty() {
            return false;
        }
        let mut gpus = self.ranked().iter().map(|entry| self.question.catalog.gpu_of(entry.offer.size));
        let first = gpus.next();
        gpus.any(|gpu| Some(gpu) != first)
    }

    /// Published half-precision throughput of the GPUs that an instance uses.
    fn published(&self, entry: &Ranked) -> u64 {
        let Some(machine) = self.question.catalog.machine(entry.offer.size) else { return 0 };
        let used = self.question.workload.gpu.per_instance.saturating_mul(1000);
        let gpus = u64::from(machine.gpus.unwrap_or(0).min(used));
        machine.gflops.unwrap_or(0).saturating_mul(gpus)
    }

    /// All placements that no other beats in cost, time and management at once, cheapest first.
    pub fn pareto(&self) -> Vec<&Ranked> {
        rank::pareto(self.ranked())
    }

    /// The rejections that come nearest to fitting, one for each size, nearest first.
    pub fn nearest(&self) -> Vec<&Rejection> {
        const SHOWN: usize = 5;
        let sizes = self.rejected().iter().filter(|rejection| rejection.size.is_some());
        let mut order: Vec<&Rejection> = sizes.collect();
        let place = |rejection: &Rejection| rejection.service.map_or(u8::MAX, ServiceKind::place);
        order.sort_by_key(|rejection| (rejection.distance, place(rejection), rejection.size.as_deref()));
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

    /// How many offers were looked at.
    pub fn considered(&self) -> usize {
        self.question.catalog.offers().len()
    }

    /// Every rule in order for a size on a service, with both figures; empty for a size that is not in the catalogue.
    pub fn rules(&self, service: ServiceKind, size: &str) -> Vec<RuleLine> {
        let Some(size) = self.question.catalog.size(size) else { return Vec::new() };
        let Some(case) = Case::new(&self.question, service, size) else { return Vec::new() };
        let rules = SERVICE_RULES.iter().chain(&SIZE_RULES);
        rules
            .map(|rule| RuleLine {
                code: rule.code,
                holds: (rule.gap)(&case).is_none(),
                text: (rule.words)(&case),
            })
            .collect()
    }
}

fn best_regions(ranked: &[Ranked]) -> Vec<&Ranked> {
    let mut seen = std::collections::HashSet::new();
    let key = |entry: &Ranked| (entry.offer.service, entry.offer.size, entry.offer.priority);
    ranked.iter().filter(|entry| seen.insert(key(entry))).collect()
}

#[cfg(test)]
mod tests;
