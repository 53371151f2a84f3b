//! Runs trials as jobs of a service.

use std::collections::BTreeMap;
use std::time::Duration;

use cudock_azure::{DeploymentIdentity, JobTime};
use cudock_base::Timestamp;
use cudock_sweep::{AttemptEnd, Event, SweepPlan, TrialHandle, TrialId};
use cudock_sweep_run::{AttemptToStart, LiveAttempt, OutputMetrics, Runner, RunnerEvent, trial_words};

use super::trial_jobs::{JobState, JobStates, TrialJobs};
use crate::clock::Clock;
use crate::cloud::{ApiError, ApiErrorReason, CloudApi};
use crate::error::DeployError;
use crate::journal::BilledTime;
use crate::journal::Journal;
use crate::observe::status;

/// Interval of requests for the state, if the service gives none.
const POLL: Duration = Duration::from_secs(10);

/// Requests for the state that may fail in a row.
const MOST_FAILURES: u32 = 5;

/// Upper bound on the billed time of a lost attempt.
const LONGEST_LOST: Duration = Duration::from_secs(3600);

/// The trials of a sweep on a service.
pub(super) struct ServiceRunner<'a> {
    cloud: &'a dyn CloudApi,
    clock: &'a dyn Clock,
    journal: &'a Journal,
    machines: Vec<RunnerMachine>,
    plan: &'a SweepPlan,
    /// Interval of requests for the state.
    interval: Duration,
    live: BTreeMap<(TrialId, u32), LiveJob>,
    pending: Vec<RunnerEvent>,
    /// Time of the last request for the state.
    polled: Option<Duration>,
    failures: u32,
}

/// The machines of one size, with their trials.
pub(super) struct RunnerMachine {
    identity: DeploymentIdentity,
    jobs: TrialJobs,
    slots: u32,
    /// Whether the journal knows when billing began.
    is_billed: bool,
    /// Times of jobs that the journal knows.
    billed: Vec<JobTime>,
}

/// An attempt whose job may exist.
struct LiveJob {
    id: String,
    /// The index of its machine.
    machine: usize,
    is_started: bool,
    metrics: OutputMetrics,
}

impl RunnerMachine {
    pub(super) const fn new(identity: DeploymentIdentity, jobs: TrialJobs, slots: u32) -> Self {
        Self { identity, jobs, slots, is_billed: false, billed: Vec::new() }
    }

    /// Records when the machines began to exist and when jobs ran: neither is available after their
    /// deletion, which Azure may do by itself.
    fn bill(
        &mut self,
        cloud: &dyn CloudApi,
        journal: &Journal,
        mut times: Vec<JobTime>,
    ) -> Result<(), DeployError> {
        times.retain(|time| !self.billed.contains(time));
        let from = match times.iter().map(|time| time.from).min() {
            // Nodes of Batch are billed before they run a task.
            None if !self.is_billed && self.identity.billing().bills_nodes => {
                let (status, _) = status(cloud, &self.identity)
                    .map_err(|error| DeployError::cloud("cannot read since when the nodes exist", error))?;
                status.billed_from
            }
            from => from,
        };
        if from.is_some() {
            journal.bill(&self.identity.run_id, BilledTime::seen(from, None), &times)?;
            self.is_billed = true;
            self.billed.extend(times);
        }
        Ok(())
    }
}

impl<'a> ServiceRunner<'a> {
    pub(super) fn new(
        cloud: &'a dyn CloudApi,
        clock: &'a dyn Clock,
        journal: &'a Journal,
        machines: Vec<RunnerMachine>,
        plan: &'a SweepPlan,
    ) -> Self {
        let (live, pending) = (BTreeMap::new(), Vec::new());
        Self {
            cloud,
            clock,
            journal,
            machines,
            plan,
            interval: POLL,
            live,
            pending,
            polled: None,
            failures: 0,
        }
    }

    /// The machine of a slot: the sizes have theirs one after the other.
    fn machine_of(&self, slot: u32) -> usize {
        let mut end = 0;
        let found = self.machines.iter().position(|machine| {
            end += machine.slots;
            slot < end
        });
        found.unwrap_or_default()
    }

    fn ended(&mut self, (trial, attempt): (TrialId, u32), end: AttemptEnd, ran: Duration) {
        self.live.remove(&(trial, attempt));
        self.pending.push(RunnerEvent::Event(Event::Ended { trial, attempt, end, ran }));
    }

    /// Updates the state of all jobs.
    fn ask(&mut self) -> Result<(), ApiError> {
        let mut interval = None;
        for index in 0..self.machines.len() {
            let keys = self.live.iter().filter(|(_, live)| live.machine == index);
            let keys: Vec<((TrialId, u32), String)> =
                keys.map(|(key, live)| (*key, live.id.clone())).collect();
            let Some(machine) = self.machines.get_mut(index).filter(|_| !keys.is_empty()) else { continue };
            let ids: Vec<String> = keys.iter().map(|(_, id)| id.clone()).collect();
            let JobStates { states, times, retry_after } = machine.jobs.states(self.cloud, &ids)?;
            if let Err(error) = machine.bill(self.cloud, self.journal, times) {
                self.pending.push(RunnerEvent::Warning(error.to_string()));
            }
            interval = interval.max(Some(retry_after.unwrap_or(POLL)));
            for (key, id) in keys {
                match states.get(&id) {
                    None => self.ended(key, AttemptEnd::Lost, Duration::ZERO),
                    Some(JobState::Waiting) => {}
                    Some(state) => self.observe(key, state)?,
                }
            }
        }
        self.interval = interval.unwrap_or(POLL);
        Ok(())
    }

    /// A job that runs or has ended: what it wrote, and how it ended.
    fn observe(&mut self, key: (TrialId, u32), state: &JobState) -> Result<(), ApiError> {
        let (trial, attempt) = key;
        let Some(live) = self.live.get_mut(&key) else { return Ok(()) };
        let Some(RunnerMachine { jobs, .. }) = self.machines.get(live.machine) else { return Ok(()) };
        if !live.is_started {
            live.is_started = true;
            let handle = TrialHandle::Job { id: live.id.clone() };
            self.pending.push(RunnerEvent::Event(Event::Started { trial, attempt, handle }));
        }
        if let Some(output) = jobs.output(self.cloud, &live.id)? {
            let is_last = matches!(state, JobState::Ended { .. });
            let reports = live.metrics.reports(trial, attempt, &output, is_last);
            self.pending.extend(reports.into_iter().map(RunnerEvent::Event));
        }
        if let JobState::Ended { end, ran } = state {
            self.ended(key, end.clone(), *ran);
        }
        Ok(())
    }
}

impl Runner for ServiceRunner<'_> {
    type Error = ApiError;

    /// Jobs continue without this machine.
    const OUTLIVES_MACHINE: bool = true;

    /// The clock of the service, by which its jobs report when they ran.
    fn now(&self) -> Timestamp {
        self.cloud.now()
    }

    fn start(&mut self, attempt: &AttemptToStart<'_>) {
        let key = (attempt.trial, attempt.attempt);
        let machine = self.machine_of(attempt.slot);
        let Some(RunnerMachine { jobs, .. }) = self.machines.get_mut(machine) else { return };
        let Some(id) = jobs.name(attempt.trial, attempt.attempt) else {
            let message = "all jobs of this command are used; re-run it".to_owned();
            return self.ended(key, AttemptEnd::FailedToStart { message }, Duration::ZERO);
        };
        let command = trial_words(self.plan, attempt.parameters);
        let metrics = OutputMetrics::new(self.plan);
        self.live.insert(key, LiveJob { id: id.clone(), machine, is_started: false, metrics });
        if let Err(error) = jobs.start(self.cloud, &id, &command) {
            // It is unknown whether the request arrived. The job is deleted in any case.
            let _ = jobs.stop(self.cloud, &id);
            self.ended(key, AttemptEnd::FailedToStart { message: error.to_string() }, Duration::ZERO);
        }
    }

    fn stop(&mut self, trial: TrialId, attempt: u32) {
        let Some(live) = self.live.get(&(trial, attempt)) else { return };
        let Some(RunnerMachine { jobs, .. }) = self.machines.get(live.machine) else { return };
        if let Err(error) = jobs.stop(self.cloud, &live.id) {
            let warning = format!("trial {trial} cannot be stopped: {error}");
            self.pending.push(RunnerEvent::Warning(warning));
        }
        // Its end is seen at once.
        self.polled = None;
    }

    fn poll(&mut self, timeout: Duration) -> Result<Vec<RunnerEvent>, ApiError> {
        let now = self.clock.elapsed();
        let is_due = self.polled.is_none_or(|polled| now.saturating_sub(polled) >= self.interval);
        if self.pending.is_empty() && (!is_due || self.live.is_empty()) {
            self.clock.sleep(timeout);
        } else if is_due && !self.live.is_empty() {
            self.polled = Some(now);
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
            let ran = self.now().since(attempt.starting).min(longest);
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
