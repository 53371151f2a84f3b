//! Trials as jobs of a service: starting, polling and stopping one.

use std::collections::BTreeMap;
use std::time::Duration;

use cudock_azure::{BatchTasks, Call, DeploymentState, JobTime, MlJobs, Status};
use cudock_base::{Secret, Timestamp};
use cudock_sweep::{AttemptEnd, TrialId};
use serde_json::Value;

use crate::cloud::{ApiError, ApiErrorReason, ApiReply, CloudApi};

/// The signal that ends a task, for the report.
const TERMINATED: i32 = 15;

/// The jobs that run the trials of one size.
#[derive(Debug, Clone)]
pub(super) enum TrialJobs {
    /// Tasks of an open job.
    Batch(BatchTasks),
    /// Jobs on a cluster.
    Ml(SingleJobs),
}

/// Jobs of Machine Learning, and what is known of them.
#[derive(Debug, Clone)]
pub(super) struct SingleJobs {
    jobs: MlJobs,
    /// How many names were given out.
    used: usize,
    /// The jobs that the service has shown, with the address of their output once there is one.
    shown: BTreeMap<String, Option<Secret>>,
}

impl SingleJobs {
    pub(super) fn new(jobs: MlJobs) -> Self {
        Self { jobs, used: 0, shown: BTreeMap::new() }
    }

    /// Adds the state of a job.
    fn add_state(&mut self, cloud: &dyn CloudApi, id: &str, to: &mut JobStates) -> Result<(), ApiError> {
        let Some([job, details]) = self.jobs.status_calls(id) else { return Ok(()) };
        let Some(job) = found(cloud.send(&job))? else {
            // The service may take some seconds to show a new job.
            if !self.shown.contains_key(id) {
                to.states.insert(id.to_owned(), JobState::Waiting);
            }
            return Ok(());
        };
        to.retry_after = to.retry_after.max(job.retry_after);
        let details = found(cloud.send(&details))?.map(|reply| reply.body);
        let address = details.as_ref().and_then(|details| self.jobs.output(details));
        let known = self.shown.entry(id.to_owned()).or_default();
        *known = address.or(known.take());
        let status = MlJobs::status(&job.body, details.as_ref());
        to.times.extend(JobTime::new(id, &status));
        to.states.insert(id.to_owned(), job_state(&status));
        Ok(())
    }
}

/// The response; none if the requested resource does not exist.
fn found(response: Result<ApiReply, ApiError>) -> Result<Option<ApiReply>, ApiError> {
    match response {
        Ok(reply) => Ok(Some(reply)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

/// The state of a job.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum JobState {
    Waiting,
    Running,
    Ended { end: AttemptEnd, ran: Duration },
}

/// The states of jobs by their names; one that does not exist has none.
#[derive(Debug, Default)]
pub(super) struct JobStates {
    pub(super) states: BTreeMap<String, JobState>,
    /// When those ran that keep nodes of a cluster busy.
    pub(super) times: Vec<JobTime>,
    /// How long the service wants to be left alone.
    pub(super) retry_after: Option<Duration>,
}

impl TrialJobs {
    /// The name of the job of an attempt; none if all names are used.
    pub(super) fn name(&mut self, trial: TrialId, attempt: u32) -> Option<String> {
        match self {
            // The name is that of the attempt, so the same request twice makes one job.
            Self::Batch(_) => Some(format!("trial-{trial}-{attempt}")),
            Self::Ml(single) => {
                let name = single.jobs.names().nth(single.used).map(str::to_owned)?;
                single.used += 1;
                Some(name)
            }
        }
    }

    /// Starts a job with this command. The same name twice starts one.
    pub(super) fn start(&self, cloud: &dyn CloudApi, id: &str, command: &[String]) -> Result<(), ApiError> {
        match self {
            // It exists already.
            Self::Batch(tasks) => unless_refused(cloud.send(&tasks.add(id, command))),
            Self::Ml(single) => send(cloud, single.jobs.submit(id, command)),
        }
    }

    /// Ends a job; one that has ended or does not exist is left alone.
    pub(super) fn stop(&self, cloud: &dyn CloudApi, id: &str) -> Result<(), ApiError> {
        let stopped = match self {
            Self::Batch(tasks) => unless_refused(cloud.send(&tasks.terminate(id))),
            Self::Ml(single) => send(cloud, single.jobs.cancel(id)),
        };
        match stopped {
            Err(error) if !matches!(error.reason, ApiErrorReason::NotFound | ApiErrorReason::Refused) => {
                Err(error)
            }
            _ => Ok(()),
        }
    }

    /// The states of these jobs.
    pub(super) fn states(&mut self, cloud: &dyn CloudApi, ids: &[String]) -> Result<JobStates, ApiError> {
        match self {
            Self::Batch(tasks) => task_states(tasks, cloud),
            Self::Ml(single) => {
                let mut found = JobStates::default();
                for id in ids {
                    single.add_state(cloud, id, &mut found)?;
                }
                Ok(found)
            }
        }
    }

    /// The output of a job so far; none before it has written anything.
    pub(super) fn output(&self, cloud: &dyn CloudApi, id: &str) -> Result<Option<String>, ApiError> {
        let output = match self {
            Self::Batch(tasks) => {
                cloud.send(&tasks.output(id)).map(|reply| reply.body.as_str().map(str::to_owned))
            }
            Self::Ml(single) => match single.shown.get(id) {
                Some(Some(address)) => cloud.download(address, None).map(Some),
                _ => Ok(None),
            },
        };
        match output {
            // It has written nothing yet, or its node is gone.
            Err(error) if error.is_not_found() => Ok(None),
            output => output,
        }
    }
}

fn unless_refused(response: Result<ApiReply, ApiError>) -> Result<(), ApiError> {
    match response {
        Err(error) if error.reason != ApiErrorReason::Refused => Err(error),
        _ => Ok(()),
    }
}

fn send(cloud: &dyn CloudApi, call: Option<Call>) -> Result<(), ApiError> {
    call.map_or(Ok(()), |call| cloud.send(&call).map(drop))
}

fn task_states(tasks: &BatchTasks, cloud: &dyn CloudApi) -> Result<JobStates, ApiError> {
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
    Ok(JobStates { states: states.collect(), times: Vec::new(), retry_after: reply.retry_after })
}

fn job_state(status: &Status) -> JobState {
    let ran = length(status.billed_from, status.billed_until);
    let code = match (status.state, status.exit_code) {
        (DeploymentState::Succeeded, code) => Some(code.unwrap_or(0)),
        (DeploymentState::Failed | DeploymentState::Evicted, code) => code,
        (DeploymentState::Running | DeploymentState::Deleting, _) => return JobState::Running,
        (DeploymentState::Starting | DeploymentState::Gone, _) => return JobState::Waiting,
    };
    let end = code.map_or(AttemptEnd::Signaled { signal: TERMINATED }, |code| AttemptEnd::Exited { code });
    JobState::Ended { end, ran }
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
