//! A job on several nodes as one multi-instance task.
//!
//! The application command of such a task runs on the first node only, and the coordination command on all of them. So the
//! latter starts the processes of a node in the background, as containers with the variables that distributed frameworks
//! read, and the former waits for those of the first node.

use std::fmt::Write as _;
use std::time::Duration;

use cudock_base::shell::quote;
use serde_json::{Value, json};

use crate::services::batch::account::MAIN_TASK;
use crate::services::batch::outputs;
use crate::services::batch::task_parts::{CHECKPOINTS, INFINIBAND, LOCKED_MEMORY, constraints, variables};
use crate::services::checks::machine::Machine;
use crate::spec::DeploymentSpec;

/// The port on which the processes find each other.
const PORT: u16 = 29_500;

pub(super) fn task(
    spec: &DeploymentSpec,
    machine: &Machine,
    (nodes, processes_per_node): (u32, u32),
    time_limit: Duration,
) -> Value {
    // The commands run on the node itself, which alone can start containers: there are no container settings.
    json!({
        "id": MAIN_TASK,
        "commandLine": shell(&wait(processes_per_node)),
        "environmentSettings": variables(spec),
        "outputFiles": outputs::files(spec, MAIN_TASK),
        "constraints": constraints(time_limit, 0),
        "userIdentity": {"autoUser": {"scope": "pool", "elevationLevel": "admin"}},
        "multiInstanceSettings": {
            "numberOfInstances": nodes,
            "coordinationCommandLine": shell(&start(spec, machine, nodes, processes_per_node)),
        },
    })
}

fn shell(script: &str) -> String {
    format!("/bin/bash -c {}", quote(script))
}

/// Starts the processes of a node. The first node has rank 0, the others follow in the order of Batch's list.
fn start(spec: &DeploymentSpec, machine: &Machine, nodes: u32, processes_per_node: u32) -> String {
    let mut options = format!("--network host --ipc host {LOCKED_MEMORY} --gpus all");
    let mut device = String::new();
    if machine.has_infiniband {
        device = format!("device=\n[ ! -d /dev/infiniband ] || device={INFINIBAND}\n");
        options.push_str(" $device");
    }
    for name in ["MASTER_ADDR", "MASTER_PORT", "NODE_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"] {
        let _ = write!(options, " --env {name}");
    }
    if let Some(checkpoints) = &spec.checkpoints {
        let target = quote(&checkpoints.directory);
        let _ = write!(options, " --volume \"$AZ_BATCH_NODE_MOUNTS_DIR/{CHECKPOINTS}\":{target}");
    }
    for variable in &spec.variables {
        let _ = write!(options, " --env {}", quote(variable.name()));
    }
    let (program, arguments) = spec.command.split_at(spec.command.len().min(1));
    let entrypoint = program.first().map(|program| quote(program)).unwrap_or_default();
    let arguments: Vec<_> = arguments.iter().map(|word| quote(word)).collect();
    let processes = u64::from(nodes) * u64::from(processes_per_node);
    format!(
        "set -eu\n\
         export MASTER_ADDR=${{AZ_BATCH_MASTER_NODE%%:*}} MASTER_PORT={PORT} WORLD_SIZE={processes} LOCAL_WORLD_SIZE={processes_per_node}\n\
         others=$(echo \"$AZ_BATCH_HOST_LIST\" | tr ',' '\\n' | grep -vxF \"$MASTER_ADDR\" || true)\n\
         own=$(hostname -I | tr ' ' '\\n' | grep -xF -f <(echo \"$AZ_BATCH_HOST_LIST\" | tr ',' '\\n') | head -n 1)\n\
         export NODE_RANK=0\n\
         [ \"$own\" = \"$MASTER_ADDR\" ] || NODE_RANK=$(echo \"$others\" | grep -nxF \"$own\" | cut -d: -f1)\n\
         {device}for local in $(seq 0 {last}); do\n\
         docker run -d --name cudock-$local {options} --env LOCAL_RANK=$local --env RANK=$((NODE_RANK * {processes_per_node} + local)) --entrypoint {entrypoint} {image} {arguments}\n\
         done",
        last = processes_per_node.saturating_sub(1),
        image = quote(&spec.image),
        arguments = arguments.join(" "),
    )
}

/// Waits for the processes of the first node; the first exit code other than 0 is that of the task.
fn wait(processes_per_node: u32) -> String {
    format!(
        "docker logs -f cudock-0 2>&1 &\n\
         result=0\n\
         for local in $(seq 0 {last}); do\n\
         code=$(docker wait cudock-$local) || code=125\n\
         [ \"$result\" -ne 0 ] || result=$code\n\
         done\n\
         exit \"$result\"",
        last = processes_per_node.saturating_sub(1),
    )
}
