//! The section `[sweep]` of `cudock.toml`, and the plan that it becomes.

mod checks;
pub(crate) mod choice;
mod early_termination;
pub(crate) mod keys;
pub(crate) mod limits;
mod metrics;
mod options;
mod parameters;
mod plan;
pub(crate) mod problem;
mod resolve;

pub use early_termination::EarlyTermination;
pub use limits::SweepLimits;
pub use metrics::{MetricFormat, MetricOptions, MetricPattern, MetricSource};
pub use options::{PassMode, SweepOptions};
pub use parameters::ParameterOptions;
pub use plan::SweepPlan;
