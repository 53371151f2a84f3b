//! The placements of a workload, as deployments that are ready to be created.

use std::time::Duration;

use cudock_azure::{
    BlobContainer, Checkpoints, DeploymentSpec, Outputs, RegistryAccess, SpecOptions, SpecVariable, codes,
    deployment, uploads_outputs,
};
use cudock_base::text::format::duration;
use cudock_base::{Environment, Secret, UsageError, Usd};
use cudock_facts::Facts;
use cudock_facts::finding::{Finding, Severity};
use cudock_group::Reading;
use cudock_project::TimeSpan;

use crate::create::allowed::{Allowed, allowed};
use crate::create::choices::{PlacedWork, choices};
use crate::create::request::{DEFAULT_TTL, DeployRequest, DeploySource};
use crate::create::run::PlannedDeployment;
use crate::error::DeployError;
use crate::ids::new_id;

/// The minimum time to live: the reaper's role assignment takes minutes to take effect.
const SHORTEST_TTL: Duration = Duration::from_secs(15 * 60);

/// Maximum number of items; each becomes a task.
const MOST_ITEMS: u64 = 100_000;

/// The blob container of checkpoints, with its signature.
const STORAGE: &str = "CUDOCK_CHECKPOINTS";

const GIB: f64 = 1_073_741_824.0;

/// The first placements for a workload, the best one first.
pub fn plan_deployments(
    facts: &Facts,
    request: &DeployRequest<'_>,
) -> Result<Vec<PlannedDeployment>, DeployError> {
    let allowed = allowed(facts, request)?;
    let choices = choices(facts, request, &allowed)?;
    choices.into_iter().map(|choice| planned(facts, request, &allowed, choice)).collect()
}

fn planned(
    facts: &Facts,
    request: &DeployRequest<'_>,
    allowed: &Allowed,
    choice: PlacedWork,
) -> Result<PlannedDeployment, DeployError> {
    let (mut spec, losses) = spec(facts, request, choice)?;
    if let Some(cpus) = request.flags.cpus {
        spec.cpus = cpus;
    }
    #[allow(clippy::cast_precision_loss, reason = "memory in GiB, to a part in a million")]
    if let Some(memory) = request.flags.memory {
        spec.memory_gib = memory.0 as f64 / GIB;
    }
    if let Some(name) = request.name {
        name.clone_into(&mut spec.name);
    }
    let mut deployment = deployment(facts, &spec)?;
    deployment.losses.extend(losses);
    deployment.losses.extend(assumed_region(request, allowed, &spec.region));
    Ok(PlannedDeployment { spec, deployment })
}

/// A finding that the region of an existing resource is assumed, if Azure was not queried about it
/// and the user names no region.
fn assumed_region(request: &DeployRequest<'_>, allowed: &Allowed, region: &str) -> Option<Finding> {
    let description = request.existing.description(request.service)?;
    let details = &request.existing.details;
    let is_known = details.region.is_some() || details.missing.is_some() || allowed.regions.len() == 1;
    (!is_known).then(|| {
        let message = format!("the region of {description} was not read: {region} is assumed");
        Finding::new(codes::REGION_ASSUMED, Severity::Warning, message, "name its region with --region")
    })
}

fn spec(
    facts: &Facts,
    request: &DeployRequest<'_>,
    choice: PlacedWork,
) -> Result<(DeploymentSpec, Vec<Finding>), DeployError> {
    let options = options(request, &choice)?;
    match request.source {
        DeploySource::Group(reading, _) => {
            Ok(DeploymentSpec::from_group(facts, reading, choice.placement, options)?)
        }
        DeploySource::Project(project) => {
            let mut manifest = project.manifest.clone();
            manifest.workload.kind = choice.kind;
            manifest.workload.image = request.flags.image.clone().or(manifest.workload.image);
            let spec =
                DeploymentSpec::from_manifest(facts, &project.name(), &manifest, choice.placement, options)?;
            Ok((spec, Vec::new()))
        }
    }
}

fn options(request: &DeployRequest<'_>, choice: &PlacedWork) -> Result<SpecOptions, UsageError> {
    let flags = request.flags;
    let ttl = time_to_live(request, choice.placement.price_per_hour, choice.time)?;
    Ok(SpecOptions {
        run_id: new_id(),
        subscription: request.requester.subscription.clone(),
        owner: request.requester.owner.name.clone(),
        state: request.requester.owner.state.clone(),
        expires: request.requester.now.plus(ttl),
        time_limit: ttl,
        idle: flags.idle.map(|TimeSpan(time)| time),
        command: request.command.to_vec(),
        items: numbered(choice.items)?,
        port: request.port,
        ready_path: flags.ready_path.clone(),
        is_public: flags.public,
        variables: variables(&flags.env, request.environment)?,
        registry: registry(request),
        checkpoints: checkpoints(request)?,
        outputs: outputs(request)?,
        existing: request.existing.clone(),
    })
}

/// The directory of `--checkpoints`, and the storage that the environment names. Its signature is a secret.
fn checkpoints(request: &DeployRequest<'_>) -> Result<Option<Checkpoints>, UsageError> {
    let Some(directory) = request.flags.checkpoints.clone() else { return Ok(None) };
    let storage =
        request.environment.get(STORAGE).map(|url| BlobContainer::parse(STORAGE, &url.to_string_lossy()));
    Ok(Some(Checkpoints { directory, storage: storage.transpose()? }))
}

/// The files of `--outputs`, and the storage that the environment names. Batch keeps its logs there without the flag, too.
fn outputs(request: &DeployRequest<'_>) -> Result<Option<Outputs>, UsageError> {
    let pattern = request.flags.outputs.clone();
    match Outputs::storage(request.environment)? {
        Some(storage) if pattern.is_some() || uploads_outputs(request.service) => {
            Ok(Some(Outputs { storage, pattern }))
        }
        None if pattern.is_some() => Err(UsageError::new("outputs need a place in blob storage")
            .hint("set CUDOCK_OUTPUTS to the URL of a blob container with its signature")),
        _ => Ok(None),
    }
}

/// How the image is pulled, if an identity is given for that.
fn registry(request: &DeployRequest<'_>) -> Option<RegistryAccess> {
    let identity = request.flags.pull_identity.clone()?;
    let image = match request.source {
        DeploySource::Project(project) => {
            request.flags.image.as_deref().or(project.manifest.workload.image.as_deref())
        }
        DeploySource::Group(Reading { group, .. }, _) => {
            group.containers.first().map(|container| container.image.as_str())
        }
    };
    let server = image?.split_once('/').map_or("docker.io", |(server, _)| server).to_owned();
    Some(RegistryAccess::Identity { server, identity })
}

/// The requested time to live, limited by the budget.
fn time_to_live(
    request: &DeployRequest<'_>,
    price_per_hour: Usd,
    planned: Duration,
) -> Result<Duration, UsageError> {
    let given = request.flags.ttl.or(request.project().manifest.deploy.ttl).map(|TimeSpan(time)| time);
    let ttl = given.unwrap_or_else(|| DEFAULT_TTL.max(planned.saturating_mul(2)));
    if request.flags.budget.is_some() && price_per_hour == Usd::ZERO {
        return Err(
            UsageError::new("a budget cannot be kept: the price is unknown").hint("--price USD, or --ttl")
        );
    }
    let affordable = request.flags.budget.map(|budget| affordable_time(budget, price_per_hour));
    if let Some(time) = affordable.filter(|time| *time < SHORTEST_TTL) {
        let message = format!("the budget is enough for {} only", duration(time));
        return Err(UsageError::new(message).hint("--size and --spot select something cheaper"));
    }
    let ttl = affordable.map_or(ttl, |time| ttl.min(time));
    if ttl < SHORTEST_TTL {
        let message = format!("a time to live of {} is too short", duration(ttl));
        return Err(UsageError::new(message).hint("--ttl 15m is the least that Azure can enforce"));
    }
    Ok(ttl)
}

/// How long something may cost this much per hour until it has cost this much.
pub(crate) fn affordable_time(budget: Usd, price_per_hour: Usd) -> Duration {
    let seconds = budget.nanos().saturating_mul(3600).checked_div(price_per_hour.nanos());
    seconds.map_or(Duration::MAX, |seconds| Duration::from_secs(u64::try_from(seconds).unwrap_or(u64::MAX)))
}

/// The arguments of each item: its number.
fn numbered(items: u64) -> Result<Vec<Vec<String>>, UsageError> {
    if items > MOST_ITEMS {
        let message = format!("{items} items are more than the {MOST_ITEMS} tasks that one job can have");
        return Err(UsageError::new(message).hint("let each item do more"));
    }
    Ok((0..items).map(|number| vec![number.to_string()]).collect())
}

/// Variables as flags write them: `NAME=VALUE`, or `NAME` for the value in this environment, which is taken for a secret.
fn variables(flags: &[String], environment: &Environment) -> Result<Vec<SpecVariable>, UsageError> {
    let variable = |text: &String| match text.split_once('=') {
        Some(("", _)) => Err(UsageError::new(format!("`{text}` has no name")).hint("--env NAME=VALUE")),
        Some((name, value)) => Ok(SpecVariable::Plain { name: name.to_owned(), value: value.to_owned() }),
        None => match environment.get(text).and_then(|value| value.to_str()) {
            Some(value) => Ok(SpecVariable::Secret { name: text.clone(), value: Secret::new(value) }),
            None => {
                Err(UsageError::new(format!("the variable {text} is not set here")).hint("--env NAME=VALUE"))
            }
        },
    };
    flags.iter().map(variable).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_buys_time() {
        let hours = |count: u64| Duration::from_secs(count * 3600);
        assert_eq!(affordable_time(Usd::from_cents(1000), Usd::from_cents(250)), hours(4));
        assert_eq!(affordable_time(Usd::from_cents(1), Usd::ZERO), Duration::MAX);
    }

    #[test]
    fn variables_without_a_value_are_secrets() {
        let token = format!("{}fish", "sword");
        let environment = Environment::of("/", [("TOKEN", token.as_str())]);
        let flags = ["A=1=2".to_owned(), "TOKEN".to_owned()];
        let variables = variables(&flags, &environment).unwrap();
        assert_eq!(variables[0], SpecVariable::Plain { name: "A".into(), value: "1=2".into() });
        assert!(matches!(&variables[1], SpecVariable::Secret { value, .. } if *value.expose() == token));
        assert!(!format!("{variables:?}").contains(&token));
        for wrong in ["=1", "UNSET"] {
            assert!(super::variables(&[wrong.to_owned()], &environment).is_err(), "{wrong}");
        }
    }
}
