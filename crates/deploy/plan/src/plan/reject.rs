//! Reasons for rejections, kept as figures; the text is produced on demand by [`crate::report::describe`].

use cudock_base::Usd;
use cudock_facts::version::Date;

use crate::catalog::offer::{RegionId, SizeId};
use crate::codes;
use crate::context::PlanContext;
use crate::cost::price::Unpriced;
use crate::cost::usage::Unfit;
use crate::feasible::{FitRule, SERVICE_RULES, SIZE_RULES};
use crate::workload::Priority;
use cudock_facts::services::AzureOffering;

/// A rejection without its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RejectedOffer {
    pub(crate) service: AzureOffering,
    pub(crate) size: Option<SizeId>,
    pub(crate) region: Option<RegionId>,
    pub(crate) priority: Option<Priority>,
    pub(crate) reason: RejectReason,
    pub(crate) distance: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RejectReason {
    /// A rule about the service, by its index.
    Service(u8),
    /// A rule about the size, by its index.
    Size(u8),
    NoPrice,
    OtherPriority(Priority),
    NoEviction,
    NoSpot,
    Unfit(Unfit),
    NotPublic,
    /// The region requires an access request, and the workload does not name it.
    RestrictedRegion,
    /// The size is sold in other regions only.
    NotSold,
    /// It is retired before the work begins.
    Retired(Date),
    /// It is retired in the region before the work ends.
    Ends(Date),
    /// A price that only this workload needs is unknown there.
    Unpriced(Unpriced),
    Budget(Usd),
}

impl RejectReason {
    /// The code, which is the same for reasons that differ in their figures only.
    pub(crate) fn code(self) -> &'static str {
        match self {
            Self::Service(index) => code(&SERVICE_RULES, index),
            Self::Size(index) => code(&SIZE_RULES, index),
            Self::NoPrice | Self::Unpriced(_) => codes::NO_PRICE,
            Self::OtherPriority(_) | Self::NoEviction => codes::NOT_WANTED,
            Self::NoSpot => codes::SPOT_SAVES_NOTHING,
            Self::Unfit(
                Unfit::ZeroSpeed | Unfit::OutOfRange | Unfit::Lifetime { .. } | Unfit::Instances { .. },
            ) => codes::SERVICE_LIMIT,
            Self::Unfit(Unfit::LocalDisk) => codes::MACHINE_TOO_SMALL,
            Self::Unfit(Unfit::Evictions) => codes::EVICTIONS,
            Self::Unfit(Unfit::Deadline(_)) => codes::MISSES_DEADLINE,
            Self::Retired(_) => codes::SIZE_RETIRED,
            Self::NotPublic | Self::NotSold => codes::NOT_IN_REGION,
            Self::RestrictedRegion => codes::RESTRICTED_REGION,
            Self::Ends(_) => codes::ENDS_TOO_SOON,
            Self::Budget(_) => codes::OVER_BUDGET,
        }
    }

    /// Whether one rejection can stand for all regions with this reason.
    pub(crate) const fn is_of_regions(self) -> bool {
        matches!(self, Self::NotPublic | Self::RestrictedRegion | Self::NotSold)
    }

    /// How far the offer is from fitting. Offers that are only too expensive or too slow are nearer than those that miss a
    /// need.
    pub(crate) fn distance(self, context: &PlanContext) -> u64 {
        let constraints = &context.workload.constraints;
        let over = |has: u128, most: u128| {
            let gap = has.saturating_sub(most).saturating_mul(1000) / most.max(1);
            u64::try_from(gap).unwrap_or(u64::MAX).clamp(1, 400_000)
        };
        match self {
            Self::Budget(total) => over(total.nanos(), constraints.budget.map_or(1, Usd::nanos)),
            Self::Unfit(Unfit::Deadline(takes)) => {
                over(takes, constraints.deadline.map_or(1, |deadline| deadline.as_millis()))
            }
            Self::Unfit(Unfit::Lifetime { takes, most }) => over(takes, most),
            Self::Unfit(Unfit::Instances { needs, most }) => over(needs, u128::from(most)),
            Self::Unfit(_) => 500_000,
            _ => 1_500_000,
        }
    }
}

fn code(rules: &[FitRule], index: u8) -> &'static str {
    rules.get(usize::from(index)).map_or(codes::UNDOCUMENTED_SIZE, |rule| rule.code)
}
