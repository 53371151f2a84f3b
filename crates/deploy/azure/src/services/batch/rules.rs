//! The workloads and features that Batch does not support.

use cudock_facts::Facts;
use cudock_facts::finding::{Finding, Severity};

use crate::codes;
use crate::services::TranslationError;
use crate::services::bodies::names::is_name;
use crate::services::checks::losses;
use crate::services::checks::machine::{Machine, machine};
use crate::spec::{DeploymentSpec, RegistryAccess, WorkKind};

pub(super) fn check(facts: &Facts, spec: &DeploymentSpec) -> Result<Machine, TranslationError> {
    if matches!(spec.work, WorkKind::Serve { .. }) {
        return Err(TranslationError::new("Batch runs jobs, not services")
            .hint("deploy services to container-apps, ml or vm"));
    }
    let machine = machine(facts, spec)?;
    if machine.needs_grid() {
        return Err(TranslationError::new(format!(
            "{} takes the GRID driver (CD0802), and the node image of Batch has NVIDIA's data-center driver",
            machine.size
        ))
        .hint("deploy it to vm, or choose another size"));
    }
    if let Some(pool) = &spec.existing.pool {
        if spec.existing.batch_account.is_none() || !is_name(pool) {
            return Err(TranslationError::new(format!("the pool `{pool}` needs its Batch account"))
                .hint("`batch_account = \"GROUP/NAME\"` beside `pool` in cudock.toml"));
        }
        if matches!(spec.registry, Some(RegistryAccess::Password { .. })) {
            return Err(TranslationError::new("a pool that exists has its own sign-in to the registry"));
        }
    }
    if spec.is_spot && spec.existing.batch_account.is_none() {
        return Err(TranslationError::new(
            "Spot nodes need a Batch account that allocates pools in your subscription",
        )
        .hint("name one with --batch-account GROUP/NAME, or deploy without Spot"));
    }
    if matches!(spec.work, WorkKind::MultiNode { .. }) && spec.command.is_empty() {
        return Err(TranslationError::new("a multi-node job needs a command"));
    }
    if matches!(spec.registry, Some(RegistryAccess::Identity { .. })) {
        return Err(TranslationError::new("an automatic pool has no identity that could pull the image")
            .hint("give a user name and password for the registry"));
    }
    Ok(machine)
}

pub(super) fn lost(spec: &DeploymentSpec, has_account: bool) -> Vec<Finding> {
    let mut lost = Vec::new();
    if spec.outputs.is_none() {
        lost.push(Finding::new(
            codes::LOGS_LOST,
            Severity::Warning,
            "logs are on the nodes, which Batch deletes when the last task ends; exit codes stay",
            "set CUDOCK_OUTPUTS to the URL of a blob container with its signature, or follow them with `cudock logs -f`",
        ));
    }
    if spec.is_spot && has_account {
        lost.push(Finding::new(
            codes::SPOT_ACCOUNT,
            Severity::Note,
            "Spot nodes exist only if the account's pool allocation mode is UserSubscription",
            "check it: az batch account show --query poolAllocationMode",
        ));
    }
    if has_account {
        lost.push(losses::rights_remain("the Batch account"));
    }
    lost.extend(losses::secrets_readable(spec, "everybody who may read the Batch job"));
    if spec.outputs.is_some() {
        lost.push(Finding::new(
            codes::SECRETS_READABLE,
            Severity::Note,
            "everybody who may read the Batch job can read the signature of CUDOCK_OUTPUTS",
            "use a signature for this container only, which expires soon after the job",
        ));
    }
    lost
}
