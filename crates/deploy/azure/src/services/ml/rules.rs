//! The workloads and features that Machine Learning does not support.

use cudock_facts::Facts;
use cudock_facts::finding::{Finding, Severity};

use crate::codes;
use crate::services::TranslationError;
use crate::services::bodies::names::is_name;
use crate::services::checks::losses;
use crate::services::checks::machine::{Machine, machine};
use crate::spec::{DeploymentSpec, RegistryAccess, WorkKind};

/// The service's limit for trials of a sweep, and a sensible one for jobs.
const MOST_AT_ONCE: u32 = 1000;

pub(super) fn check(facts: &Facts, spec: &DeploymentSpec) -> Result<Machine, TranslationError> {
    let machine = machine(facts, spec)?;
    if matches!(spec.registry, Some(RegistryAccess::Password { .. })) {
        return Err(TranslationError::new("Machine Learning takes no password for a registry")
            .hint("give an identity with the right to pull, or add a connection to the workspace"));
    }
    let is_serve = matches!(spec.work, WorkKind::Serve { .. });
    match &spec.existing.cluster {
        Some(_) if is_serve => {
            return Err(TranslationError::new("online endpoints do not run on a cluster"));
        }
        Some(name) if !is_name(name) => {
            return Err(TranslationError::new(format!("`{name}` is not the name of a cluster")));
        }
        _ => {}
    }
    if is_serve && spec.is_spot {
        return Err(TranslationError::new("online endpoints have no Spot capacity"));
    }
    if is_serve && !spec.command.is_empty() {
        return Err(TranslationError::new("online endpoints run the image's own program")
            .hint("set it in the image: ENTRYPOINT or CMD in the Dockerfile"));
    }
    if !is_serve && spec.command.is_empty() {
        return Err(TranslationError::new("Machine Learning needs the command of a job")
            .hint("it does not run the image's own program; name one after `--`"));
    }
    if spec.command.iter().any(|word| word.contains("${{")) {
        return Err(TranslationError::new(
            "the command refers to an input or search space (`${{…}}`), and the job has none",
        ));
    }
    match &spec.work {
        WorkKind::Job { concurrent, .. } if *concurrent > MOST_AT_ONCE => Err(TranslationError::new(
            format!("Machine Learning runs at most {MOST_AT_ONCE} jobs at a time, not {concurrent}"),
        )),
        _ => Ok(machine),
    }
}

pub(super) fn lost(spec: &DeploymentSpec) -> Vec<Finding> {
    let mut lost = vec![losses::rights_remain("the workspace")];
    match &spec.work {
        WorkKind::Serve { is_public, .. } => {
            lost.push(Finding::new(
                codes::ENDPOINT_ROUTES,
                Severity::Warning,
                "an online endpoint forwards POST requests to /score only, and only with a key",
                "send requests to the scoring address, with the header `Authorization: Bearer KEY`",
            ));
            lost.extend((!is_public).then(losses::not_reachable));
        }
        WorkKind::Job { retries, .. } if *retries > 0 => lost.push(Finding::new(
            codes::LIMIT_NOT_KEPT,
            Severity::Note,
            "Machine Learning does not repeat a job that failed",
            "deploy it again",
        )),
        WorkKind::Job { .. } | WorkKind::MultiNode { .. } => {}
    }
    if spec.is_spot {
        lost.push(Finding::new(
            codes::EVICTIONS_UNSEEN,
            Severity::Note,
            "Machine Learning does not report evictions: lost time is not counted, and --try does not apply",
            "deploy it to vm or batch, or write checkpoints with --checkpoints",
        ));
    }
    if matches!(spec.registry, Some(RegistryAccess::Identity { .. }))
        && !matches!(spec.work, WorkKind::Serve { .. })
    {
        lost.push(Finding::new(
            codes::PULL_IDENTITY,
            Severity::Note,
            "serverless jobs pull the image with the identity of the workspace",
            "give that identity the role AcrPull on the registry",
        ));
    }
    lost.extend(losses::secrets_readable(spec, "everybody who may read the workspace"));
    lost
}
