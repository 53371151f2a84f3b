//! The measurements of a run.

pub(crate) mod counters;
pub mod plot;
pub(crate) mod report;
pub mod text;
pub(crate) mod verify;
