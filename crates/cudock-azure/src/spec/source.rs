//! A workload from `cudock.toml`, or from a container group.

use std::path::Path;
use std::time::Duration;

use cudock_base::Timestamp;
use cudock_facts::finding::{Finding, Severity};
use cudock_group::restart::RestartPolicy;
use cudock_group::{Container, Group, Os, PortProtocol, ProbeAction, VariableValue};
use cudock_project::{Manifest, WorkloadKind};

use crate::codes;
use crate::services::TranslationError;
use crate::spec::placed::{SpecPlacement, capacity};
use crate::spec::{
    Checkpoints, DeploymentSpec, ExistingResources, Outputs, RegistryAccess, SpecVariable, WorkKind,
};

/// The port of `cudock serve`.
const DEFAULT_PORT: u16 = 8000;
/// What Container Instances give a container that asks for nothing.
const DEFAULT_CAPACITY: (f64, f64) = (1.0, 1.5);
/// How often a group's container is started again where the service wants a number.
const RETRIES: u32 = 3;

/// What a deployment needs beyond the file that describes the workload.
#[derive(Debug, Clone, PartialEq)]
pub struct SpecOptions {
    pub run_id: String,
    pub subscription: String,
    pub owner: String,
    pub state: Option<String>,
    pub expires: Timestamp,
    /// Of one task of a job.
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
        name: &str,
        manifest: &Manifest,
        placement: SpecPlacement,
        options: SpecOptions,
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
                    ready_path: options.ready_path,
                    is_public: options.is_public,
                }
            }
            WorkloadKind::Job if nodes > 1 => WorkKind::MultiNode {
                nodes,
                processes_per_node: manifest.needs.gpus.unwrap_or(placement.gpus).max(1),
                time_limit: options.time_limit,
            },
            WorkloadKind::Job | WorkloadKind::Sweep => WorkKind::Job {
                items: options.items,
                concurrent: workload.at_once.unwrap_or(placement.instances).max(1),
                time_limit: options.time_limit,
                retries: u32::from(placement.is_spot) * RETRIES,
            },
        };
        let wanted = (
            manifest.needs.cpu.map_or(DEFAULT_CAPACITY.0, f64::from),
            manifest.needs.memory.map_or(DEFAULT_CAPACITY.1, |memory| gib(memory.0)),
        );
        let (cpus, memory_gib) = placement.size.as_deref().and_then(capacity).unwrap_or(wanted);
        Ok(Self {
            name: name.to_owned(),
            run_id: options.run_id,
            subscription: options.subscription,
            region: placement.region,
            target: placement.target,
            size: placement.size,
            gpus: placement.gpus,
            cpus,
            memory_gib,
            instances: placement.instances,
            is_spot: placement.is_spot,
            price_per_hour: placement.price_per_hour,
            image: image.clone(),
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
        })
    }

    /// A container group in a place, and what of it is not deployed.
    pub fn from_group(
        group: &Group,
        placement: SpecPlacement,
        options: SpecOptions,
    ) -> Result<(Self, Vec<Finding>), TranslationError> {
        let [container] = group.containers.as_slice() else {
            return Err(TranslationError::new(format!(
                "the group has {} containers, and a deployment runs one",
                group.containers.len()
            ))
            .hint("run it here with `cudock up -f FILE`, or deploy it with `az container create --file`"));
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
        let losses = losses(group, container);
        let work = work_of(group, container, &options)?;
        let asked = container.resources.as_ref();
        let gpus = asked.and_then(|resources| resources.gpu.as_ref()).map_or(0, |gpu| gpu.count);
        let wanted = asked.map_or(DEFAULT_CAPACITY, |resources| {
            (f64::from(resources.cpu_millis) / 1000.0, gib(resources.memory_bytes))
        });
        let (cpus, memory_gib) = placement.size.as_deref().and_then(capacity).unwrap_or(wanted);
        let credential = group.credentials.iter().find_map(|credential| {
            Some(RegistryAccess::Password {
                server: credential.server.clone(),
                username: credential.username.clone()?,
                password: credential.password.clone()?,
            })
        });
        let spec = Self {
            name: group.name.clone(),
            run_id: options.run_id,
            subscription: options.subscription,
            region: placement.region,
            target: placement.target,
            size: placement.size,
            gpus: placement.gpus.max(gpus),
            cpus,
            memory_gib,
            instances: placement.instances,
            is_spot: placement.is_spot,
            price_per_hour: placement.price_per_hour,
            image: container.image.clone(),
            command: if options.command.is_empty() { container.command.clone() } else { options.command },
            variables: variables(container).chain(options.variables).collect(),
            registry: options.registry.or(credential),
            work,
            expires: options.expires,
            idle: options.idle,
            checkpoints: options.checkpoints,
            outputs: options.outputs,
            existing: options.existing,
            owner: options.owner,
            state: options.state,
        };
        Ok((spec, losses))
    }
}

#[allow(clippy::cast_precision_loss, reason = "memory in GiB, to a part in a million")]
fn gib(bytes: u64) -> f64 {
    (bytes / (1 << 10)) as f64 / f64::from(1 << 20)
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

fn losses(group: &Group, container: &Container) -> Vec<Finding> {
    let lost = |part: String, fix: &str| Finding::new(codes::GROUP_PARTS, Severity::Warning, part, fix);
    let mut losses: Vec<Finding> = container
        .mounts
        .iter()
        .map(|mount| {
            let kind = group.volume(&mount.volume).map_or("unknown", |volume| volume.kind.name());
            lost(
                format!("the volume `{}` ({kind}) at {} is not mounted", mount.volume, mount.path),
                "put its files into the image, or read them from a storage account",
            )
        })
        .collect();
    for variable in &container.environment {
        if matches!(variable.value, VariableValue::Reference(_)) {
            losses.push(lost(
                format!("the variable `{}` refers to a key vault and is not set", variable.name),
                "give its value with --env, or let the program read the key vault",
            ));
        }
    }
    let tcp = container.ports.iter().filter(|port| port.protocol == PortProtocol::Tcp).count();
    let is_single = container.ports.len() <= 1 && tcp == container.ports.len();
    let parts = [
        (
            container.liveness.is_some(),
            "the liveness probe is not deployed",
            "let the program end when it is broken",
        ),
        (
            container.readiness.as_ref().is_some_and(|probe| matches!(probe.action, ProbeAction::Exec(_))),
            "the readiness command is not deployed",
            "name a path with --ready-path",
        ),
        (container.security.is_some(), "the security context is not deployed", "set the user in the image"),
        (group.dns.is_some(), "the DNS settings are not deployed", "use names that Azure's resolver knows"),
        (!is_single, "only the first TCP port is deployed", "serve everything on one port"),
    ];
    losses.extend(
        parts.into_iter().filter(|(is_lost, ..)| *is_lost).map(|(_, part, fix)| lost(part.to_owned(), fix)),
    );
    losses
}
