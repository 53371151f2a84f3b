//! Errors of this crate.

use std::time::Duration;

use cudock_azure::{ExportError, Phase, TranslationError};
use cudock_base::text::format::duration;
use cudock_base::{ErrorKind, FileError, Report, UsageError, did_you_mean};
use cudock_workload::WorkloadError;

use crate::cloud::{ApiError, ApiErrorReason};
use crate::journal::JournalError;
use crate::names::phase_activity;

#[derive(Debug, thiserror::Error)]
pub enum DeployError {
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error("{action}")]
    Cloud {
        /// The failed action: "cannot create the group".
        action: String,
        source: ApiError,
    },
    #[error(transparent)]
    Sweep(#[from] cudock_sweep_run::SweepError),
    #[error(transparent)]
    Usage(#[from] UsageError),
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    #[error(transparent)]
    Translation(#[from] TranslationError),
    #[error(transparent)]
    Export(#[from] ExportError),
    #[error(transparent)]
    File(#[from] FileError),
    #[error("no deployment `{name}`")]
    Unknown { name: String, near: Vec<String> },
    #[error("another command is working on deployment `{name}`")]
    Busy { name: String },
    #[error("gave up on deployment `{name}` after {} of {}{}", duration(*limit), phase_activity(*phase), detail.as_ref().map_or_else(String::new, |detail| format!(": {detail}")))]
    GaveUp { name: String, phase: Phase, limit: Duration, detail: Option<String> },
    #[error("deployment `{name}` failed{}", detail.as_ref().map_or_else(String::new, |detail| format!(": {detail}")))]
    Failed { name: String, detail: Option<String> },
    #[error("deployment `{name}` was evicted, and no other placement is left")]
    Evicted { name: String },
    #[error("deployment `{name}` no longer exists in Azure")]
    Vanished { name: String },
    #[error("interrupted")]
    Interrupted,
    /// The command failed, and so did the deletion of what it had created.
    #[error("{error}; then the deployment could not be deleted: {cleanup}")]
    NotDeleted { name: String, error: Box<DeployError>, cleanup: Box<DeployError> },
}

impl DeployError {
    pub(crate) fn cloud(action: impl Into<String>, source: ApiError) -> Self {
        match source.reason {
            ApiErrorReason::Interrupted => Self::Interrupted,
            _ => Self::Cloud { action: action.into(), source },
        }
    }

    /// Whether another placement may succeed.
    pub(crate) fn is_no_capacity(&self) -> bool {
        matches!(self, Self::Cloud { source, .. } if source.reason == ApiErrorReason::NoCapacity)
    }
}

impl Report for DeployError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Journal(error) => error.kind(),
            Self::Cloud { source, .. } => source.kind(),
            Self::Sweep(error) => error.kind(),
            Self::Usage(error) => error.kind(),
            Self::Workload(error) => error.kind(),
            Self::Translation(error) => error.kind(),
            Self::Export(error) => error.kind(),
            Self::Unknown { .. } | Self::Busy { .. } => ErrorKind::Input,
            Self::NotDeleted { error, .. } => error.kind(),
            _ => ErrorKind::Outside,
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::Journal(error) => error.hints(),
            Self::Cloud { source, .. } => source.hints(),
            Self::Sweep(error) => error.hints(),
            Self::Usage(error) => error.hints(),
            Self::Workload(error) => error.hints(),
            Self::Translation(error) => error.hints(),
            Self::Export(error) => error.hints(),
            Self::File(error) => error.hints(),
            Self::Unknown { near, .. } => did_you_mean(near)
                .into_iter()
                .chain(["`cudock ps --all` lists deployments".to_owned()])
                .collect(),
            Self::Busy { .. } => vec!["wait until it has ended, or end it with Ctrl-C".to_owned()],
            Self::GaveUp { name, .. } | Self::Failed { name, .. } => {
                vec![format!("`cudock cost {name}` shows each phase and what it cost")]
            }
            Self::Evicted { .. } => vec!["--try N re-queues it in the next N placements".to_owned()],
            Self::Vanished { .. } => {
                vec![
                    "its time to live was over, or somebody deleted it; --ttl TIME keeps it longer"
                        .to_owned(),
                ]
            }
            Self::Interrupted => Vec::new(),
            Self::NotDeleted { name, cleanup, .. } => {
                let hint =
                    format!("`cudock down {name}` or `cudock gc` tries again; it is billed until then");
                cleanup.hints().into_iter().chain([hint]).collect()
            }
        }
    }
}
