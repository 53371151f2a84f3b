//! The fixed catalog the scenarios are counted on, and helpers to inspect a plan.

pub(crate) mod arbitrary;
pub(crate) mod workloads;

use cudock_facts::services::AzureOffering;
use std::path::Path;
use std::sync::OnceLock;

use cudock_base::Usd;
use cudock_facts::Facts;
use cudock_plan::{
    Catalog, CostCurve, PartKind, Placement, Plan, Priority, Rejection, Verdicts, Workload, plan,
};

/// Nothing is known about the image.
pub(crate) fn no_verdicts() -> &'static Verdicts {
    static NONE: OnceLock<Verdicts> = OnceLock::new();
    NONE.get_or_init(Verdicts::default)
}

/// Twenty sizes in five regions at their prices of 2026-11-14: `tests/facts` over the embedded tables. A
/// refreshed price must not move the sums that were counted by hand.
pub(crate) fn fixed() -> &'static (Facts, Catalog) {
    static FIXED: OnceLock<(Facts, Catalog)> = OnceLock::new();
    FIXED.get_or_init(|| {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/facts");
        let facts = Facts::with_overlay(&directory).unwrap_or_else(|error| panic!("{error}"));
        let catalog = Catalog::of(&facts);
        (facts, catalog)
    })
}

/// The tables the program carries.
pub(crate) fn embedded() -> &'static (Facts, Catalog) {
    static EMBEDDED: OnceLock<(Facts, Catalog)> = OnceLock::new();
    EMBEDDED.get_or_init(|| {
        let facts = Facts::embedded();
        let catalog = Catalog::of(&facts);
        (facts, catalog)
    })
}

/// The cost of offers of a workload at other scales.
pub(crate) fn curve_of<'a>(catalog: &'a Catalog, facts: &'a Facts, workload: &'a Workload) -> CostCurve<'a> {
    CostCurve { catalog, facts, workload, verdicts: no_verdicts() }
}

/// A plan on the fixed catalog.
pub(crate) fn fixed_plan(workload: &Workload) -> Plan<'_> {
    let (facts, catalog) = fixed();
    plan(catalog, facts, workload, no_verdicts())
}

/// A plan on the tables the program carries.
pub(crate) fn embedded_plan(workload: &Workload) -> Plan<'_> {
    let (facts, catalog) = embedded();
    plan(catalog, facts, workload, no_verdicts())
}

/// An amount in dollars and billionths: `usd(17_696, 123_456_789)`.
pub(crate) const fn usd(dollars: u128, nanos: u128) -> Usd {
    Usd::from_nanos(dollars * 1_000_000_000 + nanos)
}

/// The cheapest placement there is.
pub(crate) fn first(plan: &Plan<'_>) -> Placement {
    plan.placement(plan.ranked().first().expect("something fits"))
}

/// The cheapest placement of a size on a service.
pub(crate) fn of(plan: &Plan<'_>, service: AzureOffering, size: &str) -> Placement {
    at(plan, service, size, Priority::Regular)
}

/// The cheapest placement of a size on a service at a priority.
pub(crate) fn at(plan: &Plan<'_>, service: AzureOffering, size: &str, priority: Priority) -> Placement {
    let found = plan.find(service, size, None, Some(priority));
    plan.placement(found.unwrap_or_else(|| panic!("{size} on {service:?} does not fit")))
}

/// A placement in short: service, size, region.
pub(crate) fn named(placement: &Placement) -> (AzureOffering, &str, &str) {
    (placement.service, &placement.size, &placement.region)
}

/// The kinds and amounts of a cost, which must be the whole of it.
pub(crate) fn parts(placement: &Placement) -> Vec<(PartKind, Usd)> {
    let parts: Vec<_> = placement.cost.parts.iter().map(|part| (part.kind, part.money)).collect();
    assert_eq!(parts.iter().map(|(_, money)| *money).sum::<Usd>(), placement.cost.total);
    parts
}

/// The codes of a placement's warnings.
pub(crate) fn warned(placement: &Placement) -> Vec<&str> {
    placement.warnings.iter().map(|finding| finding.code).collect()
}

/// The rejections of a size on a service.
pub(crate) fn rejections<'p>(plan: &'p Plan<'_>, service: AzureOffering, size: &str) -> Vec<&'p Rejection> {
    let of = |rejection: &&Rejection| {
        rejection.service == Some(service) && rejection.size.as_deref() == Some(size)
    };
    plan.rejected().iter().filter(of).collect()
}

/// The code of the one rejection of a size on a service.
pub(crate) fn code(plan: &Plan<'_>, service: AzureOffering, size: &str) -> &'static str {
    match rejections(plan, service, size)[..] {
        [only] => only.code,
        ref several => panic!("{size} on {service:?}: {several:?}"),
    }
}
