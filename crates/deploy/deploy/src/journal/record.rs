//! The rows of the journal.

use std::time::Duration;

use cudock_azure::{Deployment, DeploymentIdentity, DeploymentSpec, DeploymentState, JobTime, Phase, Step};
use cudock_base::{Timestamp, Usd};

use crate::journal::billed_time::BilledTime;

/// The record that is written before the first request of a deployment.
#[derive(Debug)]
pub struct NewDeployment<'a> {
    pub deployment: &'a Deployment,
    pub spec: &'a DeploymentSpec,
    /// Whether it ends with the command that creates it.
    pub is_attached: bool,
    pub created: Timestamp,
    /// The run that was evicted and that this one continues.
    pub replaces: Option<&'a str>,
}

/// A deployment as the journal knows it.
#[derive(Debug, Clone, PartialEq)]
pub struct DeploymentRecord {
    pub run_id: String,
    pub name: String,
    pub identity: DeploymentIdentity,
    pub size: Option<String>,
    pub gpus: u32,
    pub instances: u32,
    /// Price per hour of all instances.
    pub price_per_hour: Usd,
    /// Whether it ends with the command that created it.
    pub is_attached: bool,
    pub created: Timestamp,
    /// When the cloud deletes it by itself.
    pub expires: Timestamp,
    pub state: DeploymentState,
    pub detail: Option<String>,
    pub url: Option<String>,
    pub exit_code: Option<i32>,
    pub billed: BilledTime,
    /// Jobs that keep nodes of its own cluster busy.
    pub jobs: Vec<JobTime>,
    /// Work that was lost by eviction.
    pub lost: Duration,
    /// The run that was evicted and that this one continues.
    pub replaces: Option<String>,
}

impl DeploymentRecord {
    /// Whether money is spent on it now, as far as the journal knows.
    pub(crate) fn is_billed(&self) -> bool {
        self.state != DeploymentState::Gone && self.billed.from.is_some() && self.billed.until.is_none()
    }
}

/// Whether a step creates or deletes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepRole {
    Create,
    Cleanup,
}

impl StepRole {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Cleanup => "cleanup",
        }
    }
}

/// The progress of a step. For an intended one, it is unknown whether its request arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepState {
    Planned,
    Intended,
    Done,
    Failed,
}

impl StepState {
    const ALL: [Self; 4] = [Self::Planned, Self::Intended, Self::Done, Self::Failed];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Planned => "planned",
            Self::Intended => "intended",
            Self::Done => "done",
            Self::Failed => "failed",
        }
    }

    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }
}

/// A step of a deployment with its outcome.
#[derive(Debug, Clone, PartialEq)]
pub struct StepRecord {
    pub step: Step,
    pub state: StepState,
    /// Whether the request had secrets, which the journal does not keep.
    pub has_secrets: bool,
}

/// How long a deployment was in a phase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PhaseRecord {
    pub phase: Phase,
    pub began: Timestamp,
    pub ended: Option<Timestamp>,
    pub is_billed: bool,
}
