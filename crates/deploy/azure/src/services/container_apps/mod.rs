//! Container Apps: an environment with a GPU profile, and in it an app or a job.

mod backend;
mod container;
mod existing;
mod preflight;
mod status;

pub(super) use backend::ContainerApps;

use cudock_facts::Facts;
use cudock_facts::services::AzureService;
use std::time::Duration;

use cudock_facts::finding::{Finding, Severity};
use cudock_http::Method;
use serde_json::{Value, json};

use crate::call::Body;
use crate::codes;
use crate::deployment::{Phase, Step, Wait};
use crate::services::bodies::amounts::Amounts;
use crate::services::bodies::names::{Existing, Names};
use crate::services::bodies::request::{Identity, body, call, non_empty, put, resource};
use crate::services::checks::losses;
use crate::services::container_apps::container::{container, registry, secrets};
use crate::services::{Translation, TranslationError};
use crate::spec::{DeploymentSpec, WorkKind};

pub(super) const VERSION: &str = "2025-07-01";
pub(super) const ENVIRONMENTS: &str = "Microsoft.App/managedEnvironments";
const APP: &str = "Microsoft.App/containerApps/main";
const JOB: &str = "Microsoft.App/jobs/main";
const PROFILE: &str = "gpu";
const CONSUMPTION: &str = "Consumption";
/// Maximum number of processors of a replica on the consumption profile.
const MOST_CPUS: f64 = 4.0;

/// The workload profile of a deployment.
#[derive(Debug)]
struct ChosenProfile {
    kind: String,
    /// Whether its machines are billed from the creation of the environment.
    is_dedicated: bool,
}

fn translate(facts: &Facts, spec: &DeploymentSpec) -> Result<Translation<'static>, TranslationError> {
    let profile = check(facts, spec)?;
    let names = Names::of_spec(spec);
    let mut steps = Vec::new();
    let environment_id = if let Some(text) = &spec.existing.container_apps_environment {
        names.existing(Existing::required(text, "a Container Apps environment")?, ENVIRONMENTS)
    } else {
        let id = names.resource(&format!("{ENVIRONMENTS}/main"));
        let request = body(resource(spec, None, &environment(spec, profile.as_ref())));
        // Up to 20 minutes were recorded for one with a dedicated profile.
        let step = Step::new("environment", Phase::Create, put(&id, VERSION, request)).within_minutes(40);
        let is_dedicated = profile.as_ref().is_some_and(|profile| profile.is_dedicated);
        steps.push(if is_dedicated { step.billed() } else { step });
        id
    };
    let profile_name = profile_name(spec, profile.as_ref())?;
    match &spec.work {
        WorkKind::Serve { port, is_public, .. } => {
            let request = app(spec, &environment_id, profile_name.as_deref(), *port, *is_public);
            let step = Step::new("app", Phase::Create, put(&names.resource(APP), VERSION, request));
            steps.push(step.billed().within_minutes(30));
        }
        WorkKind::Job { items, time_limit, retries, .. } => {
            let request = job(spec, &environment_id, profile_name.as_deref(), *time_limit, *retries);
            let id = names.resource(JOB);
            steps.push(Step::new("job", Phase::Create, put(&id, VERSION, request)));
            steps.extend(starts(spec, &id, items));
        }
        WorkKind::MultiNode { .. } => {
            return Err(TranslationError::new("replicas of Container Apps cannot address each other")
                .hint("deploy multi-node jobs to batch or ml"));
        }
    }
    Ok(Translation { steps, losses: lost(spec, profile.is_some()), ..Translation::default() })
}

/// The name of the workload profile in apps: in an existing environment, its own name for it. An
/// environment without profiles has only the one without a name.
fn profile_name(
    spec: &DeploymentSpec,
    profile: Option<&ChosenProfile>,
) -> Result<Option<String>, TranslationError> {
    let Some(existing) = &spec.existing.details.profiles else {
        return Ok(Some(if profile.is_some() { PROFILE } else { CONSUMPTION }.to_owned()));
    };
    let kind = profile.map_or(CONSUMPTION, |profile| profile.kind.as_str());
    match existing.iter().find(|one| one.kind.eq_ignore_ascii_case(kind)) {
        Some(found) => Ok(Some(found.name.clone())),
        None if profile.is_none() && existing.is_empty() => Ok(None),
        None => {
            let environment = spec.existing.description(AzureService::ContainerApps).unwrap_or_default();
            Err(TranslationError::new(format!("{environment} has no workload profile {kind}")).hint(format!(
                "az containerapp env workload-profile add --workload-profile-type {kind} --workload-profile-name {PROFILE} \
                 --name NAME --resource-group GROUP"
            )))
        }
    }
}

/// The requested amounts, rounded to those that the service accepts.
fn amounts(spec: &DeploymentSpec) -> Amounts {
    let asked = Amounts { cpus: spec.cpus, memory_gib: spec.memory_gib };
    asked.of_container_apps(spec.size.is_some())
}

fn environment(spec: &DeploymentSpec, profile: Option<&ChosenProfile>) -> Value {
    let consumption = json!({"name": CONSUMPTION, "workloadProfileType": CONSUMPTION});
    let gpu = profile.map(|profile| {
        json!({
            "name": PROFILE,
            "workloadProfileType": profile.kind,
            "minimumCount": profile.is_dedicated.then_some(1),
            "maximumCount": profile.is_dedicated.then_some(spec.instances),
        })
    });
    json!({"workloadProfiles": std::iter::once(consumption).chain(gpu).collect::<Vec<_>>()})
}

fn app(
    spec: &DeploymentSpec,
    environment_id: &str,
    profile_name: Option<&str>,
    port: u16,
    is_public: bool,
) -> Body {
    let (secrets, values) = secrets(spec);
    let properties = json!({
        "environmentId": environment_id,
        "workloadProfileName": profile_name,
        "configuration": {
            "activeRevisionsMode": "Single",
            "ingress": {
                "external": is_public,
                "targetPort": port,
                "transport": "auto",
                "allowInsecure": false,
            },
            "secrets": non_empty(secrets),
            "registries": non_empty(spec.registry.iter().map(registry)),
        },
        "template": {
            "containers": [container(spec, amounts(spec), &[])],
            "scale": {
                "minReplicas": if spec.idle.is_some() { 0 } else { spec.instances },
                "maxReplicas": spec.instances,
                // Seconds without a request until the last replica ends.
                "cooldownPeriod": spec.idle.map(|idle| idle.as_secs()),
            },
        },
    });
    with_secrets(spec, &properties, values)
}

fn job(
    spec: &DeploymentSpec,
    environment_id: &str,
    profile_name: Option<&str>,
    time_limit: Duration,
    retries: u32,
) -> Body {
    let (secrets, values) = secrets(spec);
    let properties = json!({
        "environmentId": environment_id,
        "workloadProfileName": profile_name,
        "configuration": {
            "triggerType": "Manual",
            "replicaTimeout": time_limit.as_secs().max(1),
            "replicaRetryLimit": retries,
            "manualTriggerConfig": {"parallelism": 1, "replicaCompletionCount": 1},
            "secrets": non_empty(secrets),
            "registries": non_empty(spec.registry.iter().map(registry)),
        },
        "template": {"containers": [container(spec, amounts(spec), &[])]},
    });
    with_secrets(spec, &properties, values)
}

fn with_secrets(spec: &DeploymentSpec, properties: &Value, values: Vec<cudock_base::Secret>) -> Body {
    let pointer = |index: usize| format!("/properties/configuration/secrets/{index}/value");
    let request = body(resource(spec, Identity::of_registry(spec).as_ref(), properties));
    values
        .into_iter()
        .enumerate()
        .fold(request, |request, (index, secret)| request.secret(pointer(index), secret))
}

/// One execution for each item. A repeated start is another execution: before it is sent again, the executions have to
/// be counted.
fn starts(spec: &DeploymentSpec, job: &str, items: &[Vec<String>]) -> Vec<Step> {
    let start = |id: String, body: Option<Body>| {
        let call = call(Method::POST, &format!("{job}/start"), VERSION, body);
        Step::new(id, Phase::Start, call).billed().waiting(Wait::Response)
    };
    if items.is_empty() {
        return vec![start("start".to_owned(), None)];
    }
    let with_item = |(index, item): (usize, &Vec<String>)| {
        let template = json!({"containers": [container(spec, amounts(spec), item)]});
        start(format!("start-{index}"), Some(body(template)))
    };
    items.iter().enumerate().map(with_item).collect()
}

fn check(facts: &Facts, spec: &DeploymentSpec) -> Result<Option<ChosenProfile>, TranslationError> {
    if spec.is_spot {
        return Err(TranslationError::new("Container Apps have no Spot capacity")
            .hint("deploy Spot workloads to vm, ml, or batch with an account of your subscription"));
    }
    if spec.gpus > 1 {
        return Err(TranslationError::new("a replica of Container Apps has one GPU at most")
            .hint("deploy to vm, batch or ml, or to several instances with one GPU each"));
    }
    if matches!(spec.work, WorkKind::Job { .. }) && spec.instances > 1 {
        return Err(TranslationError::new("a job of Container Apps runs as one replica for each item"));
    }
    let Some(size) = spec.size.as_deref() else {
        let Amounts { cpus, memory_gib } = amounts(spec);
        return if spec.gpus == 0 && cpus > MOST_CPUS {
            Err(TranslationError::new(format!(
                "the consumption profile has at most {MOST_CPUS} processors with twice as many GiB of memory, and not \
                 {cpus} with {memory_gib}"
            ))
            .hint("deploy it to aci or vm"))
        } else if spec.gpus == 0 {
            Ok(None)
        } else {
            Err(TranslationError::new("Container Apps need a workload profile for a GPU")
                .hint("use Consumption-GPU-NC8as-T4 or Consumption-GPU-NC24-A100"))
        };
    };
    let profiles = &facts.services().profile;
    let Some(profile) = profiles.iter().find(|profile| profile.name.eq_ignore_ascii_case(size)) else {
        let names: Vec<&str> = profiles.iter().map(|profile| profile.name.as_str()).collect();
        return Err(TranslationError::new(format!(
            "`{size}` is not a GPU workload profile of Container Apps"
        ))
        .hint(format!("use one of {}", names.join(", "))));
    };
    let Amounts { cpus, memory_gib } = amounts(spec);
    if cpus > f64::from(profile.vcpu) || memory_gib > f64::from(profile.memory_gib) {
        return Err(TranslationError::new(format!(
            "{} has {} processors and {} GiB of memory",
            profile.name, profile.vcpu, profile.memory_gib
        )));
    }
    Ok(Some(ChosenProfile { kind: profile.name.clone(), is_dedicated: profile.plan == "dedicated" }))
}

fn lost(spec: &DeploymentSpec, has_profile: bool) -> Vec<Finding> {
    let mut lost = Vec::new();
    if let Some(environment) = &spec.existing.container_apps_environment
        && has_profile
        && spec.existing.details.profiles.is_none()
    {
        lost.push(Finding::new(
            codes::PROFILE_REQUIRED,
            Severity::Warning,
            format!("the environment {environment} must have a workload profile named `{PROFILE}`"),
            "add it, or let cudock create an environment",
        ));
    }
    match &spec.work {
        WorkKind::Job { items, concurrent, .. }
            if items.len() > usize::try_from(*concurrent).unwrap_or(usize::MAX) =>
        {
            lost.push(Finding::new(
                codes::LIMIT_NOT_KEPT,
                Severity::Warning,
                format!("all {} items start at once, not {concurrent} at a time", items.len()),
                "deploy to batch, which runs a number of items at a time",
            ));
        }
        WorkKind::Serve { is_public: false, .. } => lost.push(losses::not_reachable()),
        WorkKind::Job { .. } | WorkKind::Serve { .. } | WorkKind::MultiNode { .. } => {}
    }
    lost
}
