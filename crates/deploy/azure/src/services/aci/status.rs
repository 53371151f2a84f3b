//! The state of a container group.

use serde_json::Value;

use crate::call::Call;
use crate::deployment::{DeploymentIdentity, Phase, WorkShape};
use crate::services::aci::{VERSION, containers, group_id};
use crate::services::attach::logs::LogPart;
use crate::services::bodies::names::Names;
use crate::services::bodies::read::{ended, integer, is, list, response, text, time};
use crate::services::bodies::request::get;
use crate::status::{DeploymentState, Status};

pub(super) fn status_calls(names: Names<'_>) -> Vec<Call> {
    vec![get(&group_id(names), VERSION)]
}

pub(super) fn status(identity: &DeploymentIdentity, responses: &[Option<Value>]) -> Status {
    let Some(group) = response(responses, 0) else { return Status::starting(Phase::Create) };
    let containers = list(group, "/properties/containers");
    let state =
        |container: &Value| text(container, "/properties/instanceView/currentState/state").map(str::to_owned);
    let detail = containers.iter().find_map(|container| {
        text(container, "/properties/instanceView/currentState/detailStatus").map(str::to_owned).or_else(
            || {
                let event = list(container, "/properties/instanceView/events").last()?;
                text(event, "/message").map(str::to_owned)
            },
        )
    });
    let from = containers
        .iter()
        .filter_map(|container| time(container, "/properties/instanceView/currentState/startTime"))
        .min();
    let are_all =
        |name: &str| !containers.is_empty() && containers.iter().all(|c| is(state(c).as_deref(), name));
    if is(text(group, "/properties/provisioningState"), "Failed") {
        return Status::new(DeploymentState::Failed, Phase::Create).detail(detail);
    }
    if are_all("Terminated") {
        let until = containers
            .iter()
            .filter_map(|container| time(container, "/properties/instanceView/currentState/finishTime"))
            .max();
        let codes =
            containers.iter().filter_map(|c| integer(c, "/properties/instanceView/currentState/exitCode"));
        // The first one that failed, or 0.
        let code = codes.max_by_key(|code| *code != 0);
        let has_failed = is(text(group, "/properties/instanceView/state"), "Failed");
        return ended(code, has_failed).detail(detail).billed(from, until);
    }
    if containers.iter().any(|container| is(state(container).as_deref(), "Running")) {
        let phase = if matches!(identity.work, WorkShape::Serve { .. }) { Phase::Ready } else { Phase::Work };
        let mut status = Status::new(DeploymentState::Running, phase).detail(detail).billed(from, None);
        if let (WorkShape::Serve { port, .. }, Some(ip)) =
            (identity.work, text(group, "/properties/ipAddress/ip"))
        {
            let host = text(group, "/properties/ipAddress/fqdn").unwrap_or(ip);
            status.url = Some(format!("http://{host}:{port}"));
        }
        return status;
    }
    let has_event = |name: &str| {
        containers.iter().any(|container| {
            list(container, "/properties/instanceView/events")
                .iter()
                .any(|event| is(text(event, "/name"), name))
        })
    };
    let phase = match (has_event("Pulled"), has_event("Pulling")) {
        (true, _) => Phase::Start,
        (false, true) => Phase::Pull,
        (false, false) => Phase::Create,
    };
    Status::starting(phase).detail(detail).billed(from, None)
}

pub(super) fn log_calls(identity: &DeploymentIdentity) -> Vec<Call> {
    container_ids(identity).map(|id| get(&format!("{id}/logs"), VERSION)).collect()
}

fn container_ids(identity: &DeploymentIdentity) -> impl Iterator<Item = String> {
    let group = group_id(identity.names());
    containers(identity.work).into_iter().map(move |name| format!("{group}/containers/{name}"))
}

/// The id of the container in which commands are run.
pub(super) fn first_container(identity: &DeploymentIdentity) -> String {
    container_ids(identity).next().unwrap_or_default()
}

pub(super) fn log_parts(responses: &[Option<Value>]) -> Vec<LogPart> {
    responses.iter().flatten().filter_map(|response| LogPart::text(response, "/content")).collect()
}
