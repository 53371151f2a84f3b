//! How well documented it is that a service has a size in a region.
//!
//! A price proves nothing: meters exist before and after the size does. The statements of Azure's
//! pages about the service, the region and the series decide; offers that no page names are listed
//! separately, after those that are documented.

use cudock_facts::Facts;
use cudock_facts::tables::SupportValue;
use schemars::JsonSchema;
use serde::Serialize;

use crate::catalog::offer::RegionId;
use cudock_facts::services::AzureOffering;

/// The evidence that an offer can be ordered, the best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Proof {
    /// A page names the size for the service.
    Documented,
    /// It is known to have run, or a page names it for a related service.
    Indirect,
    /// One of the above, in a region with access on request that the workload names.
    Restricted,
    NotListed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RegionStatus {
    Open,
    /// Listed, with access on request.
    Restricted,
    /// Known, and not on the list.
    NotPublic,
    Unknown,
}

/// The regions of a series that is not sold everywhere.
#[derive(Debug, Clone)]
pub(crate) struct SeriesRegions {
    pub(crate) regions: Vec<RegionId>,
    /// Whether no other region has it.
    pub(crate) complete: bool,
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

impl SeriesRegions {
    pub(crate) fn of(facts: &Facts, series: &str, region: impl Fn(&str) -> Option<RegionId>) -> Option<Self> {
        let row = facts.services().regions_of_series(series)?;
        let regions = row.regions.iter().filter_map(|name| region(name)).collect();
        Some(Self { regions, complete: row.complete })
    }
}

/// How each service supports a series, by [`AzureOffering::index`]; none if it does not.
pub(crate) fn series_support(facts: &Facts, series: Option<&str>) -> [Option<Proof>; 9] {
    AzureOffering::ALL.map(|kind| {
        let row = series.and_then(|series| facts.services().support_of(kind.id(), series));
        match row.map(|row| (row.value, row.inferred)) {
            Some((SupportValue::Documented, false)) => Some(Proof::Documented),
            Some((SupportValue::Documented, true) | (SupportValue::InUse, _)) => Some(Proof::Indirect),
            Some((SupportValue::Refused, _)) => None,
            Some((SupportValue::NotListed, _)) | None => Some(Proof::NotListed),
        }
    })
}
