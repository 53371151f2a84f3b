//! How a group is, as its supervisor writes it down.

use cudock_group::restart::{GroupState, Outcome};
use cudock_group::sequence::Phase;
use serde::{Deserialize, Serialize};

/// How a group is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupStatus {
    /// Its name.
    pub name: String,
    /// In which part of its life.
    pub state: State,
    /// When it was made, in milliseconds since 1970.
    pub created: u64,
    /// The process that supervises it.
    pub supervisor: u32,
    /// When that process began, in ticks since the machine did.
    pub supervisor_began: Option<u64>,
    /// Ports of this machine that lead into it, as they came out.
    pub ports: Vec<String>,
    /// What went wrong with the group as a whole.
    pub error: Option<String>,
    /// Init containers, then the others.
    pub containers: Vec<MemberStatus>,
}

/// The part of its life a group is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Init containers run, or nothing does yet.
    Pending,
    /// Containers run, or wait to run again.
    Running,
    /// All have ended, each with exit code 0.
    Succeeded,
    /// All have ended, and one failed.
    Failed,
    /// It was told to stop.
    Stopped,
    /// Its supervisor died, and its containers with it.
    Lost,
}

impl State {
    /// The word for people.
    pub fn word(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Stopped => "stopped",
            Self::Lost => "lost",
        }
    }

    /// Whether someone has to be there who supervises it.
    pub fn is_alive(self) -> bool {
        matches!(self, Self::Pending | Self::Running)
    }
}

impl From<GroupState> for State {
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

/// How a container of a group is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberStatus {
    /// Its name in the group.
    pub name: String,
    /// The id of its container.
    pub id: String,
    /// Whether it runs before the others.
    pub init: bool,
    /// How it stands.
    pub phase: MemberPhase,
    /// Whether it can be asked: it runs, and its readiness probe, if it has one, says yes.
    pub ready: bool,
    /// How often it was started again.
    pub restarts: u64,
    /// What it last ended with.
    pub exit_code: Option<i32>,
    /// Why it is not as it should be.
    pub why: Option<String>,
}

/// How a container stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MemberPhase {
    /// It has not started yet.
    Waiting,
    /// It runs, or is being started.
    Running,
    /// It was told to end and has not yet.
    Ending,
    /// It ended and starts again.
    Restarting,
    /// It ended with 0.
    Succeeded,
    /// It ended otherwise.
    Failed,
}

impl MemberPhase {
    /// The word for people.
    pub fn word(self) -> &'static str {
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
