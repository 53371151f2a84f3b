//! Finds known messages in logs.
//!
//! A failed GPU container leaves megabytes of log in which one line matters, and people do not know which. The
//! catalogue has a regular expression for each message, and running a hundred of those over every line is slow.
//! So each expression is first reduced to a text that every match of it must contain; one pass looks for all of
//! those texts at once, at the speed of memory, and only the lines that hold one are looked at closely.
//!
//! Memory is bounded whatever the log: blocks of a fixed size, and one excerpt for each message found.

mod advice;
mod anchor;
mod catalogue;
mod finder;
mod input;
mod normal;
mod proof;
mod query;
mod rank;
mod scan;
mod smi;

pub use advice::fixes;
pub use catalogue::{Catalogue, CatalogueError};
pub use input::{NotText, judge};
pub use query::{is_finding_code, is_like_a_path, xid_message};
pub use scan::{Hit, Report, ScanError};
pub use smi::SmiTable;
