//! The events of a sweep.

use std::fmt;
use std::time::Duration;

use cudock_base::text::format::precise_duration;
use cudock_base::{Timestamp, Usd};
use serde::{Deserialize, Serialize};

use crate::config::SweepPlan;
use crate::policy::Decision;
use crate::space::Assignment;
use crate::trial_id::TrialId;

/// An event and when it was recorded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    #[serde(with = "crate::encoding::timestamp")]
    pub at: Timestamp,
    pub event: Event,
}

/// An event that happened, or is about to happen. Attempts of a trial are numbered from 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// The first event.
    Created {
        plan: Box<SweepPlan>,
        /// Trials that can run at the same time where it runs.
        slots: u32,
        /// Price of one slot for an hour; none if it costs nothing.
        #[serde(with = "crate::encoding::option_usd")]
        price_per_hour: Option<Usd>,
    },
    /// A new trial.
    Proposed { trial: TrialId, parameters: Assignment },
    /// An attempt is about to be started: from now on a process or container may exist.
    Starting { trial: TrialId, attempt: u32, slot: u32 },
    /// The attempt exists.
    Started { trial: TrialId, attempt: u32, handle: TrialHandle },
    /// A metric, the `interval`th of its name in this attempt (from 1). A repeated interval is ignored, so output may be
    /// read again from the beginning.
    Reported {
        trial: TrialId,
        attempt: u32,
        metric: String,
        interval: u64,
        /// The program's own number for the step, for charts only.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        step: Option<u64>,
        /// Not a number is allowed.
        #[serde(with = "crate::encoding::any_float")]
        value: f64,
    },
    /// An attempt is about to be stopped, and its trial will not be retried.
    StopDecided { trial: TrialId, attempt: u32, reason: StopReason },
    /// An attempt does not exist any more.
    Ended {
        trial: TrialId,
        attempt: u32,
        end: AttemptEnd,
        /// How long it ran; it is billed for this time.
        #[serde(rename = "ran_ms", with = "crate::encoding::millis")]
        ran: Duration,
    },
    /// No trial is started until the sweep is resumed; running ones continue.
    Paused,
    /// The sweep continues, after a pause or after its process ended in whatever way, possibly with
    /// other resources.
    Resumed {
        slots: u32,
        #[serde(with = "crate::encoding::option_usd")]
        price_per_hour: Option<Usd>,
    },
    /// The sizes that trials choose from, with slots and prices.
    MachinesPriced { machines: Vec<MachineSlots> },
    /// The limit of trials is raised.
    TrialsAdded { count: u32 },
    /// The user ends the sweep: running trials are stopped, and no others are started.
    Canceled,
    /// The last event, unless trials are added.
    Finished { end: SweepEnd },
}

/// The slots of one size.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineSlots {
    /// The value of the parameter.
    pub size: String,
    pub slots: u32,
    /// Price per hour of one slot.
    #[serde(with = "cudock_base::usd_text")]
    pub price_per_hour: Usd,
}

/// How to find an attempt again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TrialHandle {
    /// A process group. A process id is used again, so the start time (in clock ticks since boot) belongs to it.
    Process { pid: u32, start_time: u64 },
    /// A container on this machine.
    Container { name: String },
    /// A job of a service.
    Job { id: String },
}

/// How an attempt ended, whatever was the reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptEnd {
    Exited {
        code: i32,
    },
    Signaled {
        signal: i32,
    },
    /// It could not be started.
    FailedToStart {
        message: String,
    },
    /// It is gone, and its exit status is unknown.
    Lost,
    /// It was ended because the sweep was. That is not a failure, and does not count as a retry.
    Interrupted,
}

/// Why a running trial is stopped.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The policy for early termination decided so.
    Policy(Decision),
    TrialTimeout {
        #[serde(rename = "limit_ms", with = "crate::encoding::millis")]
        limit: Duration,
    },
    SweepTimeout {
        #[serde(rename = "limit_ms", with = "crate::encoding::millis")]
        limit: Duration,
    },
    Budget {
        #[serde(with = "cudock_base::usd_text")]
        spent: Usd,
        #[serde(with = "cudock_base::usd_text")]
        limit: Usd,
    },
    /// The user stopped this trial.
    User,
    /// The user ended the sweep.
    Canceled,
}

/// Why a sweep ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SweepEnd {
    /// The limit of trials is reached.
    Trials,
    /// All combinations of the grid were tried.
    SpaceExhausted,
    Timeout,
    Budget,
    Canceled,
}

impl Event {
    /// Whether it must be on disk before anything else is done. A sync is for crashes of the machine only: what was
    /// written survives `kill -9` without one.
    ///
    /// - What happened already needs none: without it, a trial is found as it is, or counts as lost and runs again.
    /// - Intents about trials need one where trials outlive this machine (`outlives`), so that none is forgotten. Trials
    ///   on this machine are gone as well.
    /// - What the user was promised, and the beginning and the end of a sweep, always do.
    pub fn needs_sync(&self, outlives: bool) -> bool {
        match self {
            Self::Started { .. } | Self::Reported { .. } | Self::Ended { .. } => false,
            Self::Proposed { .. } | Self::Starting { .. } | Self::StopDecided { .. } => outlives,
            Self::Created { .. }
            | Self::Paused
            | Self::Resumed { .. }
            | Self::MachinesPriced { .. }
            | Self::TrialsAdded { .. }
            | Self::Canceled
            | Self::Finished { .. } => true,
        }
    }
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Policy(decision) => decision.fmt(f),
            Self::TrialTimeout { limit } => {
                write!(f, "trial_timeout of {} exceeded", precise_duration(*limit))
            }
            Self::SweepTimeout { limit } => write!(f, "timeout of {} exceeded", precise_duration(*limit)),
            Self::Budget { spent, limit } => {
                write!(f, "${} of ${} spent", spent.rounded(), limit.rounded())
            }
            Self::User => f.write_str("stopped by the user"),
            Self::Canceled => f.write_str("sweep canceled"),
        }
    }
}

impl fmt::Display for AttemptEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited { code } => write!(f, "exit code {code}"),
            Self::Signaled { signal } => write!(f, "killed by signal {signal}"),
            Self::FailedToStart { message } => write!(f, "failed to start: {message}"),
            Self::Lost => f.write_str("disappeared, exit status unknown"),
            Self::Interrupted => f.write_str("interrupted with the sweep"),
        }
    }
}

impl fmt::Display for SweepEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Trials => "all trials ended",
            Self::SpaceExhausted => "all combinations were tried",
            Self::Timeout => "the timeout was reached",
            Self::Budget => "the budget was spent",
            Self::Canceled => "canceled",
        })
    }
}
