//! Trials as tasks of an open job of Batch.

use std::collections::BTreeMap;
use std::time::Duration;

use cudock_azure::BatchTasks;
use cudock_base::Timestamp;
use cudock_sweep::local::{AttemptToStart, LiveAttempt, OutputMetrics, Runner, RunnerEvent, trial_words};
use cudock_sweep::{AttemptEnd, Event, SweepPlan, TrialHandle, TrialId};
use serde_json::Value;

use crate::clock::Clock;
use crate::cloud::{ApiError, ApiErrorReason, CloudApi};

/// How often the service is asked, if it does not say.
const POLL: Duration = Duration::from_secs(10);

/// Requests for the state that may fail in a row.
const MOST_FAILURES: u32 = 5;

/// Of an attempt that was lost, nobody knows how long it ran; it is billed for no more than this.
const LONGEST_LOST: Duration = Duration::from_secs(3600);

/// The signal that ends a task, for the report.
const TERMINATED: i32 = 15;

pub(super) struct BatchRunner<'a> {
    cloud: &'a dyn CloudApi,
    clock: &'a dyn Clock,
    tasks: BatchTasks,
    plan: &'a SweepPlan,
    /// How long the service is left alone.
    interval: Duration,
    live: BTreeMap<(TrialId, u32), LiveTask>,
    pending: Vec<RunnerEvent>,
    /// When the service was asked last.
    asked: Option<Duration>,
    failures: u32,
}

/// An attempt whose task may exist.
struct LiveTask {
    id: String,
    is_started: bool,
    metrics: OutputMetrics,
}

impl<'a> BatchRunner<'a> {
    pub(super) fn new(
        cloud: &'a dyn CloudApi,
        clock: &'a dyn Clock,
        tasks: BatchTasks,
        plan: &'a SweepPlan,
    ) -> Self {
        let (live, pending) = (BTreeMap::new(), Vec::new());
        Self { cloud, clock, tasks, plan, interval: POLL, live, pending, asked: None, failures: 0 }
    }

    fn ended(&mut self, (trial, attempt): (TrialId, u32), end: AttemptEnd, ran: Duration) {
        self.live.remove(&(trial, attempt));
        self.pending.push(RunnerEvent::Event(Event::Ended { trial, attempt, end, ran }));
    }

    /// What became of all tasks.
    fn ask(&mut self) -> Result<(), ApiError> {
        let reply = self.cloud.send(&self.tasks.list())?;
        self.interval = reply.retry_after.unwrap_or(POLL);
        let listed = match reply.body.get("value").and_then(Value::as_array) {
            Some(tasks) if reply.body.get("odata.nextLink").is_none() => tasks.clone(),
            // More than one page.
            _ => self.cloud.list(&self.tasks.list())?,
        };
        let known: BTreeMap<&str, &Value> =
            listed.iter().filter_map(|task| Some((task.get("id")?.as_str()?, task))).collect();
        let keys: Vec<(TrialId, u32)> = self.live.keys().copied().collect();
        for key in keys {
            let Some(task) = self.live.get(&key).and_then(|live| known.get(live.id.as_str())) else {
                self.ended(key, AttemptEnd::Lost, Duration::ZERO);
                continue;
            };
            self.observe(key, task)?;
        }
        Ok(())
    }

    fn observe(&mut self, key: (TrialId, u32), task: &Value) -> Result<(), ApiError> {
        let (trial, attempt) = key;
        let state = task.get("state").and_then(Value::as_str).unwrap_or_default();
        let is_completed = state == "completed";
        if !is_completed && state != "running" {
            return Ok(());
        }
        let Some(live) = self.live.get_mut(&key) else { return Ok(()) };
        if !live.is_started {
            live.is_started = true;
            let handle = TrialHandle::Job { id: live.id.clone() };
            self.pending.push(RunnerEvent::Event(Event::Started { trial, attempt, handle }));
        }
        match self.cloud.send(&self.tasks.output(&live.id)) {
            Ok(reply) => {
                let output = reply.body.as_str().unwrap_or_default();
                let reports = live.metrics.reports(trial, attempt, output, is_completed);
                self.pending.extend(reports.into_iter().map(RunnerEvent::Event));
            }
            // It has written nothing yet, or its node is gone.
            Err(error) if error.reason == ApiErrorReason::NotFound => {}
            Err(error) => return Err(error),
        }
        if is_completed {
            let time = |name: &str| {
                let text = task.pointer(&format!("/executionInfo/{name}")).and_then(Value::as_str)?;
                Timestamp::parse(text)
            };
            let ran = time("endTime").zip(time("startTime"));
            let ran = ran.map_or(Duration::ZERO, |(end, start)| end.since(start));
            let code = task.pointer("/executionInfo/exitCode").and_then(Value::as_i64);
            let end = match code.and_then(|code| i32::try_from(code).ok()) {
                Some(code) => AttemptEnd::Exited { code },
                None => AttemptEnd::Signaled { signal: TERMINATED },
            };
            self.ended(key, end, ran);
        }
        Ok(())
    }
}

impl Runner for BatchRunner<'_> {
    type Error = ApiError;

    /// Tasks go on without this machine.
    const OUTLIVES_MACHINE: bool = true;

    fn start(&mut self, attempt: &AttemptToStart<'_>) {
        let key = (attempt.trial, attempt.attempt);
        // The name is that of the attempt, so the same request twice makes one task.
        let id = format!("trial-{}-{}", attempt.trial, attempt.attempt);
        let command = trial_words(self.plan, attempt.parameters);
        let created = self.cloud.send(&self.tasks.add(&id, &command));
        let metrics = OutputMetrics::new(self.plan);
        self.live.insert(key, LiveTask { id: id.clone(), is_started: false, metrics });
        match created {
            Ok(_) => {}
            // It exists already.
            Err(error) if error.reason == ApiErrorReason::Refused => {}
            Err(error) => {
                // Nobody knows whether the request arrived. The job is deleted in any case.
                let _ = self.cloud.send(&self.tasks.terminate(&id));
                self.ended(key, AttemptEnd::FailedToStart { message: error.to_string() }, Duration::ZERO);
            }
        }
    }

    fn stop(&mut self, trial: TrialId, attempt: u32) {
        let Some(live) = self.live.get(&(trial, attempt)) else { return };
        match self.cloud.send(&self.tasks.terminate(&live.id)) {
            Err(error) if !matches!(error.reason, ApiErrorReason::NotFound | ApiErrorReason::Refused) => {
                let warning = format!("trial {trial} cannot be stopped: {error}");
                self.pending.push(RunnerEvent::Warning(warning));
            }
            _ => {}
        }
        // Its end is seen at once.
        self.asked = None;
    }

    fn poll(&mut self, timeout: Duration) -> Result<Vec<RunnerEvent>, ApiError> {
        let now = self.clock.elapsed();
        let is_due = self.asked.is_none_or(|asked| now.saturating_sub(asked) >= self.interval);
        if self.pending.is_empty() && (!is_due || self.live.is_empty()) {
            self.clock.sleep(timeout);
        } else if is_due && !self.live.is_empty() {
            self.asked = Some(now);
            match self.ask() {
                Ok(()) => self.failures = 0,
                Err(error) => {
                    self.failures += 1;
                    // Without the job there is nothing to wait for.
                    if self.failures >= MOST_FAILURES || error.reason == ApiErrorReason::NotFound {
                        return Err(error);
                    }
                    if error.reason != ApiErrorReason::Interrupted {
                        self.pending.push(RunnerEvent::Warning(error.to_string()));
                    }
                }
            }
        }
        Ok(std::mem::take(&mut self.pending))
    }

    /// The job is new, so whatever ran before it is gone.
    fn recover(&mut self, live: &[LiveAttempt]) -> Result<Vec<RunnerEvent>, ApiError> {
        let longest = self.plan.limits.trial_timeout.unwrap_or(LONGEST_LOST);
        let lost = live.iter().map(|attempt| {
            let ran = self.cloud.now().since(attempt.starting).min(longest);
            RunnerEvent::Event(Event::Ended {
                trial: attempt.trial,
                attempt: attempt.attempt,
                end: AttemptEnd::Lost,
                ran,
            })
        });
        let lost = lost.collect();
        self.live.clear();
        Ok(lost)
    }

    /// Everything is deleted with the job.
    fn shut_down(&mut self) -> Result<(), ApiError> {
        Ok(())
    }
}
