//! The order of placements, and the Pareto front.

use std::cmp::Reverse;
use std::time::Duration;

use cudock_base::Usd;

use crate::catalog::availability::Proof;
use crate::catalog::offer::Offer;
use crate::context::ReadMode;

/// An offer that fits the workload, with everything that decides its rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ranked {
    pub offer: Offer,
    /// The cost of the job, or of a month of serving.
    pub total: Usd,
    /// Time from the order to the end; for serving, the longest cold start of a request.
    pub time: Duration,
    /// The evidence that the service has the size in the region.
    pub proof: Proof,
    /// How much of the total rests on assumptions.
    pub uncertainty: Usd,
    /// Whether another service or size costs the same within that uncertainty.
    pub tied: bool,
    /// The number of its group of offers that cost the same, from 0.
    pub group: u32,
    pub(crate) mode: ReadMode,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choices<'a> {
    pub cheapest: Option<&'a Ranked>,
    pub fastest: Option<&'a Ranked>,
    /// The one with the least management; the cheapest of equals.
    pub least_management: Option<&'a Ranked>,
}

/// Sorts by cost and returns how many offers are documented. Regions with access on request come after all others, and
/// undocumented offers after those.
///
/// The cheapest offer and those that cost no more within the [`uncertainty`] are a group, the next cheapest and those like
/// it the next one. In a group the same is done with time: the fastest offer and those that take up to a tenth longer come
/// first, by evidence and management, and then by time and cost. The offer itself breaks the remaining ties, so the order is
/// deterministic.
pub(crate) fn sort(ranked: &mut [Ranked]) -> usize {
    ranked.sort_unstable_by_key(|entry| (tier(entry), entry.total, entry.time, tie_breaker(entry)));
    let mut rest = &mut *ranked;
    let mut group = 0;
    while let Some(cheapest) = rest.first().copied() {
        let limit = cheapest.total + uncertainty(&cheapest);
        let alike = |entry: &Ranked| tier(entry) == tier(&cheapest) && entry.total <= limit;
        let (tied, others) = rest.split_at_mut(rest.partition_point(alike).max(1));
        let kind = |entry: &Ranked| (entry.offer.service, entry.offer.size, entry.offer.priority);
        let is_tied = tied.iter().any(|entry| kind(entry) != kind(&cheapest));
        for entry in tied.iter_mut() {
            (entry.tied, entry.group) = (is_tied, group);
        }
        if is_tied {
            sort_by_time(tied);
        }
        group += 1;
        rest = others;
    }
    ranked.partition_point(|entry| entry.proof != Proof::NotListed)
}

/// Sorts offers of the same cost.
fn sort_by_time(tied: &mut [Ranked]) {
    tied.sort_unstable_by_key(|entry| entry.time);
    let mut rest = tied;
    while let Some(fastest) = rest.first() {
        let limit = fastest.time.saturating_add(fastest.time / 10);
        let (alike, others) = rest.split_at_mut(rest.partition_point(|entry| entry.time <= limit).max(1));
        alike.sort_unstable_by_key(|entry| {
            let management = Reverse(entry.offer.service.management());
            (entry.proof, management, entry.time, entry.total, tie_breaker(entry))
        });
        rest = others;
    }
}

/// The difference in cost that means nothing: what rests on assumptions, at least a twentieth of the total, because no
/// estimate of a duration is better, and at most a tenth.
fn uncertainty(entry: &Ranked) -> Usd {
    entry.uncertainty.max(entry.total.share(1, 20)).min(entry.total.share(1, 10))
}

/// Available to everybody, available on request, or undocumented.
fn tier(entry: &Ranked) -> u8 {
    match entry.proof {
        Proof::Documented | Proof::Indirect => 0,
        Proof::Restricted => 1,
        Proof::NotListed => 2,
    }
}

fn tie_breaker(entry: &Ranked) -> impl Ord + use<> {
    let offer = &entry.offer;
    let key = (offer.service.index(), offer.size, offer.region, offer.priority);
    (key, offer.rate, offer.date, offer.source)
}

/// The Pareto front: offers that no other beats in cost, time and management at once.
pub(crate) fn pareto(ranked: &[Ranked]) -> Vec<&Ranked> {
    let mut order: Vec<&Ranked> = ranked.iter().collect();
    order.sort_by_key(|entry| (entry.total, entry.time, Reverse(entry.offer.service.management())));
    let mut kept: Vec<&Ranked> = Vec::new();
    // In this order only an earlier offer can beat a later one, and the fastest of each level represents all before it.
    let mut fastest: [Option<Duration>; 3] = [None; 3];
    for entry in order {
        let level = entry.offer.service.management() as usize;
        if fastest.iter().skip(level).flatten().any(|time| *time <= entry.time) {
            continue;
        }
        kept.push(entry);
        if let Some(time) = fastest.get_mut(level) {
            *time = Some(entry.time);
        }
    }
    kept
}

/// The extremes of the Pareto front; of equally cheap offers the one that ranks first.
pub(crate) fn choices(ranked: &[Ranked]) -> Choices<'_> {
    let kept = pareto(ranked);
    Choices {
        cheapest: ranked.iter().min_by_key(|entry| entry.total),
        fastest: kept.iter().copied().min_by_key(|entry| (entry.time, entry.total)),
        least_management: kept
            .iter()
            .copied()
            .min_by_key(|entry| (Reverse(entry.offer.service.management()), entry.total, entry.time)),
    }
}

#[cfg(test)]
mod tests {
    use cudock_facts::version::Date;
    use cudock_testkit::random::{Random, cases, seed};

    use super::*;
    use crate::catalog::offer::{RegionId, SizeId};
    use crate::workload::Priority;
    use cudock_facts::services::AzureOffering;

    fn entry(service: AzureOffering, cents: u64, seconds: u64) -> Ranked {
        let date = Date::new(2026, 11, 15).unwrap();
        let offer = Offer::new(service, SizeId(0), RegionId(0), Priority::Regular, Usd::ZERO, date);
        let time = Duration::from_secs(seconds);
        let (proof, uncertainty) = (Proof::Documented, Usd::ZERO);
        let total = Usd::from_cents(cents);
        Ranked { offer, total, time, proof, uncertainty, tied: false, group: 0, mode: ReadMode::Stream }
    }

    #[test]
    fn costs_within_the_uncertainty_are_ordered_by_time() {
        // Choosing 15 hours over 72 minutes to save 2 % makes no sense.
        let mut list = [entry(AzureOffering::Batch, 790, 54_000), entry(AzureOffering::Vm, 806, 4320)];
        sort(&mut list);
        assert_eq!(list.map(|entry| (entry.total.cents(), entry.tied)), [(806, true), (790, true)]);
        // A twentieth is alike, up to a tenth where that rests on assumptions, and never more.
        for (uncertainty, expected) in
            [(0, [105, 100, 112, 109]), (9, [109, 105, 100, 112]), (50, [109, 105, 100, 112])]
        {
            let cheapest =
                Ranked { uncertainty: Usd::from_cents(uncertainty), ..entry(AzureOffering::Aks, 100, 30) };
            let mut list = [
                cheapest,
                entry(AzureOffering::Vm, 105, 20),
                entry(AzureOffering::Batch, 109, 10),
                entry(AzureOffering::Vm, 112, 5),
            ];
            sort(&mut list);
            assert_eq!(list.map(|entry| entry.total.cents()), expected);
        }
    }

    #[test]
    fn equal_cost_and_time_go_by_evidence_and_then_by_management() {
        let indirect = Ranked { proof: Proof::Indirect, ..entry(AzureOffering::MlServerless, 100, 100) };
        let mut list = [
            indirect,
            entry(AzureOffering::Vm, 102, 100),
            // Three minutes of 45 rest on assumptions about starts.
            entry(AzureOffering::Batch, 103, 110),
            entry(AzureOffering::Batch, 100, 112),
        ];
        assert_eq!(sort(&mut list), 4);
        let order = list.map(|entry| (entry.offer.service, entry.total.cents()));
        let (vm, batch) = (AzureOffering::Vm, AzureOffering::Batch);
        assert_eq!(order, [(batch, 103), (vm, 102), (AzureOffering::MlServerless, 100), (batch, 100)]);
    }

    /// The order is total, and there is a reason why one is above another: it is faster, or takes
    /// no longer than a tenth, or its group is cheaper beyond the uncertainty of the cheapest in
    /// it.
    #[test]
    fn what_is_above_is_faster_or_cheaper_beyond_the_uncertainty() {
        let mut random = Random::new(seed());
        let services =
            [AzureOffering::Vm, AzureOffering::Batch, AzureOffering::Aks, AzureOffering::ContainerApps];
        let proofs = [Proof::Documented, Proof::Indirect];
        for _ in 0..cases(300) {
            let mut list: Vec<Ranked> = (0..random.below(40))
                .map(|number| {
                    let (cents, seconds) = (100 + random.below(100) as u64, random.below(50) as u64);
                    let mut one = entry(*random.pick(&services), cents, seconds);
                    one.offer.size = SizeId(u16::try_from(number).unwrap());
                    one.uncertainty = Usd::from_cents(random.below(30) as u64);
                    one.proof = *random.pick(&proofs);
                    one
                })
                .collect();
            let mut again = list.clone();
            again.reverse();
            sort(&mut list);
            sort(&mut again);
            assert_eq!(list, again, "whatever the order of the offers");
            for (index, above) in list.iter().enumerate() {
                for below in &list[index + 1..] {
                    let group = list.iter().filter(|one| one.group == above.group);
                    let cheapest = group.min_by_key(|one| (one.total, one.time, tie_breaker(one))).unwrap();
                    let limit = cheapest.total + uncertainty(cheapest);
                    assert!(above.total <= limit);
                    let is_as_fast = above.time <= below.time + below.time / 10;
                    assert!(is_as_fast || below.total > limit, "{above:?} {below:?}");
                    let is_preferred =
                        (above.proof, Reverse(above.offer.service.management()), above.time, above.total)
                            <= (
                                below.proof,
                                Reverse(below.offer.service.management()),
                                below.time,
                                below.total,
                            );
                    assert!(
                        above.time < below.time || is_preferred || below.total > limit,
                        "{above:?} {below:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn undocumented_offers_come_last_however_cheap() {
        let unlisted = Ranked { proof: Proof::NotListed, ..entry(AzureOffering::Batch, 1, 1) };
        let restricted = Ranked { proof: Proof::Restricted, ..entry(AzureOffering::Vm, 2, 1) };
        let mut list = [unlisted, restricted, entry(AzureOffering::Vm, 900, 10)];
        assert_eq!(sort(&mut list), 2);
        assert_eq!(list.map(|entry| entry.total.cents()), [900, 2, 1]);
    }

    #[test]
    fn offers_that_cost_more_take_longer_and_are_less_managed_are_beaten() {
        let list = [
            entry(AzureOffering::Vm, 100, 10),            // cheapest
            entry(AzureOffering::Vm, 110, 10),            // more expensive, not faster: beaten
            entry(AzureOffering::Vm, 120, 5),             // faster
            entry(AzureOffering::ContainerApps, 130, 20), // more managed
            entry(AzureOffering::Batch, 140, 20), // more expensive and less managed than the one before: beaten
        ];
        let costs: Vec<u128> = pareto(&list).into_iter().map(|entry| entry.total.cents()).collect();
        assert_eq!(costs, [100, 120, 130]);
        let choices = choices(&list);
        assert_eq!(choices.cheapest.unwrap().total, Usd::from_cents(100));
        assert_eq!(choices.fastest.unwrap().total, Usd::from_cents(120));
        assert_eq!(choices.least_management.unwrap().total, Usd::from_cents(130));
    }

    #[test]
    fn of_two_that_cost_and_take_the_same_the_more_managed_is_kept() {
        let list =
            [entry(AzureOffering::Aks, 100, 10), entry(AzureOffering::ContainerAppsDedicated, 100, 10)];
        let kept = pareto(&list);
        assert_eq!(kept.len(), 1);
        assert_eq!(kept[0].offer.service, AzureOffering::ContainerAppsDedicated);
    }

    #[test]
    fn no_offers_give_no_choices() {
        assert_eq!(choices(&[]), Choices { cheapest: None, fastest: None, least_management: None });
    }
}
