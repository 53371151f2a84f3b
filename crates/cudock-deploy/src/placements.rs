//! Where a project can run and how, as deployments that are ready to be created.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use cudock_azure::{
    DeploymentSpec, ExistingResources, RegistryAccess, SpecVariable, Target, WorkKind, deployment,
};
use cudock_base::format::duration;
use cudock_base::{Date, Environment, Secret, Timestamp, UsageError, Usd};
use cudock_facts::Facts;
use cudock_http::NoProgress;
use cudock_plan::{Catalog, Placement, Priority, ServiceKind, Work, Workload, plan};
use cudock_project::{Project, TimeSpan, WorkloadKind};
use cudock_workload::{Notify, Resolved, WorkloadFlags};

use crate::error::DeployError;
use crate::flags::DeployFlags;
use crate::names::{target_name, target_title};
use crate::run::PlannedDeployment;

/// The time to live if none is given.
const DEFAULT_TTL: Duration = Duration::from_secs(2 * 3600);

/// What deletes expired resources needs some minutes until its rights are effective.
const SHORTEST_TTL: Duration = Duration::from_secs(15 * 60);

/// The port of a service if none is given, as `cudock serve` has it.
const DEFAULT_PORT: u16 = 8000;

/// One task for each item; more are a program's own matter.
const MOST_ITEMS: u64 = 100_000;

/// The smallest container that services which sell processors singly recommend.
const DEFAULT_CPUS: f64 = 1.0;
const DEFAULT_MEMORY_GIB: f64 = 2.0;

const GIB: f64 = 1_073_741_824.0;

/// What is deployed, where and by whom.
pub struct DeployRequest<'a> {
    pub project: &'a Project,
    pub target: Target,
    pub flags: &'a DeployFlags,
    /// What the user calls it; the project's name if absent.
    pub name: Option<&'a str>,
    /// Of a service.
    pub port: Option<u16>,
    /// Program and arguments; those of the image if empty.
    pub command: &'a [String],
    pub subscription: &'a str,
    /// As in the tag `cudock-owner`.
    pub owner: &'a str,
    /// By the cloud's clock.
    pub now: Timestamp,
    pub today: Date,
    pub environment: &'a Environment,
}

/// The first placements for a workload, the best one first.
pub fn plan_deployments(
    facts: &Facts,
    request: &DeployRequest<'_>,
) -> Result<Vec<PlannedDeployment>, DeployError> {
    let specs = if request.target == Target::Aci {
        vec![without_gpu(request)?]
    } else {
        with_gpus(facts, request)?
    };
    let planned = specs.into_iter().map(|spec| {
        let deployment = deployment(&spec)?;
        Ok(PlannedDeployment { spec, deployment })
    });
    planned.collect()
}

/// The specs for the best placements of the plan.
fn with_gpus(facts: &Facts, request: &DeployRequest<'_>) -> Result<Vec<DeploymentSpec>, DeployError> {
    let Resolved { workload, verdicts } = resolve(facts, request)?;
    let catalog = Catalog::of(facts);
    let plan = plan(&catalog, facts, &workload, &verdicts);
    let ranked = plan.ranked().iter().chain(plan.unlisted());
    let ranked = ranked.filter(|ranked| ranked.offer.service != ServiceKind::Aks);
    let placements: Vec<Placement> =
        ranked.take(request.flags.placements.max(1)).map(|ranked| plan.placement(ranked)).collect();
    if placements.is_empty() {
        let reason = plan.nearest().first().map(|rejection| rejection.reason.clone());
        let message = format!("no size of {} fits this workload", target_title(request.target));
        let error = UsageError::new(match reason {
            Some(reason) => format!("{message}: {reason}"),
            None => message,
        });
        return Err(error.hint("`cudock plan` lists what fits, and `cudock plan --why SIZE` tells why not").into());
    }
    placements.iter().map(|placement| spec_of(facts, request, &workload, placement)).collect()
}

/// The workload of the project with the flags as constraints. The image is not inspected: that would download it.
fn resolve(facts: &Facts, request: &DeployRequest<'_>) -> Result<Resolved, DeployError> {
    let mut project = request.project.clone();
    project.manifest.workload.image = None;
    let flags = WorkloadFlags {
        service: vec![target_name(request.target).to_owned()],
        region: request.flags.region.clone(),
        size: request.flags.size.clone(),
        spot: request.flags.spot,
        no_spot: !request.flags.spot && project.manifest.deploy.spot.is_none(),
        offline: true,
        ..WorkloadFlags::default()
    };
    let notify = Notify { progress: std::sync::Arc::new(NoProgress), on_read: &|_| {} };
    Ok(cudock_workload::resolve(facts, &project, &flags, request.today, &notify)?)
}

fn spec_of(
    facts: &Facts,
    request: &DeployRequest<'_>,
    workload: &Workload,
    placement: &Placement,
) -> Result<DeploymentSpec, DeployError> {
    let price = placement.price_per_hour.times(u64::from(placement.instances));
    let planned = if matches!(workload.work, Work::Serve { .. }) { Duration::ZERO } else { placement.times.total };
    let ttl = time_to_live(request, price, planned)?;
    let (cpus, memory_gib) = machine_of(facts, &placement.size);
    Ok(DeploymentSpec {
        region: placement.region.clone(),
        size: Some(placement.size.clone()),
        gpus: placement.gpus_per_instance.div_ceil(1000),
        cpus: request.flags.cpus.unwrap_or(cpus),
        memory_gib: memory_of(request).unwrap_or(memory_gib),
        instances: placement.instances,
        is_spot: placement.priority == Priority::Spot,
        price_per_hour: price,
        work: work_of(request, workload, placement.instances, ttl)?,
        ..base_spec(request, ttl)?
    })
}

/// A single container on processors alone.
fn without_gpu(request: &DeployRequest<'_>) -> Result<DeploymentSpec, DeployError> {
    let deploy = &request.project.manifest.deploy;
    let region = request.flags.region.first().or(deploy.regions.first()).ok_or_else(|| {
        let message = format!("{} needs a region", target_title(request.target));
        UsageError::new(message).hint("--region westeurope, or `regions` under [deploy] in cudock.toml")
    })?;
    let price = request.flags.price.unwrap_or(Usd::ZERO);
    let ttl = time_to_live(request, price, Duration::ZERO)?;
    let work = match request.project.manifest.workload.kind {
        WorkloadKind::Serve => serve(request),
        WorkloadKind::Job | WorkloadKind::Sweep => job(Vec::new(), 1, ttl),
    };
    Ok(DeploymentSpec {
        region: region.clone(),
        price_per_hour: price,
        work,
        ..base_spec(request, ttl)?
    })
}

/// What does not depend on the placement.
fn base_spec(request: &DeployRequest<'_>, ttl: Duration) -> Result<DeploymentSpec, DeployError> {
    let flags = request.flags;
    let image = flags.image.as_ref().or(request.project.manifest.workload.image.as_ref()).ok_or_else(|| {
        UsageError::new("no image to deploy").hint("--image IMAGE, or `image` under [workload] in cudock.toml")
    })?;
    let registry = flags.pull_identity.as_ref().map(|identity| RegistryAccess::Identity {
        server: image.split_once('/').map_or("docker.io", |(server, _)| server).to_owned(),
        identity: identity.clone(),
    });
    Ok(DeploymentSpec {
        name: request.name.map_or_else(|| request.project.name(), str::to_owned),
        run_id: new_run_id(),
        subscription: request.subscription.to_owned(),
        region: String::new(),
        target: request.target,
        size: None,
        gpus: 0,
        cpus: flags.cpus.unwrap_or(DEFAULT_CPUS),
        memory_gib: memory_of(request).unwrap_or(DEFAULT_MEMORY_GIB),
        instances: 1,
        is_spot: false,
        price_per_hour: Usd::ZERO,
        image: image.clone(),
        command: request.command.to_vec(),
        variables: variables(&flags.env, request.environment)?,
        registry,
        work: serve(request),
        expires: request.now.plus(ttl),
        idle: flags.idle.map(|TimeSpan(time)| time),
        checkpoints: flags.checkpoints.clone(),
        existing: ExistingResources {
            workspace: flags.workspace.clone(),
            batch_account: flags.batch_account.clone(),
            container_apps_environment: flags.environment.clone(),
            reaper_identity: flags.reaper_identity.clone(),
        },
        owner: request.owner.to_owned(),
    })
}

/// The time to live: what is asked for, within the budget.
fn time_to_live(
    request: &DeployRequest<'_>,
    price_per_hour: Usd,
    planned: Duration,
) -> Result<Duration, UsageError> {
    let given = request.flags.ttl.or(request.project.manifest.deploy.ttl).map(|TimeSpan(time)| time);
    let ttl = given.unwrap_or_else(|| DEFAULT_TTL.max(planned.saturating_mul(2)));
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

fn affordable_time(budget: Usd, price_per_hour: Usd) -> Duration {
    let seconds = budget.nanos().saturating_mul(3600).checked_div(price_per_hour.nanos());
    seconds.map_or(Duration::MAX, |seconds| Duration::from_secs(u64::try_from(seconds).unwrap_or(u64::MAX)))
}

fn work_of(
    request: &DeployRequest<'_>,
    workload: &Workload,
    instances: u32,
    ttl: Duration,
) -> Result<WorkKind, UsageError> {
    if workload.gpu.instances > 1 {
        return Ok(WorkKind::MultiNode {
            nodes: workload.gpu.instances,
            processes_per_node: workload.gpu.per_instance,
            time_limit: ttl,
        });
    }
    Ok(match &workload.work {
        Work::Job { .. } => job(Vec::new(), 1, ttl),
        Work::Items { items, at_once, .. } => job(numbered(*items)?, at_once.unwrap_or(instances), ttl),
        Work::Sweep { trials, at_once, .. } => job(numbered(u64::from(*trials))?, *at_once, ttl),
        Work::Serve { .. } => serve(request),
    })
}

fn serve(request: &DeployRequest<'_>) -> WorkKind {
    WorkKind::Serve {
        port: request.port.unwrap_or(DEFAULT_PORT),
        ready_path: None,
        is_public: request.flags.public,
    }
}

fn job(items: Vec<Vec<String>>, concurrent: u32, time_limit: Duration) -> WorkKind {
    WorkKind::Job { items, concurrent: concurrent.max(1), time_limit, retries: 0 }
}

/// The arguments of each item: its number.
fn numbered(items: u64) -> Result<Vec<Vec<String>>, UsageError> {
    if items > MOST_ITEMS {
        let message = format!("{items} items are more than the {MOST_ITEMS} tasks that one job can have");
        return Err(UsageError::new(message).hint("let each item do more"));
    }
    Ok((0..items).map(|number| vec![number.to_string()]).collect())
}

/// Processors and memory of a size or a workload profile.
fn machine_of(facts: &Facts, name: &str) -> (f64, f64) {
    let size = facts.sizes().find(name).one();
    let of_size = size.and_then(|size| Some((f64::from(size.vcpu?), size.ram_gib?)));
    let profiles = &facts.services().profile;
    let profile = profiles.iter().find(|profile| profile.name == name);
    let of_profile = profile.map(|profile| (f64::from(profile.vcpu), f64::from(profile.memory_gib)));
    of_size.or(of_profile).unwrap_or((DEFAULT_CPUS, DEFAULT_MEMORY_GIB))
}

#[allow(clippy::cast_precision_loss, reason = "services round memory to tenths of a gigabyte")]
fn memory_of(request: &DeployRequest<'_>) -> Option<f64> {
    request.flags.memory.map(|size| size.0 as f64 / GIB)
}

/// Variables as flags write them: `NAME=VALUE`, or `NAME` for the value in this environment, which is taken for a secret.
fn variables(flags: &[String], environment: &Environment) -> Result<Vec<SpecVariable>, UsageError> {
    let variable = |text: &String| match text.split_once('=') {
        Some(("", _)) => Err(UsageError::new(format!("`{text}` has no name")).hint("--env NAME=VALUE")),
        Some((name, value)) => Ok(SpecVariable::Plain { name: name.to_owned(), value: value.to_owned() }),
        None => match environment.get(text).and_then(|value| value.to_str()) {
            Some(value) => Ok(SpecVariable::Secret { name: text.clone(), value: Secret::new(value) }),
            None => Err(UsageError::new(format!("the variable {text} is not set here")).hint("--env NAME=VALUE")),
        },
    };
    flags.iter().map(variable).collect()
}

/// 12 hexadecimal digits that no other run has.
fn new_run_id() -> String {
    // The keys are random numbers of the operating system.
    let random = RandomState::new().hash_one(Timestamp::now());
    format!("{:012x}", random & 0xffff_ffff_ffff)
}

/// Who deploys, as in the tag `cudock-owner`: the user on this machine, whose journal knows the deployment.
pub fn owner(environment: &Environment) -> String {
    let variable = |name: &str| environment.get(name).and_then(|value| value.to_str()).map(str::to_owned);
    let user = variable("USER").or_else(|| variable("LOGNAME")).unwrap_or_else(|| "user".to_owned());
    let host = std::fs::read_to_string(environment.system("proc/sys/kernel/hostname"));
    let host = host.map_or_else(|_| "localhost".to_owned(), |name| name.trim().to_owned());
    format!("{user}@{host}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_ids_are_short_unique_and_hexadecimal() {
        let ids: std::collections::BTreeSet<String> = (0..1000).map(|_| new_run_id()).collect();
        assert_eq!(ids.len(), 1000);
        assert!(ids.iter().all(|id| id.len() == 12 && id.bytes().all(|byte| byte.is_ascii_hexdigit())));
    }

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

    #[test]
    fn the_owner_is_the_user_on_this_machine() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(directory.path().join("proc/sys/kernel")).unwrap();
        std::fs::write(directory.path().join("proc/sys/kernel/hostname"), "laptop\n").unwrap();
        let owner = |variables: &[(&str, &str)]| owner(&Environment::of(directory.path(), variables.iter().copied()));
        assert_eq!(owner(&[("USER", "ada")]), "ada@laptop");
        assert_eq!(owner(&[("LOGNAME", "eve")]), "eve@laptop");
    }
}
