//! Hyperparameter sweeps as a state machine over an append-only journal.
//!
//! Nothing here starts a process or reads a clock. A [`Sweep`] is built by applying [`Event`]s, and
//! [`Sweep::next`] returns what has to be done: start a trial, stop one, finish. Each action is in the journal before it
//! is carried out, so a sweep that was killed at any point continues from its journal and decides the same.

mod config;
pub mod encoding;
mod event;
pub mod failure_logs;
pub mod journal;
mod normal;
mod objective;
mod parameter_value;
mod pareto;
pub mod policy;
pub mod sampler;
mod space;
mod state;
mod trial_id;

pub use config::choice::Choice;
pub use config::problem::{Inexpressible, Problem};
pub use config::{
    EarlyTermination, MetricFormat, MetricOptions, MetricPattern, MetricSource, ParameterOptions, PassMode,
    SweepLimits, SweepOptions, SweepPlan,
};
pub use event::{AttemptEnd, Event, MachineSlots, Record, StopReason, SweepEnd, TrialHandle};
pub use journal::{Journal, JournalError, SweepLog};
pub use objective::{Goal, Objective};
pub use parameter_value::ParameterValue;
pub use pareto::{dominates, pareto_front};
pub use policy::{Comparison, Decision, TerminationPolicy};
pub use sampler::{SOBOL_DIMENSIONS, SamplerKind};
pub use space::{Assignment, Condition, Distribution, Parameter, Space};
pub use state::{
    ApplyError, MetricPoint, STOP_MARGIN, Sweep, SweepAction, TargetReached, Trial, TrialAttempt, TrialStatus,
};
pub use trial_id::TrialId;
