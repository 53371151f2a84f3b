//! Where a workload can run and how, as deployments that are ready to be created.

use std::sync::Arc;
use std::time::Duration;

use cudock_azure::{
    BlobContainer, Checkpoints, DeploymentSpec, ExistingResources, Outputs, RegistryAccess, SpecOptions,
    SpecPlacement, SpecVariable, Target, deployment,
};
use cudock_base::format::duration;
use cudock_base::{Date, Environment, Secret, UsageError, Usd};
use cudock_facts::Facts;
use cudock_facts::finding::Finding;
use cudock_group::Group;
use cudock_group::restart::RestartPolicy;
use cudock_http::NoProgress;
use cudock_plan::{Catalog, ServiceKind, Work, plan};
use cudock_project::{Project, TimeSpan, WorkloadKind};
use cudock_workload::{Notify, Resolved, WorkloadFlags};

use crate::error::DeployError;
use crate::flags::DeployFlags;
use crate::ids::new_id;
use crate::names::{target_name, target_title};
use crate::requester::Requester;
use crate::run::PlannedDeployment;

/// The time to live if none is given.
const DEFAULT_TTL: Duration = Duration::from_secs(2 * 3600);

/// What deletes expired resources needs some minutes until its rights are effective.
const SHORTEST_TTL: Duration = Duration::from_secs(15 * 60);

/// One task for each item; more are a program's own matter.
const MOST_ITEMS: u64 = 100_000;

/// The blob container of checkpoints, with its signature.
const STORAGE: &str = "CUDOCK_CHECKPOINTS";

const GIB: f64 = 1_073_741_824.0;

/// What describes the workload.
#[derive(Debug, Clone, Copy)]
pub enum DeploySource<'a> {
    Project(&'a Project),
    /// A container group and the project of its directory, whose `[deploy]` applies.
    Group(&'a Group, &'a Project),
}

/// What is deployed, where and by whom.
pub struct DeployRequest<'a> {
    pub source: DeploySource<'a>,
    pub target: Target,
    pub flags: &'a DeployFlags,
    /// What the user calls it; the name in the file if absent.
    pub name: Option<&'a str>,
    /// Of a service.
    pub port: Option<u16>,
    /// Program and arguments; those of the image if empty.
    pub command: &'a [String],
    pub requester: &'a Requester,
    pub today: Date,
    pub environment: &'a Environment,
}

/// A place for the workload, with what the plan knows about it.
struct PlacedWork {
    placement: SpecPlacement,
    kind: WorkloadKind,
    /// The planned time of a job.
    time: Duration,
    /// Tasks of a job.
    items: u64,
}

/// The first placements for a workload, the best one first.
pub fn plan_deployments(
    facts: &Facts,
    request: &DeployRequest<'_>,
) -> Result<Vec<PlannedDeployment>, DeployError> {
    let choices = match request.target {
        Target::Aci => vec![without_plan(request)?],
        _ => ranked(facts, request)?,
    };
    choices.into_iter().map(|choice| planned(request, choice)).collect()
}

fn planned(request: &DeployRequest<'_>, choice: PlacedWork) -> Result<PlannedDeployment, DeployError> {
    let (mut spec, losses) = spec(request, choice)?;
    if let Some(cpus) = request.flags.cpus {
        spec.cpus = cpus;
    }
    #[allow(clippy::cast_precision_loss, reason = "services round memory to tenths of a gigabyte")]
    if let Some(memory) = request.flags.memory {
        spec.memory_gib = memory.0 as f64 / GIB;
    }
    if let Some(name) = request.name {
        name.clone_into(&mut spec.name);
    }
    let mut deployment = deployment(&spec)?;
    deployment.losses.extend(losses);
    Ok(PlannedDeployment { spec, deployment })
}

fn spec(
    request: &DeployRequest<'_>,
    choice: PlacedWork,
) -> Result<(DeploymentSpec, Vec<Finding>), DeployError> {
    let options = options(request, &choice)?;
    match request.source {
        DeploySource::Group(group, _) => Ok(DeploymentSpec::from_group(group, choice.placement, options)?),
        DeploySource::Project(project) => {
            let mut manifest = project.manifest.clone();
            manifest.workload.kind = choice.kind;
            manifest.workload.image = request.flags.image.clone().or(manifest.workload.image);
            let spec = DeploymentSpec::from_manifest(&project.name(), &manifest, choice.placement, options)?;
            Ok((spec, Vec::new()))
        }
    }
}

/// The best placements of the plan.
fn ranked(facts: &Facts, request: &DeployRequest<'_>) -> Result<Vec<PlacedWork>, DeployError> {
    let Resolved { workload, verdicts } = resolve(facts, request)?;
    let catalog = Catalog::of(facts);
    let plan = plan(&catalog, facts, &workload, &verdicts);
    let ranked = plan.ranked().iter().chain(plan.unlisted());
    let ranked = ranked.filter(|ranked| ranked.offer.service != ServiceKind::Aks);
    let choices: Vec<PlacedWork> = ranked
        .take(request.flags.placements.max(1))
        .map(|ranked| {
            let placement = plan.placement(ranked);
            let (kind, items) = match &workload.work {
                Work::Job { .. } => (WorkloadKind::Job, 0),
                Work::Items { items, .. } => (WorkloadKind::Job, *items),
                Work::Sweep { trials, .. } => (WorkloadKind::Sweep, u64::from(*trials)),
                Work::Serve { .. } => (WorkloadKind::Serve, 0),
            };
            let time = if kind == WorkloadKind::Serve { Duration::ZERO } else { placement.times.total };
            Ok(PlacedWork { placement: SpecPlacement::try_from(&placement)?, kind, time, items })
        })
        .collect::<Result<_, DeployError>>()?;
    if !choices.is_empty() {
        return Ok(choices);
    }
    let message = format!("no size of {} fits this workload", target_title(request.target));
    let reason = plan.nearest().first().map(|rejection| format!(": {}", rejection.reason));
    let error = UsageError::new(format!("{message}{}", reason.unwrap_or_default()));
    Err(error
        .hint("`cudock plan` lists what fits, and `cudock plan --why SIZE` explains why a size does not")
        .into())
}

/// The workload with the flags as constraints. The image is not inspected: that would download it.
fn resolve(facts: &Facts, request: &DeployRequest<'_>) -> Result<Resolved, DeployError> {
    let mut flags = WorkloadFlags {
        service: vec![target_name(request.target).to_owned()],
        region: request.flags.region.clone(),
        size: request.flags.size.clone(),
        spot: request.flags.spot,
        offline: true,
        ..WorkloadFlags::default()
    };
    let mut project = request.project().clone();
    project.manifest.workload.image = None;
    flags.no_spot = !request.flags.spot && project.manifest.deploy.spot.is_none();
    if let DeploySource::Group(group, _) = request.source {
        if group.restart_policy == RestartPolicy::Always {
            flags.rate = Some("1".to_owned());
        } else {
            flags.duration = Some(TimeSpan(DEFAULT_TTL / 2));
        }
    }
    let notify = Notify { progress: Arc::new(NoProgress), on_read: &|_| {} };
    Ok(cudock_workload::resolve(facts, &project, &flags, request.today, &notify)?)
}

/// A single container on processors alone, for which there is nothing to rank.
fn without_plan(request: &DeployRequest<'_>) -> Result<PlacedWork, UsageError> {
    let manifest = &request.project().manifest;
    let region = request.flags.region.first().or(manifest.deploy.regions.first()).ok_or_else(|| {
        let message = format!("{} needs a region", target_title(request.target));
        UsageError::new(message).hint("--region westeurope, or `regions` under [deploy] in cudock.toml")
    })?;
    let is_job = manifest.workload.duration.is_some() || manifest.workload.kind == WorkloadKind::Job;
    Ok(PlacedWork {
        placement: SpecPlacement {
            target: request.target,
            region: region.clone(),
            size: None,
            gpus: 0,
            instances: 1,
            is_spot: request.flags.spot,
            price_per_hour: request.flags.price.unwrap_or(Usd::ZERO),
        },
        kind: if is_job { WorkloadKind::Job } else { manifest.workload.kind },
        time: manifest.workload.duration.map_or(Duration::ZERO, |TimeSpan(time)| time),
        items: manifest.workload.items.unwrap_or(0),
    })
}

impl<'a> DeployRequest<'a> {
    fn project(&self) -> &'a Project {
        match self.source {
            DeploySource::Project(project) | DeploySource::Group(_, project) => project,
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
        existing: ExistingResources {
            workspace: flags.workspace.clone(),
            cluster: flags.cluster.clone(),
            batch_account: flags.batch_account.clone(),
            pool: flags.pool.clone(),
            container_apps_environment: flags.environment.clone(),
            reaper_identity: flags.reaper_identity.clone(),
        },
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
        Some(storage) if pattern.is_some() || request.target == Target::Batch => {
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
        DeploySource::Group(group, _) => group.containers.first().map(|container| container.image.as_str()),
    };
    let server = image?.split_once('/').map_or("docker.io", |(server, _)| server).to_owned();
    Some(RegistryAccess::Identity { server, identity })
}

/// The time to live: what is asked for, within the budget.
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
