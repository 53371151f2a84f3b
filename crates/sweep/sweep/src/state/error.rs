//! Events that do not fit the state.

use crate::trial_id::TrialId;

/// Why an event cannot happen. A journal that has it was not written by this program.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    #[error("the first event is not the creation of a sweep")]
    NotCreated,
    #[error("the sweep was created already")]
    AlreadyCreated,
    #[error("the sweep has no objective")]
    NoObjective,
    #[error("no trial fits on this machine: it has no slots")]
    NoSlots,
    #[error("the slots of all sizes are not those of the sweep")]
    WrongMachines,
    #[error("`limits.dollars` is set, and the price of a slot is unknown")]
    NoPrice,
    #[error("the sweep has finished")]
    Finished,
    #[error("trials are running")]
    StillRunning,
    #[error("trial {trial} is not the next one")]
    OutOfOrder { trial: TrialId },
    #[error("trial {trial} exceeds the limit of trials")]
    TooManyTrials { trial: TrialId },
    #[error("trial {trial} does not exist")]
    UnknownTrial { trial: TrialId },
    #[error("attempt {attempt} of trial {trial} cannot be started")]
    CannotStart { trial: TrialId, attempt: u32 },
    #[error("slot {slot} is in use")]
    SlotInUse { slot: u32 },
    #[error("attempt {attempt} of trial {trial} is not running")]
    NotRunning { trial: TrialId, attempt: u32 },
    #[error("report {interval} of `{metric}` by trial {trial} is not the next one")]
    MissingReport { trial: TrialId, metric: String, interval: u64 },
}
