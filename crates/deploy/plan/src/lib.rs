//! Ranks the offers of Azure for a workload by cost, and gives a reason for each rejection.
//!
//! A [`Workload`] describes the work and its needs. A [`Catalog`] holds the offers: every service, size, region and
//! priority in the tables. [`plan`] rejects the offers that do not fit, prices the others part by part and ranks them. All
//! of it is plain data and pure functions: the same input and tables give the same result.
//!
//! Money is counted in whole billionths of a dollar. Machine time is rounded up once and then split; every other
//! part is rounded up once; sums are exact.
//!
//! ```
//! use std::time::Duration;
//!
//! use cudock_facts::{Facts, version::Date};
//! use cudock_plan::{Catalog, Constraints, GpuNeeds, MachineNeeds, Start, Verdicts, Work, Workload, plan};
//!
//! let facts = Facts::embedded();
//! let catalog = Catalog::of(&facts);
//! let workload = Workload {
//!     work: Work::Job { duration: Duration::from_secs(40 * 60) },
//!     gpu: GpuNeeds {
//!         memory: 14_000_000_000,
//!         per_instance: 1,
//!         instances: 1,
//!         models: vec!["T4".into()],
//!         measured_on: Some("T4".into()),
//!         ..GpuNeeds::default()
//!     },
//!     machine: MachineNeeds::default(),
//!     data: None,
//!     start: Start::default(),
//!     spot: None,
//!     constraints: Constraints { regions: vec!["westeurope".into()], ..Constraints::default() },
//!     begins: Date::new(2026, 11, 15).unwrap(),
//!     assumptions: Vec::new(),
//! };
//! let verdicts = Verdicts::default();
//! let plan = plan(&catalog, &facts, &workload, &verdicts);
//! let cheapest = plan.placement(&plan.ranked()[0]);
//! assert_eq!(cheapest.size, "Standard_NC4as_T4_v3");
//! assert_eq!(cheapest.cost.total, cheapest.cost.parts.iter().map(|part| part.money).sum());
//! assert!(plan.rejected().iter().all(|rejection| !rejection.reason.is_empty()));
//! ```

mod catalog;
mod chart;
pub mod codes;
mod context;
mod cost;
mod curve;
mod feasible;
mod plan;
mod ratio;
pub mod report;
#[cfg(test)]
mod testing;
mod verdict;
mod workload;

pub use catalog::Catalog;
pub use catalog::availability::Proof;
pub use catalog::offer::{Offer, RegionId, SizeId, SourceId};
pub use chart::{Chart, Series};
pub use curve::line::CostLine;
pub use curve::scan::{Breakpoint, Scan};
pub use curve::{CostCurve, PerMille};
pub use plan::placement::{Cost, Part, PartKind, Placement, Rejection, Times};
pub use plan::rank::{Choices, Ranked};
pub use plan::relax::{Relaxation, Relaxed};
pub use plan::{Plan, RuleLine, plan};
pub use report::csv::csv;
pub use report::listing::{DEPLOYABLE, Listed};
pub use report::size_report::{SizeReport, shared_rules};
pub use report::{PlacementReport, WorkloadReport};
pub use verdict::{SizeVerdict, Verdicts};
pub use workload::{
    Assumption, Constraints, DataNeeds, DayLoad, GpuNeeds, Image, ImageLayer, MachineNeeds, Priority, Spot,
    Start, Work, Workload,
};
