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

mod availability;
mod catalog;
mod chart;
pub mod codes;
pub mod compare;
mod context;
mod cost;
mod csv;
mod curve;
mod describe;
mod evaluate;
mod feasible;
pub mod format;
mod listing;
mod machine;
mod offer;
mod placement;
mod plan;
mod rank;
mod ratio;
mod reject;
mod relax;
mod report;
mod scan;
mod segments;
mod service;
mod size_report;
mod table;
#[cfg(test)]
mod testing;
mod verdict;
mod workload;
mod workload_text;

pub use availability::Proof;
pub use catalog::Catalog;
pub use chart::{Chart, Series};
pub use csv::csv;
pub use curve::{CostCurve, PerMille};
pub use listing::{DEPLOYABLE, Listed};
pub use offer::{Offer, RegionId, SizeId, SourceId};
pub use placement::{Cost, Part, PartKind, Placement, Rejection, Times};
pub use plan::{Plan, RuleLine, plan};
pub use rank::{Choices, Ranked};
pub use relax::{Relaxation, Relaxed};
pub use report::{PlacementReport, WorkloadReport};
pub use scan::{Breakpoint, CostLine, Scan};
pub use service::ServiceKind;
pub use size_report::{SizeReport, shared_rules};
pub use verdict::{SizeVerdict, Verdicts};
pub use workload::{
    Access, Assumption, Constraints, DataNeeds, DayLoad, GpuNeeds, Image, ImageLayer, LayerCompression,
    MachineNeeds, Management, Priority, Spot, Start, Work, Workload,
};
