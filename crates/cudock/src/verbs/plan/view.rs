//! What every form of the report is made of: the question, the answer, and the placements to show.

use std::collections::HashMap;

use cudock_facts::Facts;
use cudock_facts::version::Date;
use cudock_plan::{Catalog, Offer, Placement, Plan, Ranked, Verdicts, Work, Workload};

/// A question and its answer.
pub(super) struct View<'a> {
    pub(super) facts: &'a Facts,
    pub(super) catalog: &'a Catalog,
    pub(super) workload: &'a Workload,
    pub(super) verdicts: &'a Verdicts,
    pub(super) plan: &'a Plan<'a>,
    /// What the workload is called.
    pub(super) title: &'a str,
    /// The day the report is for.
    pub(super) today: Date,
}

/// A placement with its place in the list.
pub(super) struct Shown {
    pub(super) rank: usize,
    pub(super) placement: Placement,
    /// In how many other regions the same can be had, for as much or more.
    pub(super) other_regions: usize,
    /// What it is the best at.
    pub(super) best_at: Vec<&'static str>,
}

/// Which of the three choices are which offers.
pub(super) fn choices<'a>(plan: &'a Plan<'_>) -> Vec<(&'static str, &'a Ranked)> {
    let choices = plan.choices();
    [
        ("cheapest", choices.cheapest),
        ("fastest", choices.fastest),
        ("least management", choices.least_management),
    ]
    .into_iter()
    .filter_map(|(name, ranked)| Some((name, ranked?)))
    .collect()
}

/// Whether two are the same thing in the same place.
pub(super) fn same(a: &Offer, b: &Offer) -> bool {
    (a.service, a.size, a.region, a.priority) == (b.service, b.size, b.region, b.priority)
}

impl View<'_> {
    pub(super) fn serves(&self) -> bool {
        matches!(self.workload.work, Work::Serve { .. })
    }

    /// The first `top` placements, and below them those that are the best at something.
    pub(super) fn placements(&self, top: usize, all_regions: bool) -> Vec<Shown> {
        let all = self.plan.ranked();
        let listed = if all_regions { all.iter().collect() } else { self.plan.best_regions() };
        self.shown(listed, all, top, all_regions)
    }

    /// The first `top` of what no source lists, numbered by themselves.
    pub(super) fn unlisted(&self, top: usize, all_regions: bool) -> Vec<Shown> {
        let all = self.plan.unlisted();
        let listed = if all_regions { all.iter().collect() } else { self.plan.unlisted_best_regions() };
        self.shown(listed, all, top, all_regions)
    }

    fn shown(&self, listed: Vec<&Ranked>, all: &[Ranked], top: usize, all_regions: bool) -> Vec<Shown> {
        let choices = choices(self.plan);
        let mut regions: HashMap<_, usize> = HashMap::new();
        for ranked in all {
            let offer = &ranked.offer;
            *regions.entry((offer.service, offer.size, offer.priority)).or_default() += 1;
        }
        let chosen = |ranked: &Ranked| choices.iter().any(|(_, best)| same(&best.offer, &ranked.offer));
        listed
            .into_iter()
            .enumerate()
            .filter(|(index, ranked)| *index < top || chosen(ranked))
            .map(|(index, ranked)| {
                let offer = &ranked.offer;
                let best_at = choices.iter().filter(|(_, best)| same(&best.offer, offer));
                let regions = regions.get(&(offer.service, offer.size, offer.priority)).copied().unwrap_or(1);
                Shown {
                    rank: index + 1,
                    placement: self.plan.placement(ranked),
                    other_regions: if all_regions { 0 } else { regions.saturating_sub(1) },
                    best_at: best_at.map(|(name, _)| *name).collect(),
                }
            })
            .collect()
    }
}
