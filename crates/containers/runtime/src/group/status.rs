//! The status of a group, as its supervisor writes it to `group.json`.

use std::fmt;

use cudock_group::restart::{GroupState, Outcome};
use cudock_group::sequence::Phase;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GroupStatus {
    pub name: String,
    pub state: GroupState,
    /// When it was created, in milliseconds since 1970.
    pub created: u64,
    pub supervisor: u32,
    /// When that process started, in clock ticks since boot.
    pub supervisor_began: Option<u64>,
    pub ports: Vec<String>,
    pub error: Option<String>,
    /// Init containers, then the others.
    pub containers: Vec<MemberStatus>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MemberStatus {
    /// Its name in the group.
    pub name: String,
    pub id: String,
    /// Whether it runs before the others.
    pub init: bool,
    pub phase: MemberPhase,
    /// Whether it runs and its readiness probe, if it has one, succeeds.
    pub ready: bool,
    pub restarts: u64,
    pub exit_code: Option<i32>,
    /// Why it is not running or not ready.
    pub reason: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MemberPhase {
    Waiting,
    /// It runs or is being started.
    Running,
    Ending,
    Restarting,
    Succeeded,
    Failed,
}

/// The name in the status file.
impl fmt::Display for MemberPhase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

impl From<Phase> for MemberPhase {
    fn from(phase: Phase) -> Self {
        match phase {
            Phase::Waiting => Self::Waiting,
            Phase::Running { .. } => Self::Running,
            Phase::Ending { .. } => Self::Ending,
            Phase::BackOff { .. } => Self::Restarting,
            Phase::Ended(Outcome::Succeeded) => Self::Succeeded,
            Phase::Ended(Outcome::Failed) => Self::Failed,
        }
    }
}
