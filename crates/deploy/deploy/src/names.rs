//! Names of states, phases and targets, as the journal and reports write them.

use cudock_azure::{DeploymentState, Phase, Target};

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

/// The names of targets in flags and files.
pub(crate) const TARGET_NAMES: [&str; 5] = ["vm", "batch", "ml", "container-apps", "aci"];

const TARGETS: [(Target, &str, &str); 5] = [
    (Target::Vm, "vm", "Virtual Machine"),
    (Target::Batch, "batch", "Batch"),
    (Target::Ml, "ml", "Machine Learning"),
    (Target::ContainerApps, "container-apps", "Container Apps"),
    (Target::Aci, "aci", "Container Instances"),
];

pub(crate) fn state_name(state: DeploymentState) -> &'static str {
    STATES.iter().find(|(known, _)| *known == state).map_or("unknown", |(_, name)| name)
}

pub(crate) fn state_named(name: &str) -> Option<DeploymentState> {
    STATES.iter().find(|(_, known)| *known == name).map(|(state, _)| *state)
}

pub(crate) fn phase_name(phase: Phase) -> &'static str {
    PHASES.iter().find(|(known, ..)| *known == phase).map_or("unknown", |(_, name, _)| name)
}

pub(crate) fn phase_named(name: &str) -> Option<Phase> {
    PHASES.iter().find(|(_, known, _)| *known == name).map(|(phase, ..)| *phase)
}

/// What a phase does: "pulling image".
pub(crate) fn phase_activity(phase: Phase) -> &'static str {
    PHASES.iter().find(|(known, ..)| *known == phase).map_or("working", |(.., activity)| activity)
}

/// The name of a target in flags and files.
pub(crate) fn target_name(target: Target) -> &'static str {
    TARGETS.iter().find(|(known, ..)| *known == target).map_or("unknown", |(_, name, _)| name)
}

pub(crate) fn target_named(name: &str) -> Option<Target> {
    TARGETS.iter().find(|(_, known, _)| *known == name).map(|(target, ..)| *target)
}

pub(crate) fn target_title(target: Target) -> &'static str {
    TARGETS.iter().find(|(known, ..)| *known == target).map_or("unknown", |(.., title)| title)
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
        for ((target, name, title), listed) in TARGETS.into_iter().zip(TARGET_NAMES) {
            assert_eq!((target_name(target), target_named(listed)), (name, Some(target)));
            assert_eq!(target_title(target), title);
        }
    }
}
