//! Why something is not among the placements. Kept as figures; the words are made when somebody reads them.

use cudock_facts::version::Date;

use crate::codes;
use crate::cost::Unfit;
use crate::cost::price::Unpriced;
use crate::feasible::{Rule, SERVICE_RULES, SIZE_RULES};
use crate::money::Money;
use crate::offer::{RegionId, SizeId};
use crate::placement::Rejection;
use crate::question::{Case, Question};
use crate::service::ServiceKind;
use crate::words;
use crate::workload::Priority;

/// A rejection without words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) service: ServiceKind,
    pub(crate) size: Option<SizeId>,
    pub(crate) region: Option<RegionId>,
    pub(crate) priority: Option<Priority>,
    pub(crate) why: Why,
    pub(crate) distance: u64,
}

/// The reason of a rejection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Why {
    /// A rule of the service, by its place.
    Service(u8),
    /// A rule of the size, by its place.
    Size(u8),
    /// No price in the regions allowed.
    NoPrice,
    /// Another priority is wanted.
    Unwanted(Priority),
    /// The work does not bear eviction.
    NotBorne,
    /// Spot is wanted and not to be had.
    NoSpot,
    /// It does not work out at this priority.
    Unfit(Unfit),
    /// The region is not on the list of public ones.
    NotPublic,
    /// The region gives access on request, and the workload does not name it.
    RestrictedRegion,
    /// Other regions have the size, this one does not.
    NotSold,
    /// It is gone before the work begins.
    Retired(Date),
    /// It goes there before the work ends.
    Ends(Date),
    /// A price that only this workload needs is not known there.
    Unpriced(Unpriced),
    /// Over the budget.
    Budget(Money),
}

impl Why {
    /// What makes reasons the same, figures left aside.
    pub(crate) fn code(self) -> &'static str {
        match self {
            Self::Service(place) => code(&SERVICE_RULES, place),
            Self::Size(place) => code(&SIZE_RULES, place),
            Self::NoPrice | Self::Unpriced(_) => codes::NO_PRICE,
            Self::Unwanted(_) | Self::NotBorne => codes::NOT_WANTED,
            Self::NoSpot => codes::SPOT_SAVES_NOTHING,
            Self::Unfit(Unfit::Never | Unfit::Beyond | Unfit::Lifetime { .. } | Unfit::Instances { .. }) => {
                codes::SERVICE_LIMIT
            }
            Self::Unfit(Unfit::Space) => codes::MACHINE_TOO_SMALL,
            Self::Unfit(Unfit::Evictions) => codes::EVICTIONS,
            Self::Unfit(Unfit::Deadline(_)) => codes::MISSES_DEADLINE,
            Self::Retired(_) => codes::SIZE_RETIRED,
            Self::NotPublic | Self::NotSold => codes::NOT_IN_REGION,
            Self::RestrictedRegion => codes::RESTRICTED_REGION,
            Self::Ends(_) => codes::ENDS_TOO_SOON,
            Self::Budget(_) => codes::OVER_BUDGET,
        }
    }

    /// Whether it is the same for every region it is about, so that one rejection tells of all.
    pub(crate) const fn is_of_regions(self) -> bool {
        matches!(self, Self::NotPublic | Self::RestrictedRegion | Self::NotSold)
    }

    /// How far such a one is from fitting. What is only too dear or too slow is nearer than what misses a need.
    pub(crate) fn distance(self, question: &Question) -> u64 {
        let wishes = &question.workload.wishes;
        let over = |has: u128, most: u128| {
            let gap = has.saturating_sub(most).saturating_mul(1000) / most.max(1);
            u64::try_from(gap).unwrap_or(u64::MAX).clamp(1, 400_000)
        };
        match self {
            Self::Budget(total) => over(total.nanos(), wishes.budget.map_or(1, Money::nanos)),
            Self::Unfit(Unfit::Deadline(takes)) => {
                over(takes, wishes.deadline.map_or(1, |deadline| deadline.as_millis()))
            }
            Self::Unfit(Unfit::Lifetime { takes, most }) => over(takes, most),
            Self::Unfit(Unfit::Instances { needs, most }) => over(needs, u128::from(most)),
            Self::Unfit(_) => 500_000,
            _ => 1_500_000,
        }
    }
}

fn code(rules: &[Rule], place: u8) -> &'static str {
    rules.get(usize::from(place)).map_or(codes::UNDOCUMENTED_SIZE, |rule| rule.code)
}

impl Refusal {
    /// With words.
    pub(crate) fn told(&self, question: &Question) -> Rejection {
        let catalog = question.catalog;
        Rejection {
            service: Some(self.service),
            size: self.size.map(|size| catalog.size_name(size).to_owned()),
            region: self.region.map(|region| catalog.region_name(region).to_owned()),
            priority: self.priority,
            code: self.why.code(),
            reason: self.reason(question),
            distance: self.distance,
        }
    }

    fn reason(&self, question: &Question) -> String {
        // A rule of a service looks at no size: any stands in.
        let size = self.size.unwrap_or(SizeId(0));
        let Some(case) = Case::new(question, self.service, size) else { return String::new() };
        let rule = |rules: &[Rule], place: u8| {
            rules.get(usize::from(place)).map(|rule| (rule.words)(&case)).unwrap_or_default()
        };
        match self.why {
            Why::Service(place) => rule(&SERVICE_RULES, place),
            Why::Size(place) => rule(&SIZE_RULES, place),
            why => words::refusal(&case, why),
        }
    }
}
