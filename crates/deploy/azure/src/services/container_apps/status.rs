//! The state of an app, or of the executions of a job.

use cudock_base::Secret;
use cudock_http::Method;
use serde_json::Value;

use crate::call::Call;
use crate::deployment::{DeploymentIdentity, Phase, WorkShape};
use crate::services::attach::logs::LogPart;
use crate::services::bodies::names::is_name;
use crate::services::bodies::read::{ended, integer, is, list, response, text, time};
use crate::services::bodies::request::{call, get};
use crate::services::container_apps::{APP, JOB, VERSION};
use crate::status::{DeploymentState, Status};

/// The only version with the replicas of a job.
const REPLICAS_VERSION: &str = "2023-11-02-preview";

fn id(identity: &DeploymentIdentity) -> String {
    let is_app = matches!(identity.work, WorkShape::Serve { .. });
    identity.names().resource(if is_app { APP } else { JOB })
}

pub(super) fn status_calls(identity: &DeploymentIdentity) -> Vec<Call> {
    vec![first_call(identity)]
}

fn first_call(identity: &DeploymentIdentity) -> Call {
    match identity.work {
        WorkShape::Serve { .. } => get(&id(identity), VERSION),
        WorkShape::Job { .. } | WorkShape::MultiNode { .. } => {
            get(&format!("{}/executions", id(identity)), VERSION)
        }
    }
}

/// The replicas of the newest revision, or of the execution that began last.
pub(super) fn follow_up_calls(identity: &DeploymentIdentity, responses: &[Option<Value>]) -> Vec<Call> {
    let Some(first) = response(responses, 0) else { return Vec::new() };
    let id = id(identity);
    let path = match identity.work {
        WorkShape::Serve { .. } => text(first, "/properties/latestRevisionName")
            .filter(|name| is_name(name))
            .map(|name| (format!("{id}/revisions/{name}/replicas"), VERSION)),
        WorkShape::Job { .. } | WorkShape::MultiNode { .. } => list(first, "/value")
            .iter()
            .max_by_key(|execution| time(execution, "/properties/startTime"))
            .and_then(|execution| text(execution, "/name"))
            .filter(|name| is_name(name))
            .map(|name| (format!("{id}/executions/{name}/replicas"), REPLICAS_VERSION)),
    };
    path.map(|(path, version)| get(&path, version)).into_iter().collect()
}

pub(super) fn status(identity: &DeploymentIdentity, responses: &[Option<Value>]) -> Status {
    let Some(first) = response(responses, 0) else { return Status::starting(Phase::Create) };
    let replicas = response(responses, 1);
    match identity.work {
        WorkShape::Serve { .. } => of_app(first, replicas),
        WorkShape::Job { tasks } => of_executions(list(first, "/value"), tasks, replicas),
        WorkShape::MultiNode { .. } => of_executions(list(first, "/value"), 1, replicas),
    }
}

fn of_app(app: &Value, replicas: Option<&Value>) -> Status {
    let from = time(app, "/systemData/createdAt");
    let provisioning = text(app, "/properties/provisioningState");
    let running = text(app, "/properties/runningStatus");
    let (phase, detail) = progress(replicas);
    if is(provisioning, "Failed") || is(provisioning, "Canceled") {
        return Status::new(DeploymentState::Failed, phase)
            .detail(detail.or(provisioning))
            .billed(from, None);
    }
    if is(provisioning, "Deleting") {
        return Status::new(DeploymentState::Deleting, Phase::Delete).billed(from, None);
    }
    let newest = text(app, "/properties/latestRevisionName");
    let is_ready = newest.is_some() && newest == text(app, "/properties/latestReadyRevisionName");
    if is(provisioning, "Succeeded") && is(running, "Running") && is_ready {
        let mut status =
            Status::new(DeploymentState::Running, Phase::Ready).detail(detail).billed(from, None);
        status.url =
            text(app, "/properties/configuration/ingress/fqdn").map(|host| format!("https://{host}"));
        return status;
    }
    if is(running, "Stopped") {
        return Status::new(DeploymentState::Failed, phase).detail(detail.or(running)).billed(from, None);
    }
    Status::starting(phase).detail(detail.or(running)).billed(from, None)
}

fn of_executions(executions: &[Value], tasks: u32, replicas: Option<&Value>) -> Status {
    if executions.is_empty() {
        return Status::starting(Phase::Start);
    }
    let state = |execution: &Value| text(execution, "/properties/status").map(str::to_owned);
    let from = executions.iter().filter_map(|execution| time(execution, "/properties/startTime")).min();
    let has_ended = |execution: &&Value| {
        let state = state(execution);
        ["Succeeded", "Failed", "Stopped"].iter().any(|end| is(state.as_deref(), end))
    };
    let missing = usize::try_from(tasks).unwrap_or(usize::MAX) > executions.len();
    if !missing && executions.iter().all(|execution| has_ended(&execution)) {
        let until = executions.iter().filter_map(|execution| time(execution, "/properties/endTime")).max();
        let has_failed = !executions.iter().all(|execution| is(state(execution).as_deref(), "Succeeded"));
        let code = executions.iter().filter_map(exit_code).max_by_key(|code| *code != 0);
        let code = code.or((!has_failed).then_some(0));
        let state =
            executions.iter().filter_map(state).find(|state| !state.eq_ignore_ascii_case("Succeeded"));
        return ended(code, has_failed).detail(state).billed(from, until);
    }
    let (phase, detail) = progress(replicas);
    let is_working = executions.iter().any(|execution| is(state(execution).as_deref(), "Running"));
    if is_working && (replicas.is_none() || phase == Phase::Ready) {
        return Status::new(DeploymentState::Running, Phase::Work).detail(detail).billed(from, None);
    }
    Status::starting(phase.min(Phase::Start)).detail(detail).billed(from, None)
}

/// The exit code of an execution's container; -1 while it runs.
fn exit_code(execution: &Value) -> Option<i32> {
    list(execution, "/properties/detailedStatus/replicas")
        .iter()
        .flat_map(|replica| list(replica, "/containers"))
        .filter_map(|container| integer(container, "/code"))
        .find(|code| *code >= 0)
}

/// The progress of the replicas, in the service's own words.
fn progress(replicas: Option<&Value>) -> (Phase, Option<&str>) {
    let detail = containers(replicas).find_map(|container| text(container, "/runningStateDetails"));
    let phase = if containers(replicas).any(|container| is(text(container, "/runningState"), "Running")) {
        Phase::Ready
    } else if detail.is_some_and(|detail| detail.contains("PullingImage")) {
        Phase::Pull
    } else {
        Phase::Start
    };
    (phase, detail)
}

pub(super) fn log_calls(identity: &DeploymentIdentity) -> Vec<Call> {
    let token = call(Method::POST, &format!("{}/getAuthToken", id(identity)), REPLICAS_VERSION, None);
    vec![first_call(identity), token]
}

/// The streams of the containers; the replicas are in the response to the request that follows the
/// token's.
pub(super) fn log_parts(responses: &[Option<Value>]) -> Vec<LogPart> {
    let Some(token) = token(responses) else { return Vec::new() };
    containers(response(responses, 2))
        .filter_map(|container| text(container, "/logStreamEndpoint"))
        .map(|address| LogPart::Stream { address: address.to_owned(), token: token.clone() })
        .collect()
}

/// The endpoint that starts a program in the first running container, and the token for it.
pub(super) fn exec_endpoint(responses: &[Option<Value>]) -> Option<(&str, Secret)> {
    let is_running = |container: &&Value| is(text(container, "/runningState"), "Running");
    let address = containers(response(responses, 2))
        .filter(is_running)
        .find_map(|container| text(container, "/execEndpoint"));
    Some((address?, token(responses)?))
}

/// The token in the second response to [`log_calls`].
fn token(responses: &[Option<Value>]) -> Option<Secret> {
    response(responses, 1).and_then(|response| text(response, "/properties/token")).map(Secret::new)
}

fn containers(replicas: Option<&Value>) -> impl Iterator<Item = &Value> {
    let replicas = replicas.map_or(&[][..], |replicas| list(replicas, "/value"));
    replicas.iter().flat_map(|replica| list(replica, "/properties/containers"))
}
