//! Runs deployments so that nothing is left behind and every billed second is known.
//!
//! A [`Journal`] is written before each change in the cloud. A [`Deployer`] creates, watches,
//! deletes and resumes deployments over a [`CloudApi`]; its requests were translated before, as
//! data. Reports are plain data with a text form in [`text`].
//!
//! There are three clocks: the cloud's decides about expiry and bills, a monotonic one limits
//! phases, and that of this machine is not trusted.

mod clock;
mod cloud;
mod cost;
mod create;
mod delete;
mod error;
mod export;
mod flags;
mod ids;
mod journal;
mod names;
mod observe;
mod session;
mod sweep;
pub mod text;

pub use clock::{Clock, SystemClock};
pub use cloud::{ApiError, ApiErrorReason, ApiReply, CloudApi};
pub use cost::{Alternative, CostQuery, CostReport, DeploymentCost, PhaseCost, WorkloadCost, cost};
pub use create::attached::{DeployOutput, Ended};
pub use create::existing::read_existing;
pub use create::phase::{PhaseLimits, PhaseProgress};
pub use create::placements::plan_deployments;
pub use create::preflight::{Preflight, preflight};
pub use create::request::{DeployRequest, DeploySource};
pub use create::requester::{Owner, Requester};
pub use create::resume::Resumed;
pub use create::run::{Deployer, PlannedDeployment, find_deployment};
pub use delete::gc::{GcReport, GcScope, Leftover};
pub use error::DeployError;
pub use export::write_export;
pub use flags::resolve;
pub use journal::{
    BilledTime, DeploymentRecord, Journal, JournalError, NewDeployment, PhaseRecord, RunLock, StepRecord,
    StepRole, StepState, journal_directory,
};
pub use observe::exec::{exec, exec_on_terminal};
pub use observe::logs::print_logs;
pub use observe::verify::{DeviceVerdict, VerifyReport, verify};
pub use observe::{DeploymentName, DeploymentSummary, ps};
pub use session::{Session, existing_journal};
pub use sweep::machines::SweepMachine;
pub use sweep::{SweepRun, plan_sweep};
