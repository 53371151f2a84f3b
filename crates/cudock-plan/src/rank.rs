//! The order of placements, and the Pareto front.

use std::cmp::Reverse;
use std::time::Duration;

use crate::availability::Proof;
use crate::context::ReadMode;
use crate::offer::Offer;
use cudock_base::Usd;

/// An offer that fits the workload, with everything that decides its rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ranked {
    pub offer: Offer,
    /// The cost of the job, or of a month of serving.
    pub total: Usd,
    /// From the order to the end; for serving, the longest cold start of a request.
    pub time: Duration,
    /// The evidence that the service has the size in the region.
    pub proof: Proof,
    /// How much of the total rests on assumptions.
    pub uncertainty: Usd,
    /// Whether another service or size costs the same within that uncertainty.
    pub tied: bool,
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
/// Costs that differ by less than the uncertainty of the cheapest, and by at most a tenth of it, count as equal: such
/// offers are ordered by evidence, management, time and only then by cost. The offer itself breaks the remaining ties, so
/// the order is deterministic.
pub(crate) fn sort(ranked: &mut [Ranked]) -> usize {
    ranked.sort_unstable_by_key(|entry| (tier(entry), entry.total, entry.time, tie_breaker(entry)));
    let mut rest = &mut *ranked;
    while let Some(cheapest) = rest.first().copied() {
        let limit = cheapest.total + cheapest.uncertainty.min(cheapest.total.share(1, 10));
        let alike = |entry: &Ranked| tier(entry) == tier(&cheapest) && entry.total <= limit;
        let (tied, others) = rest.split_at_mut(rest.partition_point(alike).max(1));
        let kind = |entry: &Ranked| (entry.offer.service, entry.offer.size, entry.offer.priority);
        if tied.iter().any(|entry| kind(entry) != kind(&cheapest)) {
            for entry in tied.iter_mut() {
                entry.tied = true;
            }
            tied.sort_unstable_by_key(|entry| {
                let management = Reverse(entry.offer.service.management());
                (entry.proof, management, entry.time, entry.total, tie_breaker(entry))
            });
        }
        rest = others;
    }
    ranked.partition_point(|entry| entry.proof != Proof::NotListed)
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

    use super::*;
    use crate::offer::{RegionId, SizeId};
    use crate::service::ServiceKind;
    use crate::workload::Priority;

    fn entry(service: ServiceKind, cents: u64, seconds: u64) -> Ranked {
        let date = Date::new(2026, 11, 15).unwrap();
        let offer = Offer::new(service, SizeId(0), RegionId(0), Priority::Regular, Usd::ZERO, date);
        let time = Duration::from_secs(seconds);
        let (proof, uncertainty) = (Proof::Documented, Usd::ZERO);
        let total = Usd::from_cents(cents);
        Ranked { offer, total, time, proof, uncertainty, tied: false, mode: ReadMode::Stream }
    }

    #[test]
    fn equal_cost_goes_by_management_and_then_by_time() {
        let mut list = [
            entry(ServiceKind::Vm, 100, 10),
            entry(ServiceKind::Batch, 100, 10),
            entry(ServiceKind::Vm, 100, 5),
            entry(ServiceKind::Vm, 99, 50),
        ];
        sort(&mut list);
        let order = list.map(|entry| (entry.offer.service, entry.time.as_secs()));
        let (vm, batch) = (ServiceKind::Vm, ServiceKind::Batch);
        // Of those at a dollar, Batch is managed and a virtual machine is not.
        assert_eq!(order, [(vm, 50), (batch, 10), (vm, 5), (vm, 10)]);
    }

    #[test]
    fn costs_within_the_uncertainty_are_equal_and_evidence_decides_before_management() {
        let unsure = |mut entry: Ranked, cents| {
            entry.uncertainty = Usd::from_cents(cents);
            entry
        };
        let indirect = Ranked { proof: Proof::Indirect, ..entry(ServiceKind::MlServerless, 100, 20) };
        let mut list = [
            unsure(indirect, 5),
            entry(ServiceKind::Vm, 103, 10),
            entry(ServiceKind::Batch, 105, 20),
            entry(ServiceKind::Batch, 106, 5),
        ];
        let proven = sort(&mut list);
        let order = list.map(|entry| (entry.total.cents(), entry.tied));
        assert_eq!(order, [(105, true), (103, true), (100, true), (106, false)]);
        assert_eq!(proven, 4);
    }

    #[test]
    fn undocumented_offers_come_last_however_cheap() {
        let unlisted = Ranked { proof: Proof::NotListed, ..entry(ServiceKind::Batch, 1, 1) };
        let restricted = Ranked { proof: Proof::Restricted, ..entry(ServiceKind::Vm, 2, 1) };
        let mut list = [unlisted, restricted, entry(ServiceKind::Vm, 900, 10)];
        assert_eq!(sort(&mut list), 2);
        assert_eq!(list.map(|entry| entry.total.cents()), [900, 2, 1]);
    }

    #[test]
    fn offers_that_cost_more_take_longer_and_are_less_managed_are_beaten() {
        let list = [
            entry(ServiceKind::Vm, 100, 10),            // cheapest
            entry(ServiceKind::Vm, 110, 10),            // more expensive, not faster: beaten
            entry(ServiceKind::Vm, 120, 5),             // faster
            entry(ServiceKind::ContainerApps, 130, 20), // more managed
            entry(ServiceKind::Batch, 140, 20), // more expensive and less managed than the one before: beaten
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
        let list = [entry(ServiceKind::Aks, 100, 10), entry(ServiceKind::ContainerAppsDedicated, 100, 10)];
        let kept = pareto(&list);
        assert_eq!(kept.len(), 1);
        assert_eq!(kept[0].offer.service, ServiceKind::ContainerAppsDedicated);
    }

    #[test]
    fn no_offers_give_no_choices() {
        assert_eq!(choices(&[]), Choices { cheapest: None, fastest: None, least_management: None });
    }
}
