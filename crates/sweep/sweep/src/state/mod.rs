//! The state of a sweep: what its events add up to, and what has to be done next.

mod apply;
mod error;
mod limits;
mod machines;
mod next;
mod sweep;
mod trial;

pub use self::error::ApplyError;
pub use self::limits::STOP_MARGIN;
pub use self::machines::TargetReached;
pub use self::next::SweepAction;
pub use self::sweep::Sweep;
pub use self::trial::{MetricPoint, Trial, TrialAttempt, TrialStatus};
