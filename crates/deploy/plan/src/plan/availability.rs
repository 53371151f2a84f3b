//! Whether an offer can be ordered in a region, and the evidence for it.

use crate::catalog::availability::{Proof, RegionStatus};
use crate::catalog::offer::RegionId;
use crate::context::Case;
use crate::plan::reject::RejectReason;

pub(crate) fn region_rejection(case: &Case, region: RegionId) -> Option<RejectReason> {
    match case.context.catalog.status(region) {
        RegionStatus::NotPublic => return Some(RejectReason::NotPublic),
        RegionStatus::Restricted if case.workload().constraints.regions.is_empty() => {
            return Some(RejectReason::RestrictedRegion);
        }
        _ => {}
    }
    let sold = case.machine.sold_in.as_ref().filter(|sold| sold.complete)?;
    (!sold.regions.contains(&region)).then_some(RejectReason::NotSold)
}

/// The evidence that the service has the size in a region that is not rejected.
pub(crate) fn proof(case: &Case, region: RegionId) -> Proof {
    let service = case.series_support().unwrap_or(Proof::NotListed);
    let elsewhere = case.machine.sold_in.as_ref().is_some_and(|sold| !sold.regions.contains(&region));
    let here = match case.context.catalog.status(region) {
        RegionStatus::Unknown | RegionStatus::NotPublic => Proof::NotListed,
        _ if elsewhere => Proof::NotListed,
        RegionStatus::Restricted => Proof::Restricted,
        RegionStatus::Open => Proof::Documented,
    };
    service.max(here)
}
