//! Runs deployments so that nothing is left behind and every billed second is known.
//!
//! A [`Journal`] is written before each change of the outside. A [`Deployer`] creates, waits for, deletes and resumes
//! deployments over a [`CloudApi`]; what it sends was translated before, as data. Reports are plain data with a text form
//! in [`text`].
//!
//! Three clocks are kept apart: that of the cloud decides about expiry and bills, a monotonic one limits phases, and that
//! of this machine is trusted for nothing.

mod account;
mod allowed;
mod args;
mod attached;
mod billing;
mod choices;
mod clock;
mod cloud;
mod cost;
mod down;
mod error;
mod exec;
mod existing;
mod export;
mod flags;
mod gc;
mod ids;
mod image;
mod journal;
mod logs;
mod names;
mod observe;
mod placements;
mod preflight;
mod requester;
mod resume;
mod run;
mod session;
mod sweep;
pub mod text;
mod verify;
mod wait;

pub use args::{CostArgs, DeployArgs, ExportArgs, GcArgs, ResumeArgs, VerifyArgs};
pub use attached::{DeployOutput, Ended};
pub use billing::BilledTime;
pub use clock::{Clock, SystemClock};
pub use cloud::{ApiError, ApiErrorReason, ApiReply, CloudApi};
pub use cost::{Alternative, CostQuery, CostReport, DeploymentCost, PhaseCost, WorkloadCost, cost};
pub use error::DeployError;
pub use exec::{exec, exec_on_terminal};
pub use existing::read_existing;
pub use export::write_export;
pub use flags::DeployFlags;
pub use gc::{GcReport, GcScope, Leftover};
pub use journal::{
    DeploymentRecord, Journal, JournalError, NewDeployment, PhaseRecord, RunLock, StepRecord, StepRole,
    StepState, journal_directory,
};
pub use logs::print_logs;
pub use observe::{DeploymentName, DeploymentSummary, ps};
pub use placements::{DeployRequest, DeploySource, plan_deployments};
pub use preflight::{Preflight, preflight};
pub use requester::{Owner, Requester};
pub use resume::Resumed;
pub use run::{Deployer, PlannedDeployment, find_deployment};
pub use session::{Session, existing_journal};
pub use sweep::{SweepDeployFlags, SweepMachine, SweepRun, plan_sweep};
pub use verify::{DeviceVerdict, VerifyReport, verify};
pub use wait::{PhaseLimits, PhaseProgress};
