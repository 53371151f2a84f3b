//! Deletes a deployment from the inside, when it is idle or has used up its budget.
//!
//! The user's machine may be off by then, so this runs next to the workload, in its virtual machine
//! or container. [`ActivityWatch`] decides and [`Deletion`] lists the requests to send; both are
//! state machines to which the time is passed in. [`watch`] feeds them through [`WatchIo`], which
//! tests replace by a simulation.
//!
//! Anything that it cannot observe counts as busy: lost work costs more than an hour of a machine,
//! and the deadline of the deployment ends it anyway.

mod activity;
mod deletion;
mod live;
mod options;
mod sensors;
mod watch;

pub use activity::{
    ActivitySample, ActivityWatch, Budget, EndReason, GpuLoad, GpuReading, OutputState, WatchLimits,
};
pub use deletion::{Deletion, DeletionAction, DeletionCalls, DeletionEnd};
pub use live::{WatchError, run};
pub use options::WatchdogOptions;
pub use watch::{WatchIo, watch};
