//! Machine Learning: command jobs and online endpoints in an existing workspace.
//!
//! A single job runs on serverless compute. Several items run on a cluster, which limits how many run at a time and keeps
//! its nodes between them; it has no nodes while it is idle. Nothing of it is in the deployment's groups, so the reaper
//! deletes each by its id.

mod backend;
mod body;
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

use crate::call::Body;
use crate::deployment::{DeploymentIdentity, Phase, Step, Wait, WorkShape};
use crate::services::bodies::names::{Existing, Names, Tags};
use crate::services::bodies::request::{Identity, body, iso_8601, put};
use crate::services::checks::Machine;
use crate::services::ml::body::{
    Asset, Cluster, ClusterProperties, CommandJob, Distribution, Endpoint, EnvironmentVersion,
    InferenceConfig, JobLimits, JobOutput, JobResources, Located, OnlineDeployment, OnlineScale, Probe,
    QueueSettings, RequestSettings, Route, ScaleSettings, Sku,
};
use crate::services::reaper::{Address, Outside, OutsideAction};
use crate::services::{Translation, TranslationError};
use crate::spec::{DeploymentSpec, RegistryAccess, SpecVariable, WorkKind};

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
    let environment = Asset { properties: environment(spec)? };
    let call = put(&ids.environment_version(), VERSION, body(&environment)?);
    let mut steps = vec![Step::new("image", Phase::Create, call).waiting(Wait::Response)];
    let mut actions = Vec::new();
    match &spec.work {
        WorkKind::Serve { is_public, .. } => {
            serve(spec, &ids, &machine, *is_public, &mut steps)?;
            actions.push(deletion("Delete_the_endpoint", &ids.endpoint()));
        }
        WorkKind::Job { items, concurrent, time_limit, .. } => {
            let own = node_idle(spec).map(|idle| (ids.cluster.as_str(), idle));
            let existing = spec.existing.cluster.as_ref().map(|name| ids.compute(name));
            if let Some((cluster, idle)) = own {
                let properties = self::cluster(spec, &machine, *concurrent, idle);
                let request = put(cluster, VERSION, body(&located(spec, properties))?);
                steps.push(Step::new("cluster", Phase::Create, request));
            }
            let cluster = own.map(|(cluster, _)| cluster);
            let compute = cluster.or(existing.as_deref());
            let none = [Vec::new()];
            let items = if items.is_empty() { none.as_slice() } else { items.as_slice() };
            let names = ids.jobs(super::identity(spec).work);
            for (name, item) in names.iter().zip(items) {
                let job = command_job(spec, &ids, &machine, item, *time_limit, compute);
                steps.push(job_step(spec, &ids, name, job)?);
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
        WorkKind::MultiNode { nodes, processes_per_node, time_limit } => {
            let existing = spec.existing.cluster.as_ref().map(|name| ids.compute(name));
            let mut job = command_job(spec, &ids, &machine, &[], *time_limit, existing.as_deref());
            job.resources.instance_count = *nodes;
            job.distribution = Some(Distribution {
                distribution_type: "PyTorch",
                process_count_per_instance: *processes_per_node,
            });
            steps.push(job_step(spec, &ids, &ids.unique, job)?);
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

fn environment(spec: &DeploymentSpec) -> Result<EnvironmentVersion, TranslationError> {
    let inference_config = match &spec.work {
        WorkKind::Serve { port, ready_path, .. } => {
            let Some(path) = ready_path.as_ref().filter(|path| path.contains(char::is_alphanumeric)) else {
                return Err(TranslationError::new("an online endpoint needs a path for its readiness probe")
                    .hint("name one with --ready-path, such as /health"));
            };
            let ready = Route { path: path.clone(), port: *port };
            let scoring_route = Route { path: "/score".to_owned(), port: *port };
            Some(InferenceConfig { liveness_route: ready.clone(), readiness_route: ready, scoring_route })
        }
        _ => None,
    };
    Ok(EnvironmentVersion {
        image: spec.image.clone(),
        os_type: "Linux",
        inference_config,
        tags: Tags::new(spec),
    })
}

fn located<P>(spec: &DeploymentSpec, properties: P) -> Located<P> {
    let identity = match &spec.registry {
        Some(RegistryAccess::Identity { identity, .. }) => Some(Identity::user(identity)),
        _ => None,
    };
    Located { location: spec.region.clone(), tags: Tags::new(spec), identity, sku: None, properties }
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

fn cluster(spec: &DeploymentSpec, machine: &Machine, concurrent: u32, idle: Duration) -> Cluster {
    Cluster {
        compute_type: "AmlCompute",
        properties: ClusterProperties {
            vm_size: machine.size.clone(),
            vm_priority: if spec.is_spot { "LowPriority" } else { "Dedicated" },
            os_type: "Linux",
            scale_settings: ScaleSettings {
                min_node_count: 0,
                max_node_count: concurrent,
                node_idle_time_before_scale_down: iso_8601(idle),
            },
            remote_login_port_public_access: "Disabled",
        },
    }
}

fn command_job(
    spec: &DeploymentSpec,
    ids: &Ids,
    machine: &Machine,
    item: &[String],
    time_limit: Duration,
    cluster: Option<&str>,
) -> CommandJob {
    let words: Vec<_> = spec.command.iter().chain(item).map(|word| quote(word)).collect();
    let is_serverless = cluster.is_none();
    CommandJob {
        job_type: "Command",
        display_name: spec.name.clone(),
        experiment_name: EXPERIMENT,
        environment_id: ids.environment_version(),
        command: match &spec.checkpoints {
            Some(checkpoints) => kept(&checkpoints.directory, &words.join(" ")),
            None => words.join(" "),
        },
        outputs: spec.checkpoints.iter().map(|_| (CHECKPOINTS, output(spec))).collect(),
        compute_id: cluster.map(str::to_owned),
        environment_variables: variables(spec),
        distribution: None,
        limits: JobLimits { job_limits_type: "Command", timeout: iso_8601(time_limit) },
        queue_settings: is_serverless
            .then_some(QueueSettings { job_tier: if spec.is_spot { "Spot" } else { "Standard" } }),
        resources: JobResources {
            instance_count: 1,
            instance_type: is_serverless.then(|| machine.size.clone()),
            shm_size: "8g",
        },
        tags: Tags::new(spec),
    }
}

/// Commands with the mounted output in the place of a directory.
fn kept(directory: &str, command: &str) -> String {
    let directory = quote(directory);
    format!(
        "mkdir -p \"$(dirname {directory})\" && rm -rf {directory} && ln -s \"${{{{outputs.{CHECKPOINTS}}}}}\" {directory} && {command}"
    )
}

/// The output directory, shared by all runs of a name.
fn output(spec: &DeploymentSpec) -> JobOutput {
    let name: String = spec.name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    JobOutput {
        job_output_type: "uri_folder",
        mode: "ReadWriteMount",
        uri: format!("azureml://datastores/workspaceblobstore/paths/cudock/{name}/"),
    }
}

fn job_step(spec: &DeploymentSpec, ids: &Ids, name: &str, job: CommandJob) -> Result<Step, TranslationError> {
    let request = with_secrets(body(&Asset { properties: job })?, spec);
    let id = match name.strip_prefix(&ids.unique) {
        Some(suffix) => format!("job{suffix}"),
        None => name.to_owned(),
    };
    Ok(Step::new(id, Phase::Create, put(&ids.job(name), VERSION, request)).billed().waiting(Wait::Response))
}

fn serve(
    spec: &DeploymentSpec,
    ids: &Ids,
    machine: &Machine,
    is_public: bool,
    steps: &mut Vec<Step>,
) -> Result<(), TranslationError> {
    let endpoint = |traffic: BTreeMap<&'static str, u32>| {
        let mut endpoint = located(
            spec,
            Endpoint {
                auth_mode: "Key",
                public_network_access: if is_public { "Enabled" } else { "Disabled" },
                traffic,
            },
        );
        endpoint.identity = endpoint.identity.or_else(|| Some(Identity::system()));
        body(&endpoint)
    };
    let probe = Probe {
        initial_delay: "PT10S",
        period: "PT10S",
        timeout: "PT2S",
        failure_threshold: 180,
        success_threshold: 1,
    };
    let deployment = OnlineDeployment {
        endpoint_compute_type: "Managed",
        instance_type: machine.size.clone(),
        environment_id: ids.environment_version(),
        environment_variables: variables(spec),
        app_insights_enabled: false,
        scale_settings: OnlineScale { scale_type: "Default" },
        request_settings: RequestSettings {
            request_timeout: "PT3M",
            max_concurrent_requests_per_instance: 64,
        },
        liveness_probe: probe.clone(),
        readiness_probe: probe,
    };
    let deployment = Located {
        sku: Some(Sku { name: "Default", capacity: spec.instances }),
        identity: None,
        ..located(spec, deployment)
    };
    let deployment = with_secrets(body(&deployment)?, spec);
    let id = ids.endpoint();
    steps.push(Step::new("endpoint", Phase::Create, put(&id, VERSION, endpoint(BTreeMap::new())?)));
    steps.push(
        Step::new("deployment", Phase::Start, put(&ids.deployment(), VERSION, deployment))
            .billed()
            .within_minutes(60),
    );
    let traffic = endpoint(BTreeMap::from([(DEPLOYMENT, 100)]))?;
    steps.push(Step::new("traffic", Phase::Ready, put(&id, VERSION, traffic)));
    Ok(())
}

fn variables(spec: &DeploymentSpec) -> BTreeMap<String, String> {
    let variable = |variable: &SpecVariable| match variable {
        SpecVariable::Plain { name, value } => (name.clone(), value.clone()),
        SpecVariable::Secret { name, .. } => (name.clone(), String::new()),
    };
    spec.variables.iter().map(variable).collect()
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
