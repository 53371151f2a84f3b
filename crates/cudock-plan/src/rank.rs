//! The order of placements, and the ones that no other beats.

use std::cmp::Reverse;
use std::time::Duration;

use crate::money::Money;
use crate::offer::Offer;
use crate::question::Way;

/// An offer that holds the workload, with what decides about its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ranked {
    /// The offer.
    pub offer: Offer,
    /// What a job costs, or a month of serving.
    pub total: Money,
    /// From the order to the end; for serving, the longest wait of a request that finds nothing running.
    pub time: Duration,
    pub(crate) way: Way,
}

/// The placements to choose from first. None of them is beaten in cost, time and management at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choices<'a> {
    /// The cheapest.
    pub cheapest: Option<&'a Ranked>,
    /// The fastest; of equal ones the cheapest.
    pub fastest: Option<&'a Ranked>,
    /// The one that leaves the least to do; of equal ones the cheapest.
    pub least_management: Option<&'a Ranked>,
}

/// Cheapest first. Nothing but the offer itself decides between equals, so an order is the same every time.
pub(crate) fn sort(ranked: &mut [Ranked]) {
    ranked.sort_unstable_by_key(|entry| {
        let offer = &entry.offer;
        let place = (offer.service.place(), offer.size, offer.region, offer.priority);
        (entry.total, entry.time, place, offer.rate, offer.date, offer.source)
    });
}

/// Those that no other beats: none costs as little, takes as little time and leaves as little to do.
pub(crate) fn pareto(ranked: &[Ranked]) -> Vec<&Ranked> {
    let mut order: Vec<&Ranked> = ranked.iter().collect();
    order.sort_by_key(|entry| (entry.total, entry.time, Reverse(entry.offer.service.management())));
    let mut kept: Vec<&Ranked> = Vec::new();
    // In this order only an earlier one can beat a later; the fastest of each level so far stand for all before.
    let mut fastest = [Duration::MAX; 3];
    let mut seen = [false; 3];
    for entry in order {
        let level = entry.offer.service.management() as usize;
        let beaten = fastest.iter().zip(seen).skip(level).any(|(time, seen)| seen && *time <= entry.time);
        if beaten {
            continue;
        }
        kept.push(entry);
        if let (Some(time), Some(seen)) = (fastest.get_mut(level), seen.get_mut(level)) {
            *time = entry.time;
            *seen = true;
        }
    }
    kept
}

/// The ends of what no other beats.
pub(crate) fn choices(ranked: &[Ranked]) -> Choices<'_> {
    let kept = pareto(ranked);
    Choices {
        cheapest: kept.first().copied(),
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
    use crate::money::Rate;
    use crate::offer::{RegionId, SizeId};
    use crate::service::ServiceKind;
    use crate::workload::Priority;

    fn entry(service: ServiceKind, cents: u64, seconds: u64) -> Ranked {
        let date = Date::new(2026, 11, 15).unwrap();
        let offer = Offer::new(service, SizeId(0), RegionId(0), Priority::Regular, Rate::default(), date);
        let time = Duration::from_secs(seconds);
        Ranked { offer, total: Money::from_cents(cents), time, way: Way::Stream }
    }

    #[test]
    fn equal_cost_goes_by_time_and_then_by_service() {
        let mut list = [
            entry(ServiceKind::Vm, 100, 10),
            entry(ServiceKind::Batch, 100, 10),
            entry(ServiceKind::Vm, 100, 5),
            entry(ServiceKind::Vm, 99, 50),
        ];
        sort(&mut list);
        let order = list.map(|entry| (entry.offer.service, entry.time.as_secs()));
        let (vm, batch) = (ServiceKind::Vm, ServiceKind::Batch);
        assert_eq!(order, [(vm, 50), (vm, 5), (batch, 10), (vm, 10)]);
    }

    #[test]
    fn what_is_dearer_slower_and_more_work_is_beaten() {
        let list = [
            entry(ServiceKind::Vm, 100, 10),            // cheapest
            entry(ServiceKind::Vm, 110, 10),            // dearer, no faster: beaten
            entry(ServiceKind::Vm, 120, 5),             // faster
            entry(ServiceKind::ContainerApps, 130, 20), // less to do
            entry(ServiceKind::Batch, 140, 20),         // dearer and more to do than the one before: beaten
        ];
        let costs: Vec<u128> = pareto(&list).into_iter().map(|entry| entry.total.cents()).collect();
        assert_eq!(costs, [100, 120, 130]);
        let choices = choices(&list);
        assert_eq!(choices.cheapest.unwrap().total, Money::from_cents(100));
        assert_eq!(choices.fastest.unwrap().total, Money::from_cents(120));
        assert_eq!(choices.least_management.unwrap().total, Money::from_cents(130));
    }

    #[test]
    fn of_two_that_cost_and_take_the_same_the_one_with_less_to_do_is_kept() {
        let list = [entry(ServiceKind::Aks, 100, 10), entry(ServiceKind::ContainerAppsDedicated, 100, 10)];
        let kept = pareto(&list);
        assert_eq!(kept.len(), 1);
        assert_eq!(kept[0].offer.service, ServiceKind::ContainerAppsDedicated);
    }

    #[test]
    fn nothing_to_choose_from_is_no_choice() {
        assert_eq!(choices(&[]), Choices { cheapest: None, fastest: None, least_management: None });
    }
}
