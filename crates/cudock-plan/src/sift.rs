//! Every offer into one of two lists: what holds the workload, and what does not and why.

use cudock_facts::version::Date;

use crate::availability::{barred, proof};
use crate::catalog::belongs;
use crate::cost::{self, Usage};
use crate::feasible::{SERVICE_RULES, SIZE_RULES, judge};
use crate::money::Money;
use crate::offer::{Offer, RegionId, SizeId};
use crate::question::{Case, Question, Way};
use crate::rank::Ranked;
use crate::refusal::{Refusal, Why};
use crate::service::ServiceKind;
use crate::workload::{Priority, Workload};

/// Offers on their way to the one list or the other.
pub(crate) struct Sorter<'q, 'a> {
    pub(crate) question: &'q Question<'a>,
    pub(crate) ranked: Vec<Ranked>,
    pub(crate) refusals: Vec<Refusal>,
}

impl Sorter<'_, '_> {
    /// Sorts all that a service has.
    pub(crate) fn service(&mut self, service: ServiceKind) {
        let Some(any) = Case::new(self.question, service, SizeId(0)) else { return };
        if let Some((place, distance)) = judge(&SERVICE_RULES, &any) {
            let why = Why::Service(place);
            self.refusals.push(Refusal { service, size: None, region: None, priority: None, why, distance });
            return;
        }
        for size in self.question.catalog.sizes() {
            if self.question.catalog.machine(size).is_some_and(|machine| belongs(machine, service)) {
                self.size(service, size);
            }
        }
    }

    fn size(&mut self, service: ServiceKind, size: SizeId) {
        let Some(case) = Case::new(self.question, service, size) else { return };
        if let Some((place, distance)) = judge(&SIZE_RULES, &case) {
            self.refuse(&case, None, None, Why::Size(place), distance);
            return;
        }
        let offers = self.question.catalog.offers_of(service, size).iter().copied();
        let allowed: Vec<Offer> = offers.filter(|offer| self.question.allows(offer.region)).collect();
        if allowed.is_empty() {
            self.refuse(&case, None, None, Why::NoPrice, Why::NoPrice.distance(self.question));
            return;
        }
        let begins = case.workload().begins;
        let end = |offer: &Offer| case.machine.ends_on(offer.region).filter(|day| *day <= begins);
        let mut out: Vec<(RegionId, Why)> = Vec::new();
        let mut there: Vec<Offer> = Vec::with_capacity(allowed.len());
        for offer in allowed {
            match end(&offer).map(Why::Retired).or_else(|| barred(&case, offer.region)) {
                Some(why) => out.push((offer.region, why)),
                None => there.push(offer),
            }
        }
        out.sort_unstable_by_key(|(region, _)| *region);
        out.dedup_by_key(|(region, _)| *region);
        self.refuse_regions(&case, None, &out, there.is_empty());
        let (regular, spot): (Vec<Offer>, Vec<Offer>) =
            there.into_iter().partition(|offer| offer.priority == Priority::Regular);
        let both = !regular.is_empty() && !spot.is_empty();
        for (priority, offers) in [(Priority::Regular, regular), (Priority::Spot, spot)] {
            self.offers(&case, priority, &offers, both.then_some(priority));
        }
    }

    /// The offers of a size on a service at one priority, in the regions allowed.
    fn offers(&mut self, case: &Case, priority: Priority, offers: &[Offer], named: Option<Priority>) {
        let wishes = &case.workload().wishes;
        let wanted = wishes.priority.is_none_or(|wanted| wanted == priority);
        let spot = priority == Priority::Spot;
        let out = match (offers.is_empty(), wanted) {
            (true, true) if spot && wishes.priority.is_some() => Some(Why::NoSpot),
            (true, _) => return,
            (false, false) => Some(Why::Unwanted(priority)),
            (false, true) if spot && case.workload().spot.is_none() => Some(Why::NotBorne),
            (false, true) => None,
        };
        if let Some(why) = out {
            self.refuse(case, None, named, why, why.distance(self.question));
            return;
        }
        let usages = case.question.ways().iter().map(|way| cost::usage(case, priority, *way));
        let (fit, unfit): (Vec<_>, Vec<_>) = usages.partition(Result::is_ok);
        let usages: Vec<Usage> = fit.into_iter().flatten().collect();
        if let (true, Some(Err(unfit))) = (usages.is_empty(), unfit.into_iter().next()) {
            let why = Why::Unfit(unfit);
            self.refuse(case, None, named, why, why.distance(self.question));
            return;
        }
        let mut out: Vec<(RegionId, Why)> = Vec::new();
        let before = self.ranked.len();
        for offer in offers {
            match best(case, offer, &usages) {
                Ok(ranked) => self.ranked.push(ranked),
                Err(why) => out.push((offer.region, why)),
            }
        }
        // Where other regions are out for another reason, a region's name belongs to this one.
        let nowhere = self.ranked.len() == before && case.machine.ends_in.is_empty();
        self.refuse_regions(case, named, &out, nowhere);
    }

    /// One rejection for all regions if none is left and all have the same reason, else one for each.
    fn refuse_regions(
        &mut self,
        case: &Case,
        named: Option<Priority>,
        out: &[(RegionId, Why)],
        nowhere: bool,
    ) {
        let nearest =
            out.iter().map(|(_, why)| (why.distance(self.question), *why)).min_by_key(|(far, _)| *far);
        let Some((distance, nearest)) = nearest else { return };
        if nowhere && out.iter().all(|(_, why)| why.code() == nearest.code()) {
            self.refuse(case, None, named, nearest, distance);
            return;
        }
        for (index, (region, why)) in out.iter().enumerate() {
            let alike = |other: &(RegionId, Why)| why.is_of_regions() && other.1 == *why;
            if out.iter().take(index).any(alike) {
                continue;
            }
            let only = !out.iter().skip(index + 1).any(alike);
            self.refuse(case, only.then_some(*region), named, *why, why.distance(self.question));
        }
    }

    fn refuse(
        &mut self,
        case: &Case,
        region: Option<RegionId>,
        priority: Option<Priority>,
        why: Why,
        distance: u64,
    ) {
        let (service, size) = (case.terms.kind, Some(case.size));
        self.refusals.push(Refusal { service, size, region, priority, why, distance });
    }
}

/// The cheapest way an offer can do the work, or why there is none.
fn best(case: &Case, offer: &Offer, usages: &[Usage]) -> Result<Ranked, Why> {
    let workload = case.workload();
    let ends = case.machine.ends_on(offer.region);
    let lasting = |usage: &&Usage| ends.is_none_or(|day| ends_before(workload, usage, day));
    let mut best: Option<Ranked> = None;
    let mut unpriced = None;
    for usage in usages.iter().filter(lasting) {
        match cost::price(case, offer, usage) {
            Ok(parts) => {
                let (total, time, way) = (parts.total(), usage.time(), usage.way);
                if best.is_none_or(|best| (total, time) < (best.total, best.time)) {
                    let (proof, uncertainty) = (proof(case, offer.region), parts.uncertainty());
                    let tied = false;
                    best = Some(Ranked { offer: *offer, total, time, proof, uncertainty, tied, way });
                }
            }
            Err(missing) => unpriced = Some(Why::Unpriced(missing)),
        }
    }
    let Some(best) = best else {
        return Err(unpriced.or(ends.map(Why::Ends)).unwrap_or(Why::NoPrice));
    };
    match workload.wishes.budget {
        Some(budget) if best.total > budget => Err(Why::Budget(best.total)),
        _ => Ok(best),
    }
}

/// Whether the work is over by a day.
fn ends_before(workload: &Workload, usage: &Usage, day: Date) -> bool {
    const DAY: u128 = 86_400_000;
    let left = u128::try_from(day.days_since(workload.begins)).unwrap_or(0);
    usage.lasts.div_ceil(DAY) <= left
}

/// How a ranked offer came about.
pub(crate) fn usage_of(case: &Case, offer: &Offer, way: Way) -> Option<(Usage, cost::Parts)> {
    let usage = cost::usage(case, offer.priority, way).ok()?;
    let parts = cost::price(case, offer, &usage).ok()?;
    Some((usage, parts))
}

/// The cheapest of all ways, whatever deadline, budget and wishes say.
pub(crate) fn cheapest(case: &Case, offer: &Offer) -> Option<Money> {
    let usages = case.question.ways().iter().filter_map(|way| cost::usage(case, offer.priority, *way).ok());
    let prices = usages.filter_map(|usage| cost::price(case, offer, &usage).ok());
    prices.map(|parts| parts.total()).min()
}
