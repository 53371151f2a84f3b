//! The state of a virtual machine and of the container on it.

use serde_json::Value;

use crate::call::Call;
use crate::deployment::{DeploymentIdentity, Phase, WorkShape};
use crate::services::attach::exec::script_output;
use crate::services::attach::logs::LogPart;
use crate::services::bodies::names::Names;
use crate::services::bodies::read::{deepest_error, ended, integer, is, list, response, text, time};
use crate::services::bodies::request::get;
use crate::services::bodies::template::RESOURCES;
use crate::services::vm::names::{ADDRESSES, COMPUTE, MACHINES, NAME, NETWORK, STATE};
use crate::services::vm::{cloud_init, script_call};
use crate::status::{DeploymentState, Status};

pub(super) fn status_calls(names: Names<'_>) -> Vec<Call> {
    let machine = names.resource(&format!("{MACHINES}/{NAME}"));
    let view = |id: &str| {
        let mut call = get(id, COMPUTE);
        call.path.push_str("&$expand=instanceView");
        call
    };
    vec![
        get(&names.resource(&format!("Microsoft.Resources/deployments/{NAME}")), RESOURCES),
        view(&machine),
        view(&format!("{machine}/runCommands/{STATE}")),
        get(&names.resource(&format!("{ADDRESSES}/{NAME}")), NETWORK),
    ]
}

pub(super) fn status(identity: &DeploymentIdentity, responses: &[Option<Value>]) -> Status {
    let deployment = response(responses, 0);
    let outcome = deployment.and_then(|deployment| text(deployment, "/properties/provisioningState"));
    let Some(machine) = response(responses, 1) else { return without_machine(identity, deployment, outcome) };
    let from = time(machine, "/properties/timeCreated");
    let power = power_state(machine);
    if is(text(machine, "/properties/provisioningState"), "Deleting") {
        return Status::new(DeploymentState::Deleting, Phase::Delete).billed(from, None);
    }
    if is(power, "deallocated") || is(power, "deallocating") {
        let state = if identity.is_spot { DeploymentState::Evicted } else { DeploymentState::Failed };
        return Status::new(state, Phase::Work).detail(power).billed(from, None);
    }
    if is(outcome, "Failed") || is(outcome, "Canceled") {
        let message = deployment.and_then(|d| d.pointer("/properties/error")).and_then(deepest_error);
        return Status::new(DeploymentState::Failed, Phase::Create).detail(message).billed(from, None);
    }
    let command = response(responses, 2);
    let execution = command.and_then(|command| text(command, "/properties/instanceView/executionState"));
    let code = command.and_then(|command| integer(command, "/properties/instanceView/exitCode"));
    let output = command.and_then(|command| text(command, "/properties/instanceView/output"));
    let is_service = matches!(identity.work, WorkShape::Serve { .. });
    let status = match execution {
        Some("Succeeded" | "Failed") if is_service => {
            let is_ready = execution == Some("Succeeded") && code.unwrap_or(0) == 0;
            let state = if is_ready { DeploymentState::Running } else { DeploymentState::Failed };
            let mut status = Status::new(state, Phase::Ready);
            status.url =
                response(responses, 3).filter(|_| is_ready).and_then(|address| url(identity, address));
            status.detail(output.filter(|_| !is_ready).and_then(last_line))
        }
        Some("Succeeded") => ended(Some(code.unwrap_or(0)), false),
        Some("Failed") => ended(code, true).detail(output.and_then(last_line)),
        Some("TimedOut" | "Canceled") => Status::new(DeploymentState::Failed, Phase::Work).detail(execution),
        Some("Running") if !is_service => Status::new(DeploymentState::Running, Phase::Work),
        Some(_) => Status::starting(Phase::Start).detail(power),
        None => Status::starting(Phase::Create).detail(power.or(outcome)),
    };
    status.billed(from, None)
}

/// It does not exist yet, or an eviction has deleted it.
fn without_machine(
    identity: &DeploymentIdentity,
    deployment: Option<&Value>,
    outcome: Option<&str>,
) -> Status {
    if is(outcome, "Failed") || is(outcome, "Canceled") {
        let message = deployment.and_then(|d| d.pointer("/properties/error")).and_then(deepest_error);
        return Status::new(DeploymentState::Failed, Phase::Create)
            .detail(message.or(outcome.map(str::to_owned)));
    }
    if is(outcome, "Succeeded") {
        let state = if identity.is_spot { DeploymentState::Evicted } else { DeploymentState::Failed };
        return Status::new(state, Phase::Work).detail(Some("the machine was deleted"));
    }
    Status::starting(Phase::Create).detail(outcome)
}

/// The word after `PowerState/`; it may be absent for a while.
fn power_state(machine: &Value) -> Option<&str> {
    list(machine, "/properties/instanceView/statuses")
        .iter()
        .filter_map(|status| text(status, "/code"))
        .find_map(|code| code.strip_prefix("PowerState/"))
}

fn url(identity: &DeploymentIdentity, address: &Value) -> Option<String> {
    let WorkShape::Serve { port, is_public: true } = identity.work else { return None };
    text(address, "/properties/ipAddress").map(|ip| format!("http://{ip}:{port}"))
}

fn last_line(output: &str) -> Option<&str> {
    output.lines().rev().find(|line| !line.trim().is_empty())
}

pub(super) fn log_call(names: Names<'_>) -> Call {
    script_call(names, cloud_init::LOG)
}

pub(super) fn log_parts(responses: &[Option<Value>]) -> Vec<LogPart> {
    let printed = responses.iter().flatten().filter_map(script_output);
    printed.map(|(stdout, stderr)| LogPart::Text(format!("{stdout}{stderr}"))).collect()
}
