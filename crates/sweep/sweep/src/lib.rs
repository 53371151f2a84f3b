//! Hyperparameter sweeps as a state machine over an append-only journal.
//!
//! Nothing here starts a process or reads a clock. A [`Sweep`] is built by applying [`Event`]s, and
//! [`Sweep::next`] returns what has to be done: start a trial, stop one, finish. Each action is in the journal before it
//! is carried out, so a sweep that was killed at any point continues from its journal and decides the same.

pub mod config;
pub mod encoding;
pub mod failure_logs;
pub mod journal;
mod normal;
mod pareto;
pub mod policy;
mod sampler;
pub mod space;
pub mod state;

pub use config::{MetricFormat, MetricSource, SamplerKind, SweepLimits, SweepPlan, resolve};
pub use cudock_project::{Goal, Objective, ParameterValue, PassMode};
pub use journal::{
    AttemptEnd, Event, Journal, JournalError, Record, StopReason, SweepEnd, SweepLog, TrialHandle, TrialId,
};
pub use pareto::{dominates, pareto_front};
pub use policy::{Comparison, Decision, TerminationPolicy};
pub use sampler::SOBOL_DIMENSIONS;
pub use space::{Assignment, Condition, Distribution, Parameter, Space};
pub use state::{
    ApplyError, MachineSlots, MetricPoint, Sweep, SweepAction, TargetReached, Trial, TrialAttempt,
    TrialStatus,
};
