//! The workloads and features that a machine does not support.

use cudock_facts::Facts;
use cudock_facts::finding::{Finding, Severity};

use crate::codes;
use crate::services::TranslationError;
use crate::services::checks::losses;
use crate::services::checks::machine::{Machine, machine};
use crate::spec::{DeploymentSpec, WorkKind};

pub(super) fn check(facts: &Facts, spec: &DeploymentSpec) -> Result<Machine, TranslationError> {
    if matches!(spec.work, WorkKind::MultiNode { .. }) || spec.instances > 1 {
        return Err(TranslationError::new("a deployment to vm is one machine").hint(
            "deploy several machines to batch or ml, and several instances of a service to container-apps",
        ));
    }
    machine(facts, spec)
}

pub(super) fn lost(spec: &DeploymentSpec) -> Vec<Finding> {
    let mut lost = Vec::new();
    match &spec.work {
        WorkKind::Job { items, concurrent, .. } if items.len() > 1 && *concurrent > 1 => {
            lost.push(Finding::new(
                codes::LIMIT_NOT_KEPT,
                Severity::Warning,
                format!("items run one after another on the one machine, not {concurrent} at a time"),
                "deploy to batch, which runs a number of items at a time",
            ));
        }
        WorkKind::Serve { is_public: false, .. } => lost.push(losses::not_reachable()),
        _ => {}
    }
    lost
}
