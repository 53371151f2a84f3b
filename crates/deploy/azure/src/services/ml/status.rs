//! The state of jobs, or of an endpoint and its deployment.

use cudock_base::Secret;
use cudock_http::Method;
use serde_json::{Value, json};

use crate::call::{Body, Call, Plane};
use crate::deployment::{DeploymentIdentity, Phase, WorkShape};
use crate::services::attach::logs::LogPart;
use crate::services::bodies::read::{ended, is, response, text, time};
use crate::services::bodies::request::{call, get};
use crate::services::ml::{EXPERIMENT, Ids, VERSION, ids};
use crate::status::{DeploymentState, JobTime, Status};

/// Maximum number of jobs whose logs are read.
const MOST_LOGS: usize = 20;

pub(super) fn status_calls(identity: &DeploymentIdentity) -> Vec<Call> {
    let Some(ids) = ids(identity) else { return Vec::new() };
    match identity.work {
        WorkShape::Serve { .. } => vec![get(&ids.endpoint(), VERSION), get(&ids.deployment(), VERSION)],
        work @ (WorkShape::Job { .. } | WorkShape::MultiNode { .. }) => {
            let jobs = ids.jobs(work);
            let job = |name: &String| get(&ids.job(name), VERSION);
            // The run history knows when a run began and ended.
            jobs.iter().flat_map(|name| [job(name), details(identity, &ids, name)]).collect()
        }
    }
}

pub(super) fn details(identity: &DeploymentIdentity, ids: &Ids, job: &str) -> Call {
    Call {
        method: Method::GET,
        plane: Plane::MlHistory { region: identity.region.clone(), endpoint: identity.endpoint.clone() },
        path: format!("/history/v1.0{}/experiments/{EXPERIMENT}/runs/{job}/details", ids.workspace),
        body: None,
    }
}

pub(super) fn status(identity: &DeploymentIdentity, responses: &[Option<Value>]) -> Status {
    match identity.work {
        WorkShape::Serve { .. } => of_endpoint(response(responses, 0), response(responses, 1)),
        WorkShape::Job { .. } | WorkShape::MultiNode { .. } => of_jobs(identity, responses),
    }
}

fn of_endpoint(endpoint: Option<&Value>, deployment: Option<&Value>) -> Status {
    let Some(endpoint) = endpoint else { return Status::starting(Phase::Create) };
    let endpoint_state = text(endpoint, "/properties/provisioningState");
    if is(endpoint_state, "Deleting") {
        return Status::new(DeploymentState::Deleting, Phase::Delete);
    }
    let Some(deployment) = deployment else {
        let has_failed = is(endpoint_state, "Failed") || is(endpoint_state, "Canceled");
        let state = if has_failed { DeploymentState::Failed } else { DeploymentState::Starting };
        return Status::new(state, Phase::Create).detail(endpoint_state);
    };
    let from = time(deployment, "/systemData/createdAt");
    let state = text(deployment, "/properties/provisioningState");
    if is(state, "Failed") || is(state, "Canceled") {
        return Status::new(DeploymentState::Failed, Phase::Start).detail(state).billed(from, None);
    }
    let traffic = endpoint.pointer("/properties/traffic").and_then(Value::as_object);
    let is_routed = traffic.is_some_and(|traffic| traffic.values().any(|share| share.as_i64() != Some(0)));
    if is(state, "Succeeded") && is(endpoint_state, "Succeeded") && is_routed {
        let mut status = Status::new(DeploymentState::Running, Phase::Ready).billed(from, None);
        status.url = text(endpoint, "/properties/scoringUri").map(str::to_owned);
        return status;
    }
    let phase = if is(state, "Succeeded") { Phase::Ready } else { Phase::Start };
    Status::starting(phase).detail(state).billed(from, None)
}

/// Each job has two responses: its own and that of the run history.
fn of_jobs(identity: &DeploymentIdentity, responses: &[Option<Value>]) -> Status {
    let jobs: Vec<(Option<&Value>, Option<&Value>)> =
        responses.chunks(2).map(|pair| (response(pair, 0), response(pair, 1))).collect();
    let statuses: Vec<Status> = jobs.iter().map(|(job, details)| of_job(*job, *details)).collect();
    let from = statuses.iter().filter_map(|status| status.billed_from).min();
    let until = statuses.iter().filter_map(|status| status.billed_until).max();
    let is_over =
        |status: &Status| matches!(status.state, DeploymentState::Succeeded | DeploymentState::Failed);
    let running = |status: &&Status| status.state == DeploymentState::Running;
    let chosen = if statuses.iter().all(is_over) {
        statuses.iter().find(|status| status.state == DeploymentState::Failed).or(statuses.first())
    } else {
        let unfinished = || statuses.iter().filter(|status| !is_over(status));
        unfinished().find(running).or_else(|| unfinished().next())
    };
    let mut status = chosen.cloned().unwrap_or_else(|| Status::starting(Phase::Create));
    // The nodes of an own cluster outlast their jobs.
    let until = until.filter(|_| is_over(&status) && identity.node_idle.is_none());
    if let Some(ids) = ids(identity).filter(|_| identity.node_idle.is_some()) {
        let jobs = ids.jobs(identity.work).into_iter().zip(&statuses);
        status.jobs = jobs.filter_map(|(name, job)| JobTime::new(&name, job)).collect();
    }
    status.billed(from, until)
}

pub(super) fn of_job(job: Option<&Value>, details: Option<&Value>) -> Status {
    let Some(job) = job else { return Status::starting(Phase::Create) };
    let state = text(job, "/properties/status");
    let error = details.and_then(|details| {
        let error = details.get("error")?;
        text(error, "/error/message").or_else(|| text(error, "/error/code"))
    });
    let words = error.or(state);
    let from = details.and_then(|details| time(details, "/startTimeUtc"));
    let until = details.and_then(|details| time(details, "/endTimeUtc"));
    let status = match state.unwrap_or_default() {
        "Completed" => ended(Some(0), false),
        "Failed" => ended(error.and_then(exit_code), true),
        "Canceled" => ended(None, true),
        "Running" | "Finalizing" => Status::new(DeploymentState::Running, Phase::Work),
        "CancelRequested" => Status::new(DeploymentState::Deleting, Phase::Delete),
        "Preparing" => Status::starting(Phase::Pull),
        "Queued" | "Starting" | "Provisioning" | "NotStarted" => Status::starting(Phase::Create),
        // It may come back.
        _ => Status::starting(Phase::Start),
    };
    status.detail(words).billed(from, until)
}

/// The number after "exit code", which the service writes into its message.
fn exit_code(message: &str) -> Option<i32> {
    let lower = message.to_ascii_lowercase();
    let (_, rest) = lower.split_once("exit code").or_else(|| lower.split_once("exitcode"))?;
    let rest = rest.trim_start_matches([':', ' ', '=']);
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

pub(super) fn log_calls(identity: &DeploymentIdentity) -> Vec<Call> {
    let Some(ids) = ids(identity) else { return Vec::new() };
    match identity.work {
        WorkShape::Serve { .. } => {
            let request = Body::new(json!({"containerType": "InferenceServer", "tail": 1000}));
            vec![call(Method::POST, &format!("{}/getLogs", ids.deployment()), VERSION, Some(request))]
        }
        work @ (WorkShape::Job { .. } | WorkShape::MultiNode { .. }) => {
            ids.jobs(work).iter().take(MOST_LOGS).map(|name| details(identity, &ids, name)).collect()
        }
    }
}

/// The text of a deployment, or where the files of a job are.
pub(super) fn log_parts(identity: &DeploymentIdentity, responses: &[Option<Value>]) -> Vec<LogPart> {
    let responses = responses.iter().flatten();
    if matches!(identity.work, WorkShape::Serve { .. }) {
        return responses.filter_map(|response| LogPart::text(response, "/content")).collect();
    }
    responses
        .filter_map(|response| response.get("logFiles")?.as_object())
        .flatten()
        .filter(|(name, _)| name.starts_with("user_logs/"))
        .filter_map(|(name, address)| {
            Some(LogPart::File { name: name.clone(), address: Secret::new(address.as_str()?) })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exit_code_is_found_in_the_message() {
        for (message, code) in [
            ("Execution failed. User process exited with exit code 3. See logs", Some(3)),
            ("ExitCode: 137", Some(137)),
            ("process exited, Exit Code: 137", Some(137)),
            ("exit code", None),
            ("", None),
        ] {
            assert_eq!(exit_code(message), code, "{message}");
        }
    }
}
