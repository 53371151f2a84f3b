//! The status of a deployment, as its service reports it.

use cudock_base::Timestamp;

use crate::deployment::Phase;

/// The state of a deployment, read from the responses to its status requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    pub state: DeploymentState,
    pub phase: Phase,
    /// The service's own words for what it does or why it failed.
    pub detail: Option<String>,
    /// Exit code of a job that has ended.
    pub exit_code: Option<i32>,
    /// URL at which a service responds.
    pub url: Option<String>,
    /// When billing began and ended, by the service's clock.
    pub billed_from: Option<Timestamp>,
    pub billed_until: Option<Timestamp>,
    /// The jobs that have started, where each keeps a node of the deployment's own cluster busy.
    pub jobs: Vec<JobTime>,
}

/// When a job ran, by the service's clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobTime {
    pub name: String,
    pub from: Timestamp,
    /// None while it runs.
    pub until: Option<Timestamp>,
}

impl JobTime {
    /// None if the job has not started.
    pub fn new(name: &str, status: &Status) -> Option<Self> {
        Some(Self { name: name.to_owned(), from: status.billed_from?, until: status.billed_until })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeploymentState {
    /// Not all of it exists, or it is not ready.
    Starting,
    Running,
    Succeeded,
    Failed,
    /// Taken away by Azure, as Spot capacity may be.
    Evicted,
    Deleting,
    /// Nothing of it exists.
    Gone,
}
