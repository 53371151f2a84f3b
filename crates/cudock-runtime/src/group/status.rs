//! The status of a group, as its supervisor writes it to `group.json`.

use cudock_group::restart::{GroupState, Outcome};
use cudock_group::sequence::Phase;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GroupStatus {
    pub name: String,
    pub state: GroupPhase,
    /// When it was created, in milliseconds since 1970.
    pub created: u64,
    /// The process that supervises it.
    pub supervisor: u32,
    /// When that process started, in clock ticks since boot.
    pub supervisor_began: Option<u64>,
    /// Published ports.
    pub ports: Vec<String>,
    /// The error of the group as a whole.
    pub error: Option<String>,
    /// Init containers, then the others.
    pub containers: Vec<MemberStatus>,
}

/// The state of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GroupPhase {
    /// Init containers run, or nothing runs yet.
    Pending,
    /// Containers run, or wait for their restart.
    Running,
    /// All containers exited with code 0.
    Succeeded,
    /// All containers exited, and one failed.
    Failed,
    Stopped,
    /// Its supervisor was killed, and its containers with it.
    Lost,
}

impl GroupPhase {
    pub fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Stopped => "stopped",
            Self::Lost => "lost",
        }
    }

    /// Whether it needs a supervisor.
    pub fn is_alive(self) -> bool {
        matches!(self, Self::Pending | Self::Running)
    }
}

impl From<GroupState> for GroupPhase {
    fn from(state: GroupState) -> Self {
        match state {
            GroupState::Pending => Self::Pending,
            GroupState::Running => Self::Running,
            GroupState::Succeeded => Self::Succeeded,
            GroupState::Failed => Self::Failed,
            GroupState::Stopped => Self::Stopped,
        }
    }
}

/// The status of a container of a group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MemberStatus {
    /// Its name in the group.
    pub name: String,
    /// The id of its container.
    pub id: String,
    /// Whether it runs before the others.
    pub init: bool,
    /// Its state.
    pub phase: MemberPhase,
    /// Whether it runs and its readiness probe, if it has one, succeeds.
    pub ready: bool,
    /// How often it was restarted.
    pub restarts: u64,
    /// Its last exit code.
    pub exit_code: Option<i32>,
    /// Why it is not running or not ready.
    #[serde(rename = "why")]
    pub reason: Option<String>,
}

/// The state of a container of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MemberPhase {
    /// It has not started yet.
    Waiting,
    /// It runs or is being started.
    Running,
    /// It is being stopped.
    Ending,
    /// It waits for its restart.
    Restarting,
    /// It exited with code 0.
    Succeeded,
    /// It exited with another code.
    Failed,
}

impl MemberPhase {
    pub fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Ending => "ending",
            Self::Restarting => "restarting",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
        }
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
            Phase::Ended(Outcome::Failed { .. }) => Self::Failed,
        }
    }
}
