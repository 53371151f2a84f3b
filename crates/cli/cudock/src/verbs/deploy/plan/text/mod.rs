//! The report for people: brief, or as tables with the workload, all reasons and a chart.

pub(super) mod brief;
pub(super) mod chart;
mod notes;
pub(super) mod placement;
pub(super) mod table;
pub(super) mod workload;
