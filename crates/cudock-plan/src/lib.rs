//! From a workload to the places it could run, with their cost and the reasons.
//!
//! A [`Workload`] says what is to be done and what it needs. A [`Catalog`] holds what is on offer: every service, size,
//! region and priority the tables know. [`plan`] drops the offers that cannot hold the workload, each with its reason,
//! prices the rest part by part and ranks them. All three are plain data and pure functions: the same input gives the
//! same answer, today and in a year, but for the tables.
//!
//! Money is counted in whole billionths of a dollar. Time of machines is rounded up once and then split; every
//! other part is rounded up once; sums are exact.
//!
//! ```
//! use std::time::Duration;
//!
//! use cudock_facts::{Facts, version::Date};
//! use cudock_plan::{Catalog, GpuNeeds, MachineNeeds, Start, Verdicts, Wishes, Work, Workload, plan};
//!
//! let facts = Facts::embedded();
//! let catalog = Catalog::of(&facts);
//! let workload = Workload {
//!     work: Work::Job { duration: Duration::from_secs(40 * 60) },
//!     gpu: GpuNeeds {
//!         memory: 14_000_000_000,
//!         per_instance: 1,
//!         instances: 1,
//!         least_capability: None,
//!         greatest_capability: None,
//!         models: vec!["T4".into()],
//!         nvlink: false,
//!         infiniband: false,
//!         measured_on: Some("T4".into()),
//!         speeds: Default::default(),
//!     },
//!     machine: MachineNeeds::default(),
//!     data: None,
//!     start: Start::default(),
//!     spot: None,
//!     wishes: Wishes { regions: vec!["westeurope".into()], ..Wishes::default() },
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
mod cost;
mod curve;
mod feasible;
pub mod format;
mod listing;
mod machine;
mod money;
mod offer;
mod placement;
mod plan;
mod question;
mod rank;
mod ratio;
mod refusal;
mod relax;
mod scan;
mod segments;
mod service;
mod sift;
mod size_answers;
mod tell;
#[cfg(test)]
mod testing;
mod verdict;
mod words;
mod workload;

pub use availability::Proof;
pub use catalog::Catalog;
pub use chart::{Chart, Series};
pub use curve::{PerMille, crossover, curve};
pub use listing::Listed;
pub use money::{Money, Rate};
pub use offer::{Offer, RegionId, SizeId, SourceId};
pub use placement::{Cost, Part, PartKind, Placement, Rejection, Times};
pub use plan::{Plan, RuleLine, plan};
pub use rank::{Choices, Ranked};
pub use relax::{Concession, Relaxed, relaxed};
pub use scan::{Breakpoint, CostLine, Scan};
pub use service::ServiceKind;
pub use size_answers::{SizeAnswer, shared_rules};
pub use verdict::{Verdict, Verdicts};
pub use workload::{
    Access, Assumption, Data, DayLoad, GpuNeeds, Image, MachineNeeds, Management, PerSecond, Priority, Spot,
    Start, Wishes, Work, Workload,
};
