//! The state of a job, its tasks and nodes.

use cudock_base::{Secret, Timestamp};
use cudock_http::Method;
use serde_json::Value;

use crate::call::Call;
use crate::deployment::{DeploymentIdentity, Phase, WorkShape};
use crate::services::attach::logs::LogPart;
use crate::services::batch::account::{Account, MAIN_TASK, job_path};
use crate::services::batch::outputs::LOGS;
use crate::services::bodies::names::is_name;
use crate::services::bodies::read::{ended, integer, is, list, response, text, time};
use crate::spec::{BlobContainer, Outputs};
use crate::status::{DeploymentState, Status};

/// Maximum number of logs that are read.
const MOST_LOGS: usize = 20;

pub(super) fn status_calls(identity: &DeploymentIdentity) -> Vec<Call> {
    let account = Account::of_identity(identity);
    let job = job_path(identity.names());
    vec![account.get(&job, ""), account.get(&format!("{job}/tasks"), "&$select=id,state,executionInfo")]
}

/// Ends the job and its pool. The activity log has no jobs, so the end time can only be read from
/// the job itself.
pub(super) fn ending_call(identity: &DeploymentIdentity) -> Call {
    let path = format!("{}/terminate", job_path(identity.names()));
    Account::of_identity(identity).call(Method::POST, &path, "", None)
}

/// The pool and its nodes, once Batch has named the pool.
pub(super) fn follow_up_calls(identity: &DeploymentIdentity, responses: &[Option<Value>]) -> Vec<Call> {
    let pool = response(responses, 0).and_then(|job| text(job, "/executionInfo/poolId"));
    let Some(pool) = pool.filter(|pool| is_name(pool)) else { return Vec::new() };
    let account = Account::of_identity(identity);
    vec![account.get(&format!("/pools/{pool}"), ""), account.get(&format!("/pools/{pool}/nodes"), "")]
}

pub(super) fn status(identity: &DeploymentIdentity, responses: &[Option<Value>]) -> Status {
    let Some(job) = response(responses, 0) else { return Status::starting(Phase::Create) };
    let tasks = response(responses, 1).map_or(&[][..], |tasks| list(tasks, "/value"));
    let nodes = response(responses, 3).map_or(&[][..], |nodes| list(nodes, "/value"));
    let allocated = nodes.iter().filter_map(|node| time(node, "/allocationTime")).min();
    let started = tasks.iter().filter_map(|task| time(task, "/executionInfo/startTime")).min();
    // Nodes of an own pool exist for the job only.
    let from = allocated.filter(|_| identity.pool.is_none()).or(started);
    let state = text(job, "/state");
    if is(state, "deleting") {
        return Status::new(DeploymentState::Deleting, Phase::Delete).billed(from, None);
    }
    if let Some(error) = job.pointer("/executionInfo/schedulingError") {
        let message = text(error, "/message").or_else(|| text(error, "/code"));
        return Status::new(DeploymentState::Failed, Phase::Create).detail(message).billed(from, None);
    }
    let until = time(job, "/executionInfo/endTime");
    let reason = text(job, "/executionInfo/terminateReason");
    let are_done = !tasks.is_empty() && tasks.iter().all(|task| is(text(task, "/state"), "completed"));
    let expected = match identity.work {
        WorkShape::Job { tasks } => tasks,
        WorkShape::Serve { .. } | WorkShape::MultiNode { .. } => 1,
    };
    // Tasks come in pages: with many of them, only the end of the job shows that all are done.
    let is_whole = usize::try_from(expected).is_ok_and(|expected| tasks.len() >= expected);
    if is(state, "completed") || (are_done && is_whole) {
        return result(tasks, reason, is(state, "completed")).billed(from, until);
    }
    let pool = response(responses, 2);
    if let Some(error) = pool.and_then(|pool| list(pool, "/resizeErrors").first()) {
        let message = text(error, "/message").or_else(|| text(error, "/code"));
        return Status::new(DeploymentState::Failed, Phase::Create).detail(message).billed(from, None);
    }
    in_progress(tasks, nodes, from)
}

/// The result of all tasks. A job that ended without them reached its time limit, or was ended.
fn result(tasks: &[Value], reason: Option<&str>, has_job_ended: bool) -> Status {
    let failed = tasks.iter().find(|task| is(text(task, "/executionInfo/result"), "failure"));
    let unfinished = tasks.iter().any(|task| !is(text(task, "/state"), "completed"));
    let code = match failed {
        // A task whose files could not be uploaded has failed, too.
        Some(task) => integer(task, "/executionInfo/exitCode").filter(|code| *code != 0),
        None if unfinished || tasks.is_empty() => None,
        None => Some(0),
    };
    let message = failed.and_then(|task| {
        let info = task.get("executionInfo")?;
        text(info, "/containerInfo/error")
            .or_else(|| text(info, "/failureInfo/message"))
            .or_else(|| text(info, "/failureInfo/code"))
    });
    let is_cut = has_job_ended && (unfinished || tasks.is_empty());
    ended(code, failed.is_some() || is_cut).detail(message.or(reason))
}

fn in_progress(tasks: &[Value], nodes: &[Value], from: Option<Timestamp>) -> Status {
    let has_node = |name: &str| nodes.iter().any(|node| is(text(node, "/state"), name));
    // They are billed and never recover.
    if !nodes.is_empty() && (has_node("unusable") || has_node("starttaskfailed")) {
        let message =
            nodes.iter().flat_map(|node| list(node, "/errors")).find_map(|error| text(error, "/message"));
        return Status::new(DeploymentState::Failed, Phase::Pull).detail(message).billed(from, None);
    }
    if tasks.iter().any(|task| is(text(task, "/state"), "running")) {
        return Status::new(DeploymentState::Running, Phase::Work).billed(from, None);
    }
    if has_node("preempted") {
        return Status::new(DeploymentState::Evicted, Phase::Create)
            .detail(Some("preempted"))
            .billed(from, None);
    }
    let phase = if tasks.iter().any(|task| is(text(task, "/state"), "preparing")) || has_node("idle") {
        Phase::Start
    } else if nodes.is_empty() || has_node("creating") {
        Phase::Create
    } else {
        Phase::Pull
    };
    let state = nodes.first().and_then(|node| text(node, "/state"));
    Status::starting(phase).detail(state).billed(from, None)
}

pub(super) fn log_calls(identity: &DeploymentIdentity) -> Vec<Call> {
    let account = Account::of_identity(identity);
    let job = job_path(identity.names());
    let files = |task: String| LOGS.map(|file| format!("{job}/tasks/{task}/files/{file}"));
    logged_tasks(identity).flat_map(files).map(|path| account.get(&path, "")).collect()
}

/// The tasks whose logs are shown.
pub(super) fn logged_tasks(identity: &DeploymentIdentity) -> impl Iterator<Item = String> {
    let tasks = match identity.work {
        WorkShape::Job { tasks } => tasks,
        WorkShape::Serve { .. } | WorkShape::MultiNode { .. } => 1,
    };
    task_ids(tasks).take(MOST_LOGS)
}

/// The ids of this many tasks.
pub(super) fn task_ids(count: u32) -> impl Iterator<Item = String> {
    (0..count).map(move |index| if count > 1 { format!("item-{index}") } else { MAIN_TASK.to_owned() })
}

/// The files are plain text.
pub(super) fn log_parts(responses: &[Option<Value>]) -> Vec<LogPart> {
    responses.iter().flatten().filter_map(|response| LogPart::text(response, "")).collect()
}

/// The URLs at which the responses to [`log_calls`] are kept, one for each.
pub(super) fn kept_logs(identity: &DeploymentIdentity, storage: &BlobContainer) -> Vec<Secret> {
    let blob = |task: &str, log: &str| storage.blob(&Outputs::blob(&identity.run_id, task, log));
    logged_tasks(identity).flat_map(|task| LOGS.map(|log| blob(&task, log))).collect()
}
