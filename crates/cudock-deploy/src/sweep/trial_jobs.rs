//! Trials as jobs of a service: how one is started, asked for and stopped.

use std::collections::BTreeMap;
use std::time::Duration;

use cudock_azure::BatchTasks;
use cudock_base::Timestamp;
use cudock_sweep::AttemptEnd;
use serde_json::Value;

use crate::cloud::{ApiError, ApiErrorReason, CloudApi};

/// The signal that ends a task, for the report.
const TERMINATED: i32 = 15;

/// Where the trials of one size run.
#[derive(Debug, Clone)]
pub(super) enum TrialJobs {
    /// As tasks of an open job.
    Batch(BatchTasks),
}

/// What became of a job.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum JobState {
    Waiting,
    Running,
    Ended { end: AttemptEnd, ran: Duration },
}

/// The states of jobs by their names; one that does not exist has none.
pub(super) struct JobStates {
    pub(super) states: BTreeMap<String, JobState>,
    /// How long the service wants to be left alone.
    pub(super) retry_after: Option<Duration>,
}

impl TrialJobs {
    /// Starts a job with this command. The same name twice starts one.
    pub(super) fn start(&self, cloud: &dyn CloudApi, id: &str, command: &[String]) -> Result<(), ApiError> {
        let Self::Batch(tasks) = self;
        match cloud.send(&tasks.add(id, command)) {
            // It exists already.
            Err(error) if error.reason != ApiErrorReason::Refused => Err(error),
            _ => Ok(()),
        }
    }

    /// Ends a job; one that has ended or does not exist is left alone.
    pub(super) fn stop(&self, cloud: &dyn CloudApi, id: &str) -> Result<(), ApiError> {
        let Self::Batch(tasks) = self;
        match cloud.send(&tasks.terminate(id)) {
            Err(error) if !matches!(error.reason, ApiErrorReason::NotFound | ApiErrorReason::Refused) => {
                Err(error)
            }
            _ => Ok(()),
        }
    }

    pub(super) fn states(&self, cloud: &dyn CloudApi) -> Result<JobStates, ApiError> {
        let Self::Batch(tasks) = self;
        let reply = cloud.send(&tasks.list())?;
        let listed = match reply.body.get("value").and_then(Value::as_array) {
            Some(listed) if reply.body.get("odata.nextLink").is_none() => listed.clone(),
            // More than one page.
            _ => cloud.list(&tasks.list())?,
        };
        let states = listed.iter().filter_map(|task| {
            let id = task.get("id")?.as_str()?;
            Some((id.to_owned(), task_state(task)))
        });
        Ok(JobStates { states: states.collect(), retry_after: reply.retry_after })
    }

    /// What a job has written so far; none before it has written anything.
    pub(super) fn output(&self, cloud: &dyn CloudApi, id: &str) -> Result<Option<String>, ApiError> {
        let Self::Batch(tasks) = self;
        match cloud.send(&tasks.output(id)) {
            Ok(reply) => Ok(reply.body.as_str().map(str::to_owned)),
            // It has written nothing yet, or its node is gone.
            Err(error) if error.reason == ApiErrorReason::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

fn task_state(task: &Value) -> JobState {
    match task.get("state").and_then(Value::as_str) {
        Some("running") => JobState::Running,
        Some("completed") => {
            let time = |name: &str| {
                let text = task.pointer(&format!("/executionInfo/{name}")).and_then(Value::as_str)?;
                Timestamp::parse(text)
            };
            let code = task.pointer("/executionInfo/exitCode").and_then(Value::as_i64);
            let end = match code.and_then(|code| i32::try_from(code).ok()) {
                Some(code) => AttemptEnd::Exited { code },
                None => AttemptEnd::Signaled { signal: TERMINATED },
            };
            JobState::Ended { end, ran: length(time("startTime"), time("endTime")) }
        }
        _ => JobState::Waiting,
    }
}

fn length(start: Option<Timestamp>, end: Option<Timestamp>) -> Duration {
    start.zip(end).map_or(Duration::ZERO, |(start, end)| end.since(start))
}
