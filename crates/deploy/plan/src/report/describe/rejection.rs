//! The text of rejections.

use std::collections::BTreeSet;

use cudock_base::text::format::binary_bytes;

use super::time;
use crate::catalog::offer::{RegionId, SizeId};
use crate::context::{Case, PlanContext};
use crate::cost::Unfit;
use crate::cost::price::Unpriced;
use crate::feasible::{FitRule, SERVICE_RULES, SIZE_RULES};
use crate::plan::availability::region_rejection;
use crate::plan::placement::Rejection;
use crate::plan::reject::{RejectReason, RejectedOffer};
use crate::report::format::{dollars, shortened};
use crate::workload::Priority;

impl RejectedOffer {
    pub(crate) fn describe(&self, context: &PlanContext) -> Rejection {
        let catalog = context.catalog;
        Rejection {
            service: Some(self.service),
            size: self.size.map(|size| catalog.size_name(size).to_owned()),
            region: self.region.map(|region| catalog.region_name(region).to_owned()),
            priority: self.priority,
            code: self.reason.code(),
            reason: self.describe_reason(context),
            distance: self.distance,
        }
    }

    fn describe_reason(&self, context: &PlanContext) -> String {
        // Rules about services do not look at the size, so any will do.
        let size = self.size.unwrap_or(SizeId(0));
        let Some(case) = Case::new(context, self.service, size) else { return String::new() };
        let rule = |rules: &[FitRule], index: u8| {
            rules.get(usize::from(index)).map(|rule| (rule.describe)(&case)).unwrap_or_default()
        };
        match self.reason {
            RejectReason::Service(index) => rule(&SERVICE_RULES, index),
            RejectReason::Size(index) => rule(&SIZE_RULES, index),
            reason => describe(&case, reason),
        }
    }
}

fn describe(case: &Case, reason: RejectReason) -> String {
    let constraints = &case.workload().constraints;
    let (kind, size) = (case.terms.kind.name(), &case.machine.name);
    match reason {
        RejectReason::NoPrice if constraints.regions.is_empty() => "no known price in any region".to_owned(),
        RejectReason::NoPrice => format!("no known price in {}", shortened(&constraints.regions)),
        RejectReason::OtherPriority(Priority::Regular) => "only Spot is allowed".to_owned(),
        RejectReason::OtherPriority(Priority::Spot) => "Spot is not allowed".to_owned(),
        RejectReason::NoEviction => "the workload does not allow Spot eviction (add --spot)".to_owned(),
        RejectReason::NoSpot if !case.terms.kind.has_spot() => format!("{kind} does not offer Spot"),
        RejectReason::NoSpot if case.machine.spot == Some(false) => {
            format!("{size} is not available as Spot")
        }
        RejectReason::NoSpot => "no known Spot price in the allowed regions".to_owned(),
        RejectReason::Unfit(unfit) => describe_unfit(case, unfit),
        RejectReason::Retired(day) => {
            format!("retired on {day}{}", if case.machine.ends_in.is_empty() { "" } else { " there" })
        }
        RejectReason::Ends(day) => format!("retired there on {day}, before the work ends"),
        RejectReason::Unpriced(Unpriced::Egress) => {
            "the price of data that leaves this region is unknown".to_owned()
        }
        RejectReason::Unpriced(Unpriced::Transfer) => {
            "the price of moving the data to this region is unknown".to_owned()
        }
        RejectReason::Budget(total) => {
            let budget = constraints.budget.map(dollars).unwrap_or_default();
            let unit = if case.context.serves() { " a month" } else { "" };
            format!("costs at least {}{unit}, the budget is {budget}", dollars(total))
        }
        RejectReason::NotPublic => format!("not a public region: {}", regions_with(case, reason)),
        RejectReason::RestrictedRegion => {
            let regions = regions_with(case, reason);
            format!("requires an access request (name the region to include it): {regions}")
        }
        RejectReason::NotSold => {
            let sold = case.machine.sold_in.iter().flat_map(|sold| &sold.regions);
            let sold: Vec<&str> = sold.map(|region| case.context.catalog.region_name(*region)).collect();
            format!("available in {} only, not in {}", sold.join(" and "), regions_with(case, reason))
        }
        RejectReason::Service(_) | RejectReason::Size(_) => String::new(),
    }
}

/// The allowed regions of a size that are rejected for a reason.
fn regions_with(case: &Case, reason: RejectReason) -> String {
    let context = case.context;
    let offers = context.catalog.offers_of(case.terms.kind, case.size).iter();
    let regions = offers.map(|offer| offer.region).filter(|region| context.allows(*region));
    let rejected: BTreeSet<RegionId> =
        regions.filter(|region| region_rejection(case, *region) == Some(reason)).collect();
    let names: Vec<&str> = rejected.into_iter().map(|region| context.catalog.region_name(region)).collect();
    shortened(&names)
}

fn describe_unfit(case: &Case, unfit: Unfit) -> String {
    let kind = case.terms.kind.name();
    match unfit {
        Unfit::OutOfRange => {
            "exceeds the supported range: it takes more than 1000 years or reads too much".to_owned()
        }
        Unfit::ZeroSpeed => "never ends at a speed of 0".to_owned(),
        Unfit::LocalDisk => {
            let data = case.workload().data.as_ref().map_or(0, |data| data.bytes);
            format!(
                "{} of local disk, {} of data to copy",
                binary_bytes(case.machine.local_disk),
                binary_bytes(data)
            )
        }
        Unfit::Evictions => {
            "evictions make it take more than ten times as long: checkpoint more often, or do not use Spot"
                .to_owned()
        }
        Unfit::Deadline(takes) => {
            let deadline = case.workload().constraints.deadline.map(|deadline| time(deadline.as_millis()));
            format!("takes {}, the deadline is {}", time(takes), deadline.unwrap_or_default())
        }
        Unfit::Lifetime { takes, most } => {
            format!("takes {}, {kind} ends a job after {}", time(takes), time(most))
        }
        Unfit::Instances { needs, most } if most == u64::from(u32::MAX) => {
            format!("needs {needs} instances, which exceeds the supported range")
        }
        Unfit::Instances { needs, most } => format!("needs {needs} instances, {kind} allows at most {most}"),
    }
}
