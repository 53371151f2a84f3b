//! How events change the state.

use std::time::Duration;

use cudock_base::{Timestamp, Usd};

use super::error::ApplyError;
use super::sweep::Sweep;
use super::trial::{MetricPoint, Trial, TrialAttempt, TrialStatus};
use crate::event::{AttemptEnd, Event, Record, StopReason, TrialHandle};
use crate::policy::Decision;
use crate::space::Assignment;
use crate::trial_id::TrialId;

impl Sweep {
    /// Applies an event, or fails and changes nothing.
    pub fn apply(&mut self, record: &Record) -> Result<(), ApplyError> {
        let at = record.at;
        if self.end.is_some() && !matches!(record.event, Event::TrialsAdded { .. } | Event::Resumed { .. }) {
            return Err(ApplyError::Finished);
        }
        match &record.event {
            Event::Created { .. } => return Err(ApplyError::AlreadyCreated),
            Event::Proposed { trial, parameters } => self.propose(at, *trial, parameters)?,
            Event::Starting { trial, attempt, slot } => self.starting(at, *trial, *attempt, *slot)?,
            Event::Started { trial, attempt, handle } => self.started(at, *trial, *attempt, handle)?,
            Event::Reported { trial, attempt, metric, interval, step, value } => {
                let point = MetricPoint { step: *step, value: *value, at };
                self.report(*trial, *attempt, metric, *interval, point)?;
            }
            Event::StopDecided { trial, attempt, reason } => self.stop(*trial, *attempt, reason)?,
            Event::Ended { trial, attempt, end, ran } => self.ended(*trial, *attempt, end, *ran)?,
            Event::Paused => {
                self.is_paused = true;
                self.stop_clock(at);
            }
            Event::Resumed { slots, price_per_hour } => self.resume(at, *slots, *price_per_hour)?,
            Event::MachinesPriced { machines } => self.set_machines(machines)?,
            Event::TrialsAdded { count } => {
                self.added = self.added.saturating_add(*count);
                if self.end.take().is_some() {
                    self.is_canceled = false;
                    self.active_since = Some(at);
                }
            }
            Event::Canceled => self.is_canceled = true,
            Event::Finished { end } => {
                if !self.live.is_empty() {
                    return Err(ApplyError::StillRunning);
                }
                self.end = Some(*end);
                self.stop_clock(at);
                for id in std::mem::take(&mut self.waiting) {
                    self.set_status(id, TrialStatus::Failed);
                }
            }
        }
        self.last_event = self.last_event.max(at);
        Ok(())
    }

    fn stop_clock(&mut self, at: Timestamp) {
        if let Some(since) = self.active_since.take() {
            self.active_before = self.active_before.saturating_add(at.since(since));
        }
    }

    fn resume(&mut self, at: Timestamp, slots: u32, price: Option<Usd>) -> Result<(), ApplyError> {
        self.set_resources(slots, price)?;
        // If the process was killed, the time since its last event does not count.
        self.stop_clock(self.last_event.min(at));
        self.is_paused = false;
        if self.end.is_none() {
            self.active_since = Some(at);
        }
        Ok(())
    }

    fn propose(&mut self, at: Timestamp, id: TrialId, parameters: &Assignment) -> Result<(), ApplyError> {
        let next = self.trials.len() as u64;
        if u64::from(id.0) != next {
            return Err(ApplyError::OutOfOrder { trial: id });
        }
        if self.trial_limit().is_some_and(|limit| next >= limit) {
            return Err(ApplyError::TooManyTrials { trial: id });
        }
        self.trials.push(Trial {
            id,
            parameters: parameters.clone(),
            proposed: at,
            attempts: Vec::new(),
            stop: None,
            status: TrialStatus::Waiting,
            result: None,
        });
        self.waiting.insert(id);
        Ok(())
    }

    fn starting(&mut self, at: Timestamp, id: TrialId, attempt: u32, slot: u32) -> Result<(), ApplyError> {
        if self.live().any(|(_, live)| live.slot == slot) {
            return Err(ApplyError::SlotInUse { slot });
        }
        let price_per_hour = self.slot_price(slot);
        let trial = self.trial_mut(id)?;
        let next = trial.attempts.len() + 1;
        if trial.status != TrialStatus::Waiting || usize::try_from(attempt) != Ok(next) {
            return Err(ApplyError::CannotStart { trial: id, attempt });
        }
        trial.status = TrialStatus::Starting;
        trial.attempts.push(TrialAttempt {
            number: attempt,
            slot,
            starting: at,
            started: None,
            handle: None,
            curves: std::collections::BTreeMap::new(),
            end: None,
            ran: Duration::ZERO,
            price_per_hour,
        });
        self.waiting.remove(&id);
        self.live.insert(id);
        if let Some(history) = &mut self.history {
            history.restart(id);
        }
        Ok(())
    }

    fn started(
        &mut self,
        at: Timestamp,
        id: TrialId,
        attempt: u32,
        handle: &TrialHandle,
    ) -> Result<(), ApplyError> {
        let (trial, last) = self.running_mut(id, attempt)?;
        last.started = Some(at);
        last.handle = Some(handle.clone());
        if *trial == TrialStatus::Starting {
            *trial = TrialStatus::Running;
        }
        Ok(())
    }

    fn report(
        &mut self,
        id: TrialId,
        attempt: u32,
        metric: &str,
        interval: u64,
        point: MetricPoint,
    ) -> Result<(), ApplyError> {
        let (status, last) = self.running_mut(id, attempt)?;
        let reports = last.reports(metric);
        if interval <= reports {
            return Ok(());
        }
        if interval != reports + 1 {
            return Err(ApplyError::MissingReport { trial: id, metric: metric.to_owned(), interval });
        }
        match last.curves.get_mut(metric) {
            Some(points) => points.push(point),
            None => {
                last.curves.insert(metric.to_owned(), vec![point]);
            }
        }
        let is_stopping = *status == TrialStatus::Stopping;
        let is_objective = self.plan.objectives.first().is_some_and(|objective| objective.metric == metric);
        if let (Some(history), Some(policy), true) = (&mut self.history, &self.plan.policy, is_objective) {
            history.report(id, point.value);
            // The first decision to stop stands.
            if !is_stopping
                && !self.decided.contains_key(&id)
                && let Some(decision) = policy.evaluate(history, id).filter(Decision::is_stop)
            {
                self.decided.insert(id, decision);
            }
        }
        Ok(())
    }

    fn stop(&mut self, id: TrialId, attempt: u32, reason: &StopReason) -> Result<(), ApplyError> {
        let (status, _) = self.running_mut(id, attempt)?;
        // The first reason stands.
        if *status != TrialStatus::Stopping {
            *status = TrialStatus::Stopping;
            self.trial_mut(id)?.stop = Some(reason.clone());
            self.is_spent |= matches!(reason, StopReason::Budget { .. });
        }
        self.decided.remove(&id);
        Ok(())
    }

    fn ended(
        &mut self,
        id: TrialId,
        attempt: u32,
        end: &AttemptEnd,
        ran: Duration,
    ) -> Result<(), ApplyError> {
        let (_, last) = self.running_mut(id, attempt)?;
        last.end = Some(end.clone());
        last.ran = ran;
        let cost = last.cost(last.starting);
        self.spent += cost;
        self.live.remove(&id);
        self.decided.remove(&id);
        let (retries, is_canceled) = (self.plan.retries, self.is_canceled);
        let objectives = std::mem::take(&mut self.plan.objectives);
        let status = self.trial_mut(id).map(|trial| {
            let result = trial.values(&objectives);
            trial.status = match (end, &trial.stop) {
                (_, Some(_)) => TrialStatus::Stopped,
                (AttemptEnd::Exited { code: 0 }, None) if result.is_some() => TrialStatus::Succeeded,
                _ if trial.failures() <= retries && !is_canceled => TrialStatus::Waiting,
                _ => TrialStatus::Failed,
            };
            if matches!(trial.status, TrialStatus::Stopped | TrialStatus::Succeeded) {
                trial.result = result;
            }
            trial.status
        });
        self.plan.objectives = objectives;
        let status = status?;
        if status == TrialStatus::Waiting {
            self.waiting.insert(id);
        }
        if status == TrialStatus::Succeeded {
            insert_sorted(&mut self.times, ran);
        } else if self.ended_by_itself(id, end) {
            insert_sorted(&mut self.other_times, ran);
        }
        if let Some(history) = &mut self.history {
            history.end(id);
        }
        Ok(())
    }

    /// Whether the length of an attempt is typical of others: it was not cut short with the sweep.
    fn ended_by_itself(&self, id: TrialId, end: &AttemptEnd) -> bool {
        let stop = self.trial(id).and_then(|trial| trial.stop.as_ref());
        match stop {
            Some(reason) => matches!(reason, StopReason::Policy(_) | StopReason::TrialTimeout { .. }),
            None => matches!(end, AttemptEnd::Exited { .. } | AttemptEnd::Signaled { .. }),
        }
    }

    fn set_status(&mut self, id: TrialId, status: TrialStatus) {
        if let Ok(trial) = self.trial_mut(id) {
            trial.status = status;
        }
    }

    fn trial_mut(&mut self, id: TrialId) -> Result<&mut Trial, ApplyError> {
        let index = usize::try_from(id.0).unwrap_or(usize::MAX);
        self.trials.get_mut(index).ok_or(ApplyError::UnknownTrial { trial: id })
    }

    /// The status of a trial and its last attempt, if that is the given one and may exist.
    fn running_mut(
        &mut self,
        id: TrialId,
        attempt: u32,
    ) -> Result<(&mut TrialStatus, &mut TrialAttempt), ApplyError> {
        let trial = self.trial_mut(id)?;
        match trial.attempts.last_mut().filter(|last| last.number == attempt && last.end.is_none()) {
            Some(last) => Ok((&mut trial.status, last)),
            None => Err(ApplyError::NotRunning { trial: id, attempt }),
        }
    }
}

fn insert_sorted(times: &mut Vec<Duration>, time: Duration) {
    let index = times.partition_point(|known| *known <= time);
    times.insert(index, time);
}
