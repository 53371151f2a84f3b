//! How well the tables prove that a service has a size in a region.
//!
//! A price proves nothing: meters outlive sizes and precede them. What a page says about the service, the region and the
//! series decides; what no page names is kept apart from what is proven, never before it.

use cudock_facts::Facts;
use cudock_facts::tables::{Support, SupportValue};
use serde::Serialize;

use crate::offer::RegionId;
use crate::question::Case;
use crate::refusal::Why;
use crate::service::ServiceKind;

/// What proves that an offer can be ordered, the best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Proof {
    /// A page names the size for the service.
    Documented,
    /// It is known to have run, or a page names it for a sibling of the service.
    Indirect,
    /// As one of the two, in a region that gives access on request and that the workload names.
    Restricted,
    /// No source names it.
    NotListed,
}

/// What the tables know of a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RegionStatus {
    /// On the list of public regions.
    Open,
    /// On the list, with access on request.
    Restricted,
    /// Known, and not on the list.
    NotPublic,
    /// Not in the table.
    Unknown,
}

/// The regions of a series that only some have.
#[derive(Debug, Clone)]
pub(crate) struct SoldIn {
    pub(crate) regions: Vec<RegionId>,
    /// Whether no other region has it.
    complete: bool,
}

/// What a service makes of the sizes of a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    Proven(Proof),
    Refused,
}

impl RegionStatus {
    pub(crate) fn of(facts: &Facts, region: &str) -> Self {
        match facts.services().region(region) {
            None => Self::Unknown,
            Some(row) if !row.listed => Self::NotPublic,
            Some(row) if row.restricted => Self::Restricted,
            Some(_) => Self::Open,
        }
    }
}

impl SoldIn {
    pub(crate) fn of(facts: &Facts, series: &str, region: impl Fn(&str) -> Option<RegionId>) -> Option<Self> {
        let row = facts.services().regions_of_series(series)?;
        let regions = row.regions.iter().filter_map(|name| region(name)).collect();
        Some(Self { regions, complete: row.complete })
    }
}

/// What each service makes of a series, by [`ServiceKind::place`].
pub(crate) fn standings(facts: &Facts, series: Option<&str>) -> [Standing; 9] {
    ServiceKind::ALL.map(|kind| {
        let row = series.and_then(|series| facts.services().support_of(kind.id(), series));
        match row.map(|row| (row.value, row.inferred)) {
            Some((SupportValue::Documented, false)) => Standing::Proven(Proof::Documented),
            Some((SupportValue::Documented, true) | (SupportValue::InUse, _)) => {
                Standing::Proven(Proof::Indirect)
            }
            Some((SupportValue::Refused, _)) => Standing::Refused,
            Some((SupportValue::NotListed, _)) | None => Standing::Proven(Proof::NotListed),
        }
    })
}

/// Why a region is out for a size, whatever the service.
pub(crate) fn barred(case: &Case, region: RegionId) -> Option<Why> {
    match case.question.catalog.status(region) {
        RegionStatus::NotPublic => return Some(Why::NotPublic),
        RegionStatus::Restricted if case.workload().wishes.regions.is_empty() => {
            return Some(Why::RestrictedRegion);
        }
        _ => {}
    }
    let sold = case.machine.sold_in.as_ref().filter(|sold| sold.complete)?;
    (!sold.regions.contains(&region)).then_some(Why::NotSold)
}

/// What proves that the service has the size in a region that is not barred.
pub(crate) fn proof(case: &Case, region: RegionId) -> Proof {
    let service = match case.standing() {
        Standing::Proven(proof) => proof,
        Standing::Refused => Proof::NotListed,
    };
    let elsewhere = case.machine.sold_in.as_ref().is_some_and(|sold| !sold.regions.contains(&region));
    let place = match case.question.catalog.status(region) {
        RegionStatus::Unknown | RegionStatus::NotPublic => Proof::NotListed,
        _ if elsewhere => Proof::NotListed,
        RegionStatus::Restricted => Proof::Restricted,
        RegionStatus::Open => Proof::Documented,
    };
    service.max(place)
}

impl<'a> Case<'_, 'a> {
    /// What the service makes of the size.
    pub(crate) fn standing(&self) -> Standing {
        // A workload profile is an offer of its service by itself.
        if self.machine.profile.is_some() {
            return Standing::Proven(Proof::Documented);
        }
        let known = self.machine.standings.get(usize::from(self.terms.kind.place()));
        known.copied().unwrap_or(Standing::Proven(Proof::NotListed))
    }

    /// The row about the series on the service.
    pub(crate) fn support(&self) -> Option<&'a Support> {
        let series = self.machine.series.as_deref()?;
        self.question.facts.services().support_of(self.terms.kind.id(), series)
    }
}
