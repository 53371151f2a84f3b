//! Batch: a job with an automatic pool, and a task for each item.
//!
//! Batch creates the pool with the job and deletes it when the job ends, and the job ends with its last task or at its
//! time limit. The order matters: a job that may end with its last task would end before the first one is added.

mod account;
mod backend;
mod existing;
mod multi_node;
mod open_job;
mod outputs;
mod preflight;
mod rules;
mod status;
mod task_parts;

pub(super) use backend::Batch;

use cudock_facts::Facts;
use std::borrow::Cow;
use std::time::Duration;

use cudock_base::shell::quote;
use cudock_http::Method;
use serde_json::{Value, json};

use crate::call::Body;
use crate::deployment::{Phase, Step, Wait};
use crate::services::batch::account::{ACCOUNT_VERSION, ACCOUNTS, Account, VERSION, job_path};
use crate::services::batch::task_parts::{CHECKPOINTS, INFINIBAND, LOCKED_MEMORY, constraints, variables};
use crate::services::bodies::names::{Existing, Names, Tags};
use crate::services::bodies::request::{body, iso_8601, non_empty, put, resource};
use crate::services::checks::machine::Machine;
use crate::services::reaper::{Address, Outside, OutsideAction};
use crate::services::{Translation, TranslationError};
use crate::spec::{BlobContainer, DeploymentSpec, RegistryAccess, SpecVariable, WorkKind};

pub use open_job::{BatchTasks, open_job};

const TASKS_PER_REQUEST: usize = 100;
/// Time to allocate nodes and pull the image, on top of the time that tasks take.
const START_ALLOWANCE: Duration = Duration::from_secs(3600);
/// Images with a framework take tens of gigabytes, and Docker keeps them on the system's disk.
const DISK_GB: u32 = 256;

fn translate<'s>(facts: &Facts, spec: &'s DeploymentSpec) -> Result<Translation<'s>, TranslationError> {
    let machine = rules::check(facts, spec)?;
    let names = Names::of_spec(spec);
    let existing = match &spec.existing.batch_account {
        Some(text) => Some(Existing::required(text, "a Batch account")?),
        None => None,
    };
    let account = Account::of_spec(spec);
    let path = job_path(names);
    let mut steps = Vec::new();
    if existing.is_none() {
        let properties = json!({"poolAllocationMode": "BatchService", "allowedAuthenticationModes": ["AAD"]});
        let request = put(
            &names.resource(&format!("{ACCOUNTS}/{}", account.name)),
            ACCOUNT_VERSION,
            body(resource(spec, None, &properties)),
        );
        steps.push(Step::new("account", Phase::Create, request));
    }
    let created = account.call(Method::POST, "/jobs", "", Some(job(spec, &machine)));
    let step = Step::new("job", Phase::Create, created).waiting(Wait::Response).billed();
    steps.push(Step { resource: Some(path.clone()), ..step });
    let tasks = tasks(spec, &machine);
    let is_one = tasks.len() == 1;
    for (index, request) in tasks.into_iter().enumerate() {
        let call = account.call(Method::POST, &format!("{path}/addtaskcollection"), "", Some(request));
        let id = if is_one { "tasks".to_owned() } else { format!("tasks-{index}") };
        steps.push(Step::new(id, Phase::Start, call).waiting(Wait::Response));
    }
    let end = body(json!({"onAllTasksComplete": "terminatejob"}));
    let call = account.call(Method::PATCH, &path, "", Some(end));
    steps.push(Step::new("end", Phase::Start, call).waiting(Wait::Response));
    let outside = match existing {
        None => Outside::default(),
        Some(existing) => Outside {
            scope: Some((existing, ACCOUNTS)),
            actions: vec![OutsideAction {
                name: "Delete_the_job".to_owned(),
                method: "DELETE",
                address: Address::Batch {
                    plane: account.plane(),
                    path: format!("{path}?api-version={VERSION}"),
                },
                is_awaited: true,
            }],
        },
    };
    Ok(Translation { steps, outside, losses: rules::lost(spec, existing.is_some()) })
}

fn job(spec: &DeploymentSpec, machine: &Machine) -> Body {
    let names = Names::of_spec(spec);
    let metadata = metadata(&Tags::new(spec));
    let (nodes, retries) = match &spec.work {
        WorkKind::MultiNode { nodes, .. } => (*nodes, 0),
        WorkKind::Job { retries, .. } => (spec.instances, *retries),
        WorkKind::Serve { .. } => (spec.instances, 0),
    };
    let concurrent = match &spec.work {
        WorkKind::Job { concurrent, .. } => Some(*concurrent),
        _ => None,
    };
    let pool = json!({
        "vmSize": machine.size,
        "virtualMachineConfiguration": {
            "imageReference": {
                "publisher": "microsoft-dsvm",
                "offer": "ubuntu-hpc",
                "sku": "2204",
                "version": "latest",
            },
            "nodeAgentSKUId": "batch.node.ubuntu 22.04",
            "containerConfiguration": {
                // The management API spells it `DockerCompatible`.
                "type": "dockerCompatible",
                "containerImageNames": [spec.image],
                "containerRegistries": non_empty(spec.registry.iter().filter_map(registry)),
            },
            "osDisk": {"diskSizeGB": DISK_GB},
        },
        "targetDedicatedNodes": if spec.is_spot { 0 } else { nodes },
        "targetLowPriorityNodes": if spec.is_spot { nodes } else { 0 },
        "resizeTimeout": iso_8601(Duration::from_secs(15 * 60)),
        "enableInterNodeCommunication": matches!(spec.work, WorkKind::MultiNode { .. }),
        "taskSlotsPerNode": 1,
        "mountConfiguration": non_empty(storage(spec).map(mount)),
        "metadata": metadata,
    });
    let pool_info = match &spec.existing.pool {
        Some(pool) => json!({"poolId": pool}),
        // Batch creates the pool with the job and deletes it with it.
        None => json!({"autoPoolSpecification": {
            "autoPoolIdPrefix": "cudock",
            "poolLifetimeOption": "job",
            "keepAlive": false,
            "pool": pool,
        }}),
    };
    let request = body(json!({
        "id": names.unique(),
        "displayName": spec.name,
        "maxParallelTasks": concurrent,
        "constraints": constraints(job_limit(spec), retries),
        "poolInfo": pool_info,
        "metadata": metadata,
    }));
    let request = match storage(spec) {
        Some(storage) => request.secret(
            "/poolInfo/autoPoolSpecification/pool/mountConfiguration/0/azureBlobFileSystemConfiguration/sasKey",
            storage.signature(),
        ),
        None => request,
    };
    match &spec.registry {
        Some(RegistryAccess::Password { password, .. }) => request.secret(
            "/poolInfo/autoPoolSpecification/pool/virtualMachineConfiguration/containerConfiguration/containerRegistries/0/password",
            password.clone(),
        ),
        _ => request,
    }
}

/// Jobs and pools have no tags.
fn metadata(tags: &Tags) -> Vec<Value> {
    let pairs = [
        ("cudock-run", Some(&tags.run)),
        ("cudock-name", Some(&tags.name)),
        ("cudock-owner", Some(&tags.owner)),
        ("cudock-state", tags.state.as_ref()),
        ("cudock-delete-after", Some(&tags.delete_after)),
    ];
    let pairs = pairs.into_iter().filter_map(|(name, value)| Some((name, value?)));
    pairs.map(|(name, value)| json!({"name": name, "value": value})).collect()
}

fn storage(spec: &DeploymentSpec) -> Option<&BlobContainer> {
    spec.checkpoints.as_ref()?.storage.as_ref()
}

/// A container of blobs as a directory of each node. The signature is inserted when the request is sent.
fn mount(storage: &BlobContainer) -> Value {
    json!({"azureBlobFileSystemConfiguration": {
        "accountName": storage.account(),
        "containerName": storage.name(),
        "sasKey": "",
        "relativeMountPath": CHECKPOINTS,
        // Containers run as other users than the one that mounts.
        "blobfuseOptions": "-o allow_other",
    }})
}

/// The sign-in to the registry, whose password is inserted when the request is sent.
fn registry(access: &RegistryAccess) -> Option<Value> {
    match access {
        RegistryAccess::Password { server, username, .. } => {
            Some(json!({"registryServer": server, "username": username, "password": ""}))
        }
        RegistryAccess::Identity { .. } => None,
    }
}

/// The longest time that all tasks can take, with their retries.
fn job_limit(spec: &DeploymentSpec) -> Duration {
    let work = match &spec.work {
        WorkKind::Job { items, concurrent, time_limit, retries } => {
            let tasks = u32::try_from(items.len().max(1)).unwrap_or(u32::MAX);
            let rounds = tasks.div_ceil((*concurrent).min(spec.instances).max(1));
            time_limit.saturating_mul(rounds).saturating_mul(retries.saturating_add(1))
        }
        WorkKind::MultiNode { time_limit, .. } => *time_limit,
        WorkKind::Serve { .. } => Duration::ZERO,
    };
    work.saturating_add(START_ALLOWANCE)
}

/// The requests that add all tasks.
fn tasks(spec: &DeploymentSpec, machine: &Machine) -> Vec<Body> {
    let tasks: Vec<Value> = match &spec.work {
        WorkKind::MultiNode { nodes, processes_per_node, time_limit } => {
            vec![multi_node::task(spec, machine, (*nodes, *processes_per_node), *time_limit)]
        }
        WorkKind::Job { items, time_limit, retries, .. } => {
            let none = [Vec::new()];
            let items = if items.is_empty() { none.as_slice() } else { items };
            let ids = status::task_ids(u32::try_from(items.len()).unwrap_or(u32::MAX));
            let options = run_options(spec, machine);
            let constraints = constraints(*time_limit, *retries);
            ids.zip(items).map(|(id, item)| task(spec, &id, item, &options, &constraints)).collect()
        }
        WorkKind::Serve { .. } => Vec::new(),
    };
    let request = |tasks: &[Value]| with_secrets(body(json!({"value": tasks})), spec, tasks.len());
    tasks.chunks(TASKS_PER_REQUEST).map(request).collect()
}

fn with_secrets(mut request: Body, spec: &DeploymentSpec, tasks: usize) -> Body {
    for task in 0..tasks {
        for (index, variable) in spec.variables.iter().enumerate() {
            if let SpecVariable::Secret { value, .. } = variable {
                let pointer = format!("/value/{task}/environmentSettings/{index}/value");
                request = request.secret(pointer, value.clone());
            }
        }
        request = outputs::with_signature(request, spec, &format!("/value/{task}"));
    }
    request
}

/// The options of Docker besides image and arguments.
fn run_options(spec: &DeploymentSpec, machine: &Machine) -> String {
    let mut options = vec!["--rm --shm-size=8g".to_owned()];
    if machine.has_infiniband {
        options.push(LOCKED_MEMORY.to_owned());
        // It is unknown whether the image of an existing pool has the driver; without it, Docker
        // refuses the device.
        options.extend(spec.existing.pool.is_none().then(|| INFINIBAND.to_owned()));
    }
    options.extend(linked(spec).first().map(|program| format!("--entrypoint {}", quote(program))));
    options.join(" ")
}

fn task(spec: &DeploymentSpec, id: &str, item: &[String], options: &str, constraints: &Value) -> Value {
    let command = linked(spec);
    let arguments = command.get(1..).unwrap_or_default();
    let words: Vec<_> = arguments.iter().chain(item).map(|word| quote(word)).collect();
    json!({
        "id": id,
        "commandLine": words.join(" "),
        "containerSettings": {"imageName": spec.image, "containerRunOptions": options},
        "environmentSettings": variables(spec),
        "outputFiles": outputs::files(spec, id),
        "constraints": constraints,
    })
}

/// The command, after the mounted container was put in the place of the directory. Batch passes its directories on.
fn linked(spec: &DeploymentSpec) -> Cow<'_, [String]> {
    let Some(checkpoints) = &spec.checkpoints else { return Cow::Borrowed(&spec.command) };
    let script = format!(
        "mkdir -p \"$(dirname \"$0\")\" && rm -rf \"$0\" && ln -s \"$AZ_BATCH_NODE_MOUNTS_DIR/{CHECKPOINTS}\" \"$0\" && exec \"$@\""
    );
    let shell = ["/bin/sh".to_owned(), "-c".to_owned(), script, checkpoints.directory.clone()];
    Cow::Owned(shell.into_iter().chain(spec.command.iter().cloned()).collect())
}
