//! The placements that a report lists, and what each of them is best at.

use std::collections::HashMap;

use crate::catalog::offer::Offer;
use crate::plan::placement::Placement;
use crate::plan::rank::Ranked;
use crate::plan::{Plan, best_regions};

#[derive(Debug)]
pub struct Listed {
    /// Its position, from 1.
    pub rank: usize,
    /// The number of the group of offers that cost the same, in which the order is by time.
    pub group: u32,
    pub placement: Placement,
    /// Number of other regions in which the same is available, at the same or a higher cost.
    pub other_regions: usize,
    pub best_at: Vec<&'static str>,
}

/// The first placement that `cudock up` deploys, if that is not the first of all.
pub const DEPLOYABLE: &str = "deployable";

/// Whether two offers are the same thing in the same region.
fn is_same(a: &Offer, b: &Offer) -> bool {
    (a.service, a.size, a.region, a.priority) == (b.service, b.size, b.region, b.priority)
}

impl Plan<'_> {
    fn named_choices(&self) -> Vec<(&'static str, &Ranked)> {
        let choices = self.choices();
        let is_needed =
            self.ranked().first().is_some_and(|best| !best.offer.service.service().is_deployable());
        [
            ("cheapest", choices.cheapest),
            ("fastest", choices.fastest),
            ("least management", choices.least_management),
            (DEPLOYABLE, self.first_deployable().filter(|_| is_needed)),
        ]
        .into_iter()
        .filter_map(|(name, ranked)| Some((name, ranked?)))
        .collect()
    }

    /// The first `top` placements, followed by those that are best at something.
    pub fn list(&self, top: usize, all_regions: bool) -> Vec<Listed> {
        self.listed(self.ranked(), top, all_regions)
    }

    /// The first `top` of the offers that no source lists, with positions of their own.
    pub fn list_unlisted(&self, top: usize, all_regions: bool) -> Vec<Listed> {
        self.listed(self.unlisted(), top, all_regions)
    }

    fn listed(&self, all: &[Ranked], top: usize, all_regions: bool) -> Vec<Listed> {
        let chosen = if all_regions { all.iter().collect() } else { best_regions(all) };
        let choices = self.named_choices();
        let mut regions: HashMap<_, usize> = HashMap::new();
        for ranked in all {
            let offer = &ranked.offer;
            *regions.entry((offer.service, offer.size, offer.priority)).or_default() += 1;
        }
        let is_best = |ranked: &Ranked| choices.iter().any(|(_, best)| is_same(&best.offer, &ranked.offer));
        chosen
            .into_iter()
            .enumerate()
            .filter(|(index, ranked)| *index < top || is_best(ranked))
            .map(|(index, ranked)| {
                let offer = &ranked.offer;
                let best_at = choices.iter().filter(|(_, best)| is_same(&best.offer, offer));
                let regions = regions.get(&(offer.service, offer.size, offer.priority)).copied().unwrap_or(1);
                Listed {
                    rank: index + 1,
                    group: ranked.group,
                    placement: self.placement(ranked),
                    other_regions: if all_regions { 0 } else { regions.saturating_sub(1) },
                    best_at: best_at.map(|(name, _)| *name).collect(),
                }
            })
            .collect()
    }
}
