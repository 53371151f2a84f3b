//! Names of states and phases, as the journal and reports write them.

use cudock_azure::{DeploymentState, Phase};
use cudock_base::never;

const STATES: [(DeploymentState, &str); 7] = [
    (DeploymentState::Starting, "starting"),
    (DeploymentState::Running, "running"),
    (DeploymentState::Succeeded, "succeeded"),
    (DeploymentState::Failed, "failed"),
    (DeploymentState::Evicted, "evicted"),
    (DeploymentState::Deleting, "deleting"),
    (DeploymentState::Gone, "gone"),
];

/// Each phase, its name, and what it does in words.
const PHASES: [(Phase, &str, &str); 8] = [
    (Phase::Quota, "quota", "checking quota"),
    (Phase::Create, "create", "creating resources"),
    (Phase::Pull, "pull", "pulling image"),
    (Phase::Start, "start", "starting container"),
    (Phase::Gpu, "gpu", "waiting for the GPU"),
    (Phase::Ready, "ready", "waiting until ready"),
    (Phase::Work, "work", "working"),
    (Phase::Delete, "delete", "deleting"),
];

pub(crate) fn state_name(state: DeploymentState) -> &'static str {
    listed(STATES.iter().find(|(known, _)| *known == state).map(|(_, name)| *name))
}

pub(crate) fn state_named(name: &str) -> Option<DeploymentState> {
    STATES.iter().find(|(_, known)| *known == name).map(|(state, _)| *state)
}

pub(crate) fn phase_name(phase: Phase) -> &'static str {
    listed(PHASES.iter().find(|(known, ..)| *known == phase).map(|(_, name, _)| *name))
}

pub(crate) fn phase_named(name: &str) -> Option<Phase> {
    PHASES.iter().find(|(_, known, _)| *known == name).map(|(phase, ..)| *phase)
}

/// The activity of a phase: "pulling image".
pub(crate) fn phase_activity(phase: Phase) -> &'static str {
    listed(PHASES.iter().find(|(known, ..)| *known == phase).map(|(.., activity)| *activity))
}

/// The tables list every state and phase.
fn listed(name: Option<&'static str>) -> &'static str {
    name.unwrap_or_else(|| {
        never!("a state or phase without a name");
        "unknown"
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for (state, name) in STATES {
            assert_eq!((state_name(state), state_named(name)), (name, Some(state)));
        }
        for (phase, name, activity) in PHASES {
            assert_eq!((phase_name(phase), phase_named(name)), (name, Some(phase)));
            assert_eq!(phase_activity(phase), activity);
        }
    }
}
