//! Machine Learning: command jobs and online endpoints in an existing workspace.
//!
//! A single job runs on serverless compute. Several items run on a cluster, which limits how many run at a time and keeps
//! its nodes between them; it has no nodes while it is idle. Nothing of it is in the deployment's groups, so the reaper
//! deletes each by its id.

mod backend;
mod existing;
mod open_jobs;
mod preflight;
mod rules;
mod status;
mod sweep;
mod sweep_job;

pub(super) use backend::Ml;

use cudock_facts::Facts;
use std::collections::BTreeMap;
use std::time::Duration;

use cudock_base::Secret;
use cudock_base::shell::quote;
use serde_json::{Value, json};

use crate::call::Body;
use crate::deployment::{DeploymentIdentity, Phase, Step, Wait, WorkShape};
use crate::services::bodies::names::{Existing, Names, Tags};
use crate::services::bodies::request::{Identity, body, iso_8601, put, resource};
use crate::services::checks::machine::Machine;
use crate::services::reaper::{Address, Outside, OutsideAction};
use crate::services::{Translation, TranslationError};
use crate::spec::{DeploymentSpec, SpecVariable, WorkKind};

pub use open_jobs::{MlJobs, open_jobs};
pub use sweep_job::sweep_deployment;

pub(super) const VERSION: &str = "2024-10-01";
pub(super) const WORKSPACES: &str = "Microsoft.MachineLearningServices/workspaces";
const EXPERIMENT: &str = "cudock";
/// The output of a job that keeps its checkpoints.
const CHECKPOINTS: &str = "checkpoints";
/// The deployment of an endpoint.
const DEPLOYMENT: &str = "main";
/// Time that nodes stay without a job; the service's own default.
const NODE_IDLE: Duration = Duration::from_secs(120);

/// The ids of everything in the workspace.
#[derive(Debug)]
struct Ids {
    workspace: String,
    /// The run id, for names.
    unique: String,
    cluster: String,
}

impl Ids {
    fn new(names: Names<'_>, workspace: Existing<'_>) -> Self {
        let workspace = names.existing(workspace, WORKSPACES);
        // Names of clusters must not end in a dash and digits.
        let cluster = format!("{workspace}/computes/{}", names.unique_letters());
        Self { workspace, unique: names.unique(), cluster }
    }

    fn compute(&self, name: &str) -> String {
        format!("{}/computes/{name}", self.workspace)
    }

    fn environment(&self) -> String {
        format!("{}/environments/{}", self.workspace, self.unique)
    }

    fn environment_version(&self) -> String {
        format!("{}/versions/1", self.environment())
    }

    fn endpoint(&self) -> String {
        format!("{}/onlineEndpoints/{}", self.workspace, self.unique)
    }

    fn deployment(&self) -> String {
        format!("{}/deployments/{DEPLOYMENT}", self.endpoint())
    }

    fn job(&self, name: &str) -> String {
        format!("{}/jobs/{name}", self.workspace)
    }

    /// The part of a job's name that distinguishes it within the deployment, for names of actions.
    fn suffix(&self, job: &str) -> String {
        job.strip_prefix(&self.unique).unwrap_or_default().replace('-', "_")
    }

    /// The names of the jobs: one for each item.
    fn jobs(&self, work: WorkShape) -> Vec<String> {
        match work {
            WorkShape::Job { tasks } if tasks > 1 => {
                (0..tasks).map(|index| format!("{}-{index}", self.unique)).collect()
            }
            _ => vec![self.unique.clone()],
        }
    }
}

fn ids(identity: &DeploymentIdentity) -> Option<Ids> {
    let workspace = DeploymentIdentity::existing(identity.workspace.as_ref())?;
    Some(Ids::new(identity.names(), workspace))
}

fn translate<'s>(facts: &Facts, spec: &'s DeploymentSpec) -> Result<Translation<'s>, TranslationError> {
    let Some(workspace) = &spec.existing.workspace else {
        return Err(TranslationError::new("Machine Learning needs an existing workspace")
            .hint("name it with --workspace GROUP/NAME"));
    };
    let workspace = Existing::required(workspace, "a workspace")?;
    let machine = rules::check(facts, spec)?;
    let ids = Ids::new(Names::of_spec(spec), workspace);
    let call = put(&ids.environment_version(), VERSION, body(environment(spec)?));
    let mut steps = vec![Step::new("image", Phase::Create, call).waiting(Wait::Response)];
    let mut actions = Vec::new();
    match &spec.work {
        WorkKind::Serve { is_public, .. } => {
            steps.extend(serve(spec, &ids, &machine, *is_public));
            actions.push(deletion("Delete_the_endpoint", &ids.endpoint()));
        }
        WorkKind::Job { items, concurrent, time_limit, .. } => {
            let own = node_idle(spec).map(|idle| (ids.cluster.as_str(), idle));
            let existing = spec.existing.cluster.as_ref().map(|name| ids.compute(name));
            if let Some((cluster, idle)) = own {
                let properties = self::cluster(spec, &machine, *concurrent, idle);
                let request = body(resource(spec, Identity::of_registry(spec).as_ref(), &properties));
                steps.push(Step::new("cluster", Phase::Create, put(cluster, VERSION, request)));
            }
            let cluster = own.map(|(cluster, _)| cluster);
            let compute = cluster.or(existing.as_deref());
            let none = [Vec::new()];
            let items = if items.is_empty() { none.as_slice() } else { items.as_slice() };
            let names = ids.jobs(spec.work.shape());
            for (name, item) in names.iter().zip(items) {
                let job = command_job(spec, &ids, &machine, item, *time_limit, compute);
                steps.push(job_step(spec, &ids, name, &job));
            }
            // Billed resources come first: jobs that run, then idle nodes.
            actions.extend(names.iter().map(|name| job_cancellation(&ids, name)));
            actions.extend(cluster.map(|cluster| {
                let path = format!("{cluster}?api-version={VERSION}&underlyingResourceAction=Delete");
                OutsideAction {
                    name: "Delete_the_cluster".to_owned(),
                    method: "DELETE",
                    address: Address::ResourceManager(path),
                    is_awaited: true,
                }
            }));
            actions.extend(names.iter().map(|name| job_deletion(&ids, name)));
        }
        WorkKind::MultiNode { time_limit, .. } => {
            let existing = spec.existing.cluster.as_ref().map(|name| ids.compute(name));
            let job = command_job(spec, &ids, &machine, &[], *time_limit, existing.as_deref());
            steps.push(job_step(spec, &ids, &ids.unique, &job));
            actions.extend([job_cancellation(&ids, &ids.unique), job_deletion(&ids, &ids.unique)]);
        }
    }
    let image = deletion("Delete_the_image", &ids.environment());
    actions.push(OutsideAction { is_awaited: false, ..image });
    let outside = Outside { scope: Some((workspace, WORKSPACES)), actions };
    Ok(Translation { steps, outside, losses: rules::lost(spec) })
}

fn deletion(name: &str, id: &str) -> OutsideAction {
    OutsideAction {
        name: name.to_owned(),
        method: "DELETE",
        address: Address::ResourceManager(format!("{id}?api-version={VERSION}")),
        is_awaited: true,
    }
}

/// A job that runs cannot be deleted.
fn job_cancellation(ids: &Ids, name: &str) -> OutsideAction {
    OutsideAction {
        name: format!("Cancel_the_job{}", ids.suffix(name)),
        method: "POST",
        address: Address::ResourceManager(format!("{}/cancel?api-version={VERSION}", ids.job(name))),
        is_awaited: false,
    }
}

fn job_deletion(ids: &Ids, name: &str) -> OutsideAction {
    deletion(&format!("Delete_the_job{}", ids.suffix(name)), &ids.job(name))
}

fn environment(spec: &DeploymentSpec) -> Result<Value, TranslationError> {
    let inference = match &spec.work {
        WorkKind::Serve { port, ready_path, .. } => {
            let Some(path) = ready_path.as_ref().filter(|path| path.contains(char::is_alphanumeric)) else {
                return Err(TranslationError::new("an online endpoint needs a path for its readiness probe")
                    .hint("name one with --ready-path, such as /health"));
            };
            let ready = json!({"path": path, "port": port});
            Some(json!({
                "livenessRoute": ready,
                "readinessRoute": ready,
                "scoringRoute": {"path": "/score", "port": port},
            }))
        }
        _ => None,
    };
    // Most resources of a workspace have their tags among the properties.
    Ok(json!({"properties": {
        "image": spec.image,
        "osType": "Linux",
        "inferenceConfig": inference,
        "tags": Tags::new(spec),
    }}))
}

/// How long the nodes of a deployment's own cluster stay without a job; none if it has no cluster.
pub(super) fn node_idle(spec: &DeploymentSpec) -> Option<Duration> {
    match &spec.work {
        WorkKind::Job { items, .. } if items.len() > 1 && spec.existing.cluster.is_none() => {
            Some(spec.idle.unwrap_or(NODE_IDLE))
        }
        _ => None,
    }
}

fn cluster(spec: &DeploymentSpec, machine: &Machine, concurrent: u32, idle: Duration) -> Value {
    json!({
        "computeType": "AmlCompute",
        "properties": {
            "vmSize": machine.size,
            "vmPriority": if spec.is_spot { "LowPriority" } else { "Dedicated" },
            "osType": "Linux",
            "scaleSettings": {
                "minNodeCount": 0,
                "maxNodeCount": concurrent,
                "nodeIdleTimeBeforeScaleDown": iso_8601(idle),
            },
            "remoteLoginPortPublicAccess": "Disabled",
        },
    })
}

fn command_job(
    spec: &DeploymentSpec,
    ids: &Ids,
    machine: &Machine,
    item: &[String],
    time_limit: Duration,
    cluster: Option<&str>,
) -> Value {
    let words: Vec<_> = spec.command.iter().chain(item).map(|word| quote(word)).collect();
    let command = match &spec.checkpoints {
        Some(checkpoints) => kept(&checkpoints.directory, &words.join(" ")),
        None => words.join(" "),
    };
    let (nodes, distribution) = match spec.work {
        WorkKind::MultiNode { nodes, processes_per_node, .. } => {
            let processes = json!({
                "distributionType": "PyTorch",
                "processCountPerInstance": processes_per_node,
            });
            (nodes, Some(processes))
        }
        _ => (1, None),
    };
    let is_serverless = cluster.is_none();
    let tier = if spec.is_spot { "Spot" } else { "Standard" };
    json!({
        "jobType": "Command",
        "displayName": spec.name,
        "experimentName": EXPERIMENT,
        "environmentId": ids.environment_version(),
        "command": command,
        "outputs": spec.checkpoints.as_ref().map(|_| json!({CHECKPOINTS: output(spec)})),
        "computeId": cluster,
        "environmentVariables": variables(spec),
        "distribution": distribution,
        "limits": {"jobLimitsType": "Command", "timeout": iso_8601(time_limit)},
        "queueSettings": is_serverless.then(|| json!({"jobTier": tier})),
        "resources": {
            "instanceCount": nodes,
            "instanceType": is_serverless.then_some(&machine.size),
            "shmSize": "8g",
        },
        "tags": Tags::new(spec),
    })
}

/// Commands with the mounted output in the place of a directory.
fn kept(directory: &str, command: &str) -> String {
    let directory = quote(directory);
    format!(
        "mkdir -p \"$(dirname {directory})\" && rm -rf {directory} && ln -s \"${{{{outputs.{CHECKPOINTS}}}}}\" {directory} && {command}"
    )
}

/// The output directory in the workspace's storage, shared by all runs of a name.
fn output(spec: &DeploymentSpec) -> Value {
    let name: String = spec.name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    json!({
        "jobOutputType": "uri_folder",
        "mode": "ReadWriteMount",
        "uri": format!("azureml://datastores/workspaceblobstore/paths/cudock/{name}/"),
    })
}

fn job_step(spec: &DeploymentSpec, ids: &Ids, name: &str, job: &Value) -> Step {
    let request = with_secrets(body(json!({"properties": job})), spec);
    let id = match name.strip_prefix(&ids.unique) {
        Some(suffix) => format!("job{suffix}"),
        None => name.to_owned(),
    };
    Step::new(id, Phase::Create, put(&ids.job(name), VERSION, request)).billed().waiting(Wait::Response)
}

/// An endpoint and its deployment, which gets all requests once it is ready.
fn serve(spec: &DeploymentSpec, ids: &Ids, machine: &Machine, is_public: bool) -> [Step; 3] {
    let endpoint = |percent_of_deployments: Value| {
        let properties = json!({
            "authMode": "Key",
            "publicNetworkAccess": if is_public { "Enabled" } else { "Disabled" },
            "traffic": percent_of_deployments,
        });
        let identity = Identity::of_registry(spec).or_else(|| Some(Identity::system()));
        put(&ids.endpoint(), VERSION, body(resource(spec, identity.as_ref(), &properties)))
    };
    let probe = json!({
        "initialDelay": "PT10S",
        "period": "PT10S",
        "timeout": "PT2S",
        "failureThreshold": 180,
        "successThreshold": 1,
    });
    let deployment = body(json!({
        "location": spec.region,
        "tags": Tags::new(spec),
        "sku": {"name": "Default", "capacity": spec.instances},
        "properties": {
            "endpointComputeType": "Managed",
            "instanceType": machine.size,
            "environmentId": ids.environment_version(),
            "environmentVariables": variables(spec),
            "appInsightsEnabled": false,
            "scaleSettings": {"scaleType": "Default"},
            "requestSettings": {"requestTimeout": "PT3M", "maxConcurrentRequestsPerInstance": 64},
            "livenessProbe": probe,
            "readinessProbe": probe,
        },
    }));
    let deployment = put(&ids.deployment(), VERSION, with_secrets(deployment, spec));
    [
        Step::new("endpoint", Phase::Create, endpoint(json!({}))),
        Step::new("deployment", Phase::Start, deployment).billed().within_minutes(60),
        Step::new("traffic", Phase::Ready, endpoint(json!({DEPLOYMENT: 100}))),
    ]
}

/// The variables, with empty values for secrets, which are inserted when the request is sent.
fn variables(spec: &DeploymentSpec) -> Option<BTreeMap<&str, &str>> {
    let variables = spec.variables.iter().map(|variable| match variable {
        SpecVariable::Plain { name, value } => (name.as_str(), value.as_str()),
        SpecVariable::Secret { name, .. } => (name.as_str(), ""),
    });
    Some(variables.collect()).filter(|variables: &BTreeMap<_, _>| !variables.is_empty())
}

fn with_secrets(request: Body, spec: &DeploymentSpec) -> Body {
    let secrets = spec.variables.iter().filter_map(|variable| match variable {
        SpecVariable::Secret { name, value } => Some((name, value)),
        SpecVariable::Plain { .. } => None,
    });
    secrets.fold(request, |request, (name, value): (&String, &Secret)| {
        request.secret(format!("/properties/environmentVariables/{name}"), value.clone())
    })
}
