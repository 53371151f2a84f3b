//! Tables of facts: GPUs, drivers, toolkits, images, frameworks, error messages, Azure.
//!
//! All verdicts are based on these tables, and they age: NVIDIA releases a driver branch every quarter, Azure retires
//! sizes. So each table is a data file with its date and sources, embedded at build time, and users can update tables with
//! an overlay without waiting for a release.
//!
//! ```
//! use cudock_facts::{Facts, version::DriverVersion};
//!
//! let facts = Facts::embedded();
//! let t4 = facts.gpus().find("t4").one().expect("T4 is in the table");
//! assert_eq!(t4.capability.unwrap().to_string(), "7.5");
//!
//! let driver: DriverVersion = "535.161.08".parse().unwrap();
//! assert_eq!(facts.drivers().branch_of(driver).unwrap().cuda.to_string(), "12.2");
//! ```

pub mod check;
pub mod finding;
pub mod formats;
mod load;
pub mod lookup;
mod overlay;
pub mod services;
pub mod sheets;
mod store;
pub mod tables;
pub mod version;

pub use overlay::OverlayError;
pub use store::{Facts, STALE_AFTER_DAYS, TableSummary};
