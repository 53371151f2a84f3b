//! Sweeps on this machine: trials as processes or containers. None outlives the sweep, and no
//! result is lost.
//!
//! `cudock sweep` decides and records ([`SweepDriver`]); a worker process for each slot runs one trial after the other and owns
//! all its processes. Who is killed, and when, does not matter:
//!
//! - the sweep: its workers notice, end their trials and themselves. The next run waits for them, then counts each result
//!   in their files that its journal does not have, and starts again what has none;
//! - a worker: its trial's processes become children of the sweep, which kills them;
//! - both at once: the next run finds what is left by a variable of its environment, and containers by their names.

mod command;
mod drive;
mod flags;
mod layout;
mod local;
mod metrics;
mod remote;
mod requests;
mod run;
mod runner;

pub use drive::{DriveEnd, DriveError, SweepDriver, SweepObserver, watch_interrupts};
pub use layout::{SweepDir, TrialDir};
pub use local::local_runner::LocalError;
pub use local::worker::run_worker;
pub use remote::{OutputMetrics, trial_words};
pub use requests::SweepRequest;
pub use run::{ProjectSweep, SweepError};
pub use runner::{AttemptToStart, LiveAttempt, Runner, RunnerEvent};
