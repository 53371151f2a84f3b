//! Finds known messages in logs.
//!
//! A failed GPU container leaves megabytes of log in which one line matters. The catalog has a regular expression for each
//! message, and running hundreds of those over every line is slow. So each expression is reduced to a text that every
//! match must contain; one pass searches for all of those texts at memory speed, and only lines with one are matched.
//!
//! Memory is bounded: blocks of a fixed size, and one excerpt for each message found.

mod advice;
mod anchor;
mod catalog;
mod finder;
mod input;
mod normal;
mod proof;
mod query;
mod report;
mod scan;
mod smi;

pub use advice::fixes;
pub use catalog::{Catalog, CatalogError};
pub use input::{NotText, judge};
pub use query::{is_finding_code, is_like_a_path, xid_message};
pub use report::{Hit, LogReport};
pub use scan::ScanError;
pub use smi::SmiTable;
