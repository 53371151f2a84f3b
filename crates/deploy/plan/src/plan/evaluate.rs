//! Evaluates every offer: it is either ranked with its cost, or rejected with a reason.

use cudock_base::Usd;
use cudock_facts::version::Date;

use crate::catalog::belongs;
use crate::catalog::offer::{Offer, RegionId, SizeId};
use crate::context::{Case, PlanContext, ReadMode};
use crate::cost::{self, Usage};
use crate::feasible::{SERVICE_RULES, SIZE_RULES, judge};
use crate::plan::availability::{proof, region_rejection};
use crate::plan::rank::Ranked;
use crate::plan::reject::{RejectReason, RejectedOffer};
use crate::workload::{Priority, Workload};
use cudock_facts::services::AzureOffering;

pub(crate) struct Evaluator<'q, 'a> {
    pub(crate) context: &'q PlanContext<'a>,
    pub(crate) ranked: Vec<Ranked>,
    pub(crate) rejected: Vec<RejectedOffer>,
}

impl Evaluator<'_, '_> {
    pub(crate) fn evaluate_service(&mut self, service: AzureOffering) {
        let Some(any) = Case::new(self.context, service, SizeId(0)) else { return };
        if let Some((rule, distance)) = judge(&SERVICE_RULES, &any) {
            let reason = RejectReason::Service(rule);
            let (size, region, priority) = (None, None, None);
            self.rejected.push(RejectedOffer { service, size, region, priority, reason, distance });
            return;
        }
        for size in self.context.catalog.sizes() {
            if self.context.catalog.machine(size).is_some_and(|machine| belongs(machine, service)) {
                self.evaluate_size(service, size);
            }
        }
    }

    fn evaluate_size(&mut self, service: AzureOffering, size: SizeId) {
        let Some(case) = Case::new(self.context, service, size) else { return };
        if let Some((rule, distance)) = judge(&SIZE_RULES, &case) {
            self.reject_at(&case, None, None, RejectReason::Size(rule), distance);
            return;
        }
        let offers = self.context.catalog.offers_of(service, size).iter().copied();
        let allowed: Vec<Offer> = offers.filter(|offer| self.context.allows(offer.region)).collect();
        if allowed.is_empty() {
            self.reject(&case, None, None, RejectReason::NoPrice);
            return;
        }
        let begins = case.workload().begins;
        let end = |offer: &Offer| case.machine.ends_on(offer.region).filter(|day| *day <= begins);
        let mut rejected: Vec<(RegionId, RejectReason)> = Vec::new();
        let mut available: Vec<Offer> = Vec::with_capacity(allowed.len());
        for offer in allowed {
            match end(&offer).map(RejectReason::Retired).or_else(|| region_rejection(&case, offer.region)) {
                Some(reason) => rejected.push((offer.region, reason)),
                None => available.push(offer),
            }
        }
        rejected.sort_unstable_by_key(|(region, _)| *region);
        rejected.dedup_by_key(|(region, _)| *region);
        self.reject_regions(&case, None, &rejected, available.is_empty());
        let (regular, spot): (Vec<Offer>, Vec<Offer>) =
            available.into_iter().partition(|offer| offer.priority == Priority::Regular);
        let both = !regular.is_empty() && !spot.is_empty();
        for (priority, offers) in [(Priority::Regular, regular), (Priority::Spot, spot)] {
            self.evaluate_offers(&case, priority, &offers, both.then_some(priority));
        }
    }

    /// Evaluates the offers of a size on a service at one priority, in the allowed regions.
    fn evaluate_offers(
        &mut self,
        case: &Case,
        priority: Priority,
        offers: &[Offer],
        named: Option<Priority>,
    ) {
        let constraints = &case.workload().constraints;
        let allowed = constraints.priority.is_none_or(|allowed| allowed == priority);
        let spot = priority == Priority::Spot;
        let rejection = match (offers.is_empty(), allowed) {
            (true, true) if spot && constraints.priority.is_some() => Some(RejectReason::NoSpot),
            (true, _) => return,
            (false, false) => Some(RejectReason::OtherPriority(priority)),
            (false, true) if spot && case.workload().spot.is_none() => Some(RejectReason::NoEviction),
            (false, true) => None,
        };
        if let Some(reason) = rejection {
            self.reject(case, None, named, reason);
            return;
        }
        let usages = case.context.read_modes().iter().map(|mode| cost::usage(case, priority, *mode));
        let (fit, unfit): (Vec<_>, Vec<_>) = usages.partition(Result::is_ok);
        let usages: Vec<Usage> = fit.into_iter().flatten().collect();
        if let (true, Some(Err(unfit))) = (usages.is_empty(), unfit.into_iter().next()) {
            self.reject(case, None, named, RejectReason::Unfit(unfit));
            return;
        }
        let mut rejected: Vec<(RegionId, RejectReason)> = Vec::new();
        let before = self.ranked.len();
        for offer in offers {
            match best(case, offer, &usages) {
                Ok(ranked) => self.ranked.push(ranked),
                Err(reason) => rejected.push((offer.region, reason)),
            }
        }
        // If some regions are rejected for the day the size is retired there, name the region of every rejection.
        let nowhere = self.ranked.len() == before && case.machine.ends_in.is_empty();
        self.reject_regions(case, named, &rejected, nowhere);
    }

    /// Adds one rejection for all regions if none is left and all have the same reason, or else one for each.
    fn reject_regions(
        &mut self,
        case: &Case,
        named: Option<Priority>,
        rejected: &[(RegionId, RejectReason)],
        nowhere: bool,
    ) {
        let distances = rejected.iter().map(|(_, reason)| (reason.distance(self.context), *reason));
        let Some((distance, nearest)) = distances.min_by_key(|(distance, _)| *distance) else { return };
        if nowhere && rejected.iter().all(|(_, reason)| reason.code() == nearest.code()) {
            self.reject_at(case, None, named, nearest, distance);
            return;
        }
        for (index, (region, reason)) in rejected.iter().enumerate() {
            let alike = |other: &(RegionId, RejectReason)| reason.is_of_regions() && other.1 == *reason;
            if rejected.iter().take(index).any(alike) {
                continue;
            }
            let only = !rejected.iter().skip(index + 1).any(alike);
            self.reject(case, only.then_some(*region), named, *reason);
        }
    }

    fn reject(
        &mut self,
        case: &Case,
        region: Option<RegionId>,
        priority: Option<Priority>,
        reason: RejectReason,
    ) {
        self.reject_at(case, region, priority, reason, reason.distance(self.context));
    }

    fn reject_at(
        &mut self,
        case: &Case,
        region: Option<RegionId>,
        priority: Option<Priority>,
        reason: RejectReason,
        distance: u64,
    ) {
        let (service, size) = (case.terms.kind, Some(case.size));
        self.rejected.push(RejectedOffer { service, size, region, priority, reason, distance });
    }
}

/// The cheapest read mode of an offer, or the reason why there is none.
fn best(case: &Case, offer: &Offer, usages: &[Usage]) -> Result<Ranked, RejectReason> {
    let workload = case.workload();
    let ends = case.machine.ends_on(offer.region);
    let lasting = |usage: &&Usage| ends.is_none_or(|day| ends_before(workload, usage, day));
    let mut best: Option<Ranked> = None;
    let mut unpriced = None;
    for usage in usages.iter().filter(lasting) {
        match cost::price(case, offer, usage) {
            Ok(parts) => {
                let (total, time, mode) = (parts.total(), usage.time(), usage.mode);
                if best.is_none_or(|best| (total, time) < (best.total, best.time)) {
                    let (proof, uncertainty) = (proof(case, offer.region), parts.uncertainty());
                    let (tied, group) = (false, 0);
                    best = Some(Ranked { offer: *offer, total, time, proof, uncertainty, tied, group, mode });
                }
            }
            Err(missing) => unpriced = Some(RejectReason::Unpriced(missing)),
        }
    }
    let Some(best) = best else {
        return Err(unpriced.or(ends.map(RejectReason::Ends)).unwrap_or(RejectReason::NoPrice));
    };
    match workload.constraints.budget {
        Some(budget) if best.total > budget => Err(RejectReason::Budget(best.total)),
        _ => Ok(best),
    }
}

fn ends_before(workload: &Workload, usage: &Usage, day: Date) -> bool {
    const DAY: u128 = 86_400_000;
    let left = u128::try_from(day.days_since(workload.begins)).unwrap_or(0);
    usage.lasts.div_ceil(DAY) <= left
}

pub(crate) fn usage_of(case: &Case, offer: &Offer, mode: ReadMode) -> Option<(Usage, cost::Parts)> {
    let usage = cost::usage(case, offer.priority, mode).ok()?;
    let parts = cost::price(case, offer, &usage).ok()?;
    Some((usage, parts))
}

/// The lowest cost of an offer, ignoring deadline, budget and other constraints.
pub(crate) fn cheapest(case: &Case, offer: &Offer) -> Option<Usd> {
    let usages =
        case.context.read_modes().iter().filter_map(|mode| cost::usage(case, offer.priority, *mode).ok());
    let prices = usages.filter_map(|usage| cost::price(case, offer, &usage).ok());
    prices.map(|parts| parts.total()).min()
}
