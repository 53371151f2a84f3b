//! A workload from `cudock.toml`, or from a container group.

use std::path::Path;
use std::time::Duration;

use cudock_base::Timestamp;
use cudock_facts::Facts;
use cudock_facts::finding::Finding;
use cudock_group::restart::RestartPolicy;
use cudock_group::{Container, Group, Os, PortProtocol, ProbeAction, Reading, VariableValue};
use cudock_project::{Manifest, WorkloadKind};

use crate::services::TranslationError;
use crate::spec::group_losses::losses;
use crate::spec::placed::{SpecPlacement, capacity};
use crate::spec::requested::{gib, requested_capacity, requested_gpu};
use crate::spec::{
    Checkpoints, DeploymentSpec, ExistingResources, Outputs, RegistryAccess, SpecVariable, WorkKind,
};

/// The port of `cudock serve`.
const DEFAULT_PORT: u16 = 8000;
/// Capacity that Container Instances assign to a container without a request.
const DEFAULT_CAPACITY: (f64, f64) = (1.0, 1.5);
/// Number of restarts of a group's container on services that need a number.
const RETRIES: u32 = 3;

/// Settings of a deployment beyond the file that describes the workload.
#[derive(Debug, Clone, PartialEq)]
pub struct SpecOptions {
    pub run_id: String,
    pub subscription: String,
    pub owner: String,
    pub state: Option<String>,
    pub expires: Timestamp,
    /// Time limit of one task of a job.
    pub time_limit: Duration,
    pub idle: Option<Duration>,
    /// Program and arguments; those of the image or group if empty.
    pub command: Vec<String>,
    /// Further arguments, one list for each task of a job.
    pub items: Vec<Vec<String>>,
    pub port: Option<u16>,
    pub ready_path: Option<String>,
    pub is_public: bool,
    pub variables: Vec<SpecVariable>,
    pub registry: Option<RegistryAccess>,
    pub checkpoints: Option<Checkpoints>,
    pub outputs: Option<Outputs>,
    pub existing: ExistingResources,
}

impl DeploymentSpec {
    /// The workload of a project in a place.
    pub fn from_manifest(
        facts: &Facts,
        name: &str,
        manifest: &Manifest,
        placement: SpecPlacement,
        mut options: SpecOptions,
    ) -> Result<Self, TranslationError> {
        let workload = &manifest.workload;
        let Some(image) = &workload.image else {
            return Err(TranslationError::new("the project has no image")
                .hint("build and push one, and name it: `image` in `[workload]` of cudock.toml"));
        };
        let is_archive =
            Path::new(image).extension().is_some_and(|extension| extension.eq_ignore_ascii_case("tar"));
        if image.starts_with("oci:") || is_archive {
            return Err(TranslationError::new(format!(
                "`{image}` is on this machine, where Azure cannot pull it"
            ))
            .hint("push it to a registry, and name it: `image` in `[workload]` of cudock.toml"));
        }
        let nodes = manifest.needs.nodes.unwrap_or(1);
        let work = match workload.kind {
            WorkloadKind::Serve => {
                let listen = manifest.serve.listen.as_ref().and_then(|addresses| addresses.first());
                WorkKind::Serve {
                    port: options.port.or(listen.map(std::net::SocketAddr::port)).unwrap_or(DEFAULT_PORT),
                    ready_path: options.ready_path.take(),
                    is_public: options.is_public,
                }
            }
            WorkloadKind::Job if nodes > 1 => WorkKind::MultiNode {
                nodes,
                processes_per_node: manifest.needs.gpus.unwrap_or(placement.gpus).max(1),
                time_limit: options.time_limit,
            },
            WorkloadKind::Job | WorkloadKind::Sweep => WorkKind::Job {
                items: std::mem::take(&mut options.items),
                concurrent: workload.at_once.unwrap_or(placement.instances).max(1),
                time_limit: options.time_limit,
                retries: u32::from(placement.is_spot) * RETRIES,
            },
        };
        let wanted = (
            manifest.needs.cpu.map_or(DEFAULT_CAPACITY.0, f64::from),
            manifest.needs.memory.map_or(DEFAULT_CAPACITY.1, |memory| gib(memory.0)),
        );
        Ok(Self::new(facts, (name, image.as_str()), work, wanted, placement, options))
    }

    /// A container group in a place, and what of it is not deployed.
    pub fn from_group(
        facts: &Facts,
        reading: &Reading,
        mut placement: SpecPlacement,
        mut options: SpecOptions,
    ) -> Result<(Self, Vec<Finding>), TranslationError> {
        let group = &reading.group;
        let [container] = group.containers.as_slice() else {
            let count = group.containers.len();
            let error =
                TranslationError::new(format!("the group has {count} containers, and a deployment runs one"));
            let has_gpu = group.containers.iter().any(|container| requested_gpu(container).is_some());
            // Container Instances have no GPUs anymore.
            return Err(error.hint(if has_gpu {
                "`cudock migrate FILE -o DIR` writes it as an app of Container Apps, whose sidecars share localhost; or run it here \
                 with `cudock up -f FILE`"
            } else {
                "run it here with `cudock up -f FILE`, or deploy it with `az container create --file`"
            }));
        };
        if group.os == Os::Windows {
            return Err(TranslationError::new(
                "the group is for Windows, and cudock deploys Linux containers",
            ));
        }
        if !group.init_containers.is_empty() {
            return Err(TranslationError::new("the group has init containers, which cudock does not deploy")
                .hint("do their work in the container itself"));
        }
        let losses = losses(facts, reading, container, placement.size.as_deref());
        let work = work_of(group, container, &options)?;
        let wanted = requested_capacity(container).unwrap_or(DEFAULT_CAPACITY);
        let credential = group.credentials.iter().find_map(|credential| {
            Some(RegistryAccess::Password {
                server: credential.server.clone(),
                username: credential.username.clone()?,
                password: credential.password.clone()?,
            })
        });
        placement.gpus = placement.gpus.max(requested_gpu(container).map_or(0, |gpu| gpu.count));
        if options.command.is_empty() {
            options.command.clone_from(&container.command);
        }
        options.variables = variables(container).chain(options.variables).collect();
        options.registry = options.registry.or(credential);
        let names = (group.name.as_str(), container.image.as_str());
        Ok((Self::new(facts, names, work, wanted, placement, options), losses))
    }

    /// A workload in a place: its name and image, and the processors and memory that are wanted where the tables do not
    /// have the machine.
    fn new(
        facts: &Facts,
        (name, image): (&str, &str),
        work: WorkKind,
        wanted: (f64, f64),
        placement: SpecPlacement,
        options: SpecOptions,
    ) -> Self {
        let size = placement.size.as_deref();
        let (cpus, memory_gib) = size.and_then(|size| capacity(facts, size)).unwrap_or(wanted);
        Self {
            name: name.to_owned(),
            run_id: options.run_id,
            subscription: options.subscription,
            region: placement.region,
            service: placement.service,
            size: placement.size,
            gpus: placement.gpus,
            cpus,
            memory_gib,
            instances: placement.instances,
            is_spot: placement.is_spot,
            price_per_hour: placement.price_per_hour,
            image: image.to_owned(),
            command: options.command,
            variables: options.variables,
            registry: options.registry,
            work,
            expires: options.expires,
            idle: options.idle,
            checkpoints: options.checkpoints,
            outputs: options.outputs,
            existing: options.existing,
            owner: options.owner,
            state: options.state,
        }
    }
}

fn work_of(
    group: &Group,
    container: &Container,
    options: &SpecOptions,
) -> Result<WorkKind, TranslationError> {
    if group.restart_policy != RestartPolicy::Always {
        let retries = if group.restart_policy == RestartPolicy::OnFailure { RETRIES } else { 0 };
        return Ok(WorkKind::Job {
            items: options.items.clone(),
            concurrent: 1,
            time_limit: options.time_limit,
            retries,
        });
    }
    let tcp = container.ports.iter().find(|port| port.protocol == PortProtocol::Tcp);
    let Some(port) = options.port.or(tcp.map(|port| port.port)) else {
        return Err(TranslationError::new(
            "the group restarts always and has no TCP port: it is neither a job nor a service",
        )
        .hint("set `restartPolicy: Never` for a job, or add its port"));
    };
    let probed = container.readiness.as_ref().and_then(|probe| match &probe.action {
        ProbeAction::HttpGet(get) if get.port == port && !get.https => Some(get.path.clone()),
        _ => None,
    });
    let is_public = options.is_public || group.address.as_ref().is_some_and(|address| address.public);
    Ok(WorkKind::Serve { port, ready_path: options.ready_path.clone().or(probed), is_public })
}

/// Secrets in a key vault are not read here.
fn variables(container: &Container) -> impl Iterator<Item = SpecVariable> {
    container.environment.iter().filter_map(|variable| {
        let name = variable.name.clone();
        match &variable.value {
            VariableValue::Plain(value) => Some(SpecVariable::Plain { name, value: value.clone() }),
            VariableValue::Secure(value) => Some(SpecVariable::Secret { name, value: value.clone() }),
            VariableValue::Reference(_) => None,
        }
    })
}
