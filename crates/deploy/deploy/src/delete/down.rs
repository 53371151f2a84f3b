//! Deletes deployments.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use cudock_azure::{Call, DeploymentState, Phase, Status, Step};
use cudock_http::Method;
use serde_json::Value;

use crate::clock::pause;
use crate::cloud::{ApiError, ApiErrorReason};
use crate::cost::billing::{billed_time_of_deleted, is_in_activity_log};
use crate::create::account;
use crate::create::phase::PhaseProgress;
use crate::create::run::{Deployer, find_deployment};
use crate::error::DeployError;
use crate::journal::{BilledTime, DeploymentRecord, JournalError, StepRecord, StepRole, StepState};
use crate::observe::status;

/// Interval of polls of a canceled template deployment.
const POLL: Duration = Duration::from_secs(2);
const MOST_POLLS: u32 = 150;

/// The path of template deployments, which Azure carries out even if the client is gone.
const TEMPLATES: &str = "/providers/Microsoft.Resources/deployments/";

impl Deployer<'_> {
    /// `cudock down`: deletes a deployment by its name.
    pub fn down(&self, name: &str) -> Result<DeploymentRecord, DeployError> {
        let record = find_deployment(self.journal, name)?;
        if record.state == DeploymentState::Gone {
            return Ok(record);
        }
        let _lock = self.take_lock(&record.run_id, &record.name)?;
        self.delete(&record)?;
        self.known(&record.run_id)
    }

    /// `cudock down --all`: deletes every deployment, and returns the names of those it deleted and the errors of the
    /// others.
    pub fn down_all(&self) -> Result<Vec<Result<String, DeployError>>, DeployError> {
        let records = self.journal.existing()?;
        Ok(records.into_iter().map(|record| self.down(&record.run_id).map(|record| record.name)).collect())
    }

    /// Deletes everything of a deployment, in whatever state it is. The journal keeps it until that is confirmed, so that
    /// the same can be repeated after an error. The caller holds the lock of the run.
    ///
    /// A journal that cannot be written, because the disk is full, does not keep anything alive: what deletes is in it
    /// since before the first request. Its error is returned at the end.
    pub(crate) fn delete(&self, record: &DeploymentRecord) -> Result<(), DeployError> {
        let run_id = &record.run_id;
        let cleanup = self.journal.cleanup(run_id)?;
        // From here on, `gc` can finish the deletion.
        let begun = self.journal.set_state(run_id, DeploymentState::Deleting, None);
        let entered = self.journal.enter_phase(run_id, Some((Phase::Delete, true)), self.deleter.now());
        let (identity, cleanup) =
            account::with_host(self.deleter, &record.identity, cleanup).map_err(|error| {
                DeployError::cloud(format!("cannot find the account of `{}`", record.name), error)
            })?;
        // Afterwards the start of billing and the result of a job are not available anymore. The
        // deployment is deleted even if this fails.
        let read = || status(self.deleter, &identity).ok().map(|(status, _)| status);
        let observe = |mut seen: Option<Status>| {
            // The last task of a Batch job may have ended it after the job was read and before the task was.
            let is_between = |seen: &Status| {
                matches!(seen.state, DeploymentState::Succeeded | DeploymentState::Failed)
                    && seen.billed_until.is_none()
            };
            if identity.ends_before_its_tasks() && seen.as_ref().is_some_and(is_between) {
                seen = read().or(seen);
            }
            seen.map_or(Ok(()), |seen| self.journal.observe(run_id, &seen))
        };
        let first = read();
        let is_gone = first.as_ref().is_some_and(|seen| seen.state == DeploymentState::Gone);
        let marked = if is_gone { self.mark_deleted_by_cloud(record) } else { Ok(()) };
        let mut observed = marked.and(observe(first));
        if identity.ending_call().is_some_and(|call| self.deleter.send(&call).is_ok()) {
            observed = observed.and(observe(read()));
        }
        (self.on_progress)(&PhaseProgress::beginning(Phase::Delete, None));
        for entry in self.journal.steps(run_id, StepRole::Create)? {
            self.cancel(&entry)?;
        }
        let mut written = begun.and(entered).and(observed);
        let mut is_canceled = false;
        for (position, step) in cleanup.iter().enumerate() {
            // A job may have begun before it was canceled, and reports so until it is deleted.
            if is_canceled && step.call.method == Method::DELETE && step.call.path.contains("/jobs/") {
                written = written.and(observe(read()));
                is_canceled = false;
            }
            is_canceled |= step.call.method == Method::POST;
            written = written.and(self.journal.intend(
                run_id,
                StepRole::Cleanup,
                position,
                step,
                self.deleter.now(),
            ));
            let deleted = match self.send_deletion(step) {
                Err(error) if account::is_gone(self.deleter, &identity, step, &error) => Ok(()),
                deleted => deleted,
            };
            let failure = deleted.as_ref().err().map(ToString::to_string);
            let now = self.deleter.now();
            written = written.and(self.journal.end_step(
                run_id,
                StepRole::Cleanup,
                position,
                failure.as_deref(),
                now,
            ));
            // The further steps include the part that makes the cloud delete the rest by itself, so
            // an error ends it.
            deleted.map_err(|error| {
                DeployError::cloud(
                    format!("cannot delete `{}` of deployment `{}`", step.id, record.name),
                    error,
                )
            })?;
        }
        written?;
        self.bill_deleted(&self.known(run_id)?)?;
        self.journal.enter_phase(run_id, None, self.deleter.now())?;
        self.journal.set_state(run_id, DeploymentState::Gone, None)?;
        Ok(())
    }

    pub(crate) fn send_deletion(&self, step: &Step) -> Result<(), ApiError> {
        match self.deleter.run(step) {
            Err(error) if error.is_not_found() => Ok(()),
            // Work that has ended is not canceled; if it has not, it cannot be deleted either.
            Err(error) if step.call.method == Method::POST && error.reason == ApiErrorReason::Refused => {
                Ok(())
            }
            result => result.map(|_| ()),
        }
    }

    /// Ends a template deployment whose end was not seen: it could create again what is deleted here.
    fn cancel(&self, entry: &StepRecord) -> Result<(), DeployError> {
        let is_pending = matches!(entry.state, StepState::Intended | StepState::Failed);
        if let Some(cancel) = cancel_call(&entry.step.call).filter(|_| is_pending) {
            self.cancel_template(&entry.step.call, &cancel)?;
        }
        Ok(())
    }

    pub(crate) fn cancel_template(&self, template: &Call, cancel: &Call) -> Result<(), DeployError> {
        let cannot = |error| DeployError::cloud("cannot cancel the template deployment", error);
        match self.deleter.send(cancel) {
            Ok(_) => {}
            // There is none, or it has ended.
            Err(error) if matches!(error.reason, ApiErrorReason::NotFound | ApiErrorReason::Refused) => {}
            Err(error) => return Err(cannot(error)),
        }
        let get = Call { method: Method::GET, body: None, ..template.clone() };
        let never = AtomicBool::new(false);
        for _ in 0..MOST_POLLS {
            let reply = match self.deleter.send(&get) {
                Ok(reply) => reply,
                Err(error) if error.is_not_found() => return Ok(()),
                Err(error) => return Err(cannot(error)),
            };
            let state = reply.body.pointer("/properties/provisioningState").and_then(Value::as_str);
            if matches!(state, None | Some("Succeeded" | "Failed" | "Canceled")) {
                return Ok(());
            }
            pause(self.clock, reply.retry_after.unwrap_or(POLL), &never);
        }
        // Azure ends it sooner or later; resources that it creates until then can delete
        // themselves.
        Ok(())
    }

    /// Finds out when billing ended, which only the activity log knows now. If it does not have the
    /// events yet, `cost` tries again.
    pub(crate) fn bill_deleted(&self, record: &DeploymentRecord) -> Result<(), DeployError> {
        if record.billed.is_final() {
            return Ok(());
        }
        let requested = self.journal.billed_request(&record.run_id)?;
        if let Ok(billed) = billed_time_of_deleted(self.deleter, record, requested) {
            self.journal.bill(&record.run_id, billed, &[])?;
        }
        Ok(())
    }

    /// Records that the billed time is only an upper bound, if the cloud has deleted a deployment
    /// by itself. Before this program deletes one, it reads all times.
    pub(crate) fn mark_deleted_by_cloud(&self, record: &DeploymentRecord) -> Result<(), JournalError> {
        let cleanup = self.journal.steps(&record.run_id, StepRole::Cleanup)?;
        let is_own_deletion = cleanup.iter().any(|step| step.state != StepState::Planned);
        if !is_own_deletion && !record.billed.is_final() && !is_in_activity_log(&record.identity) {
            let at_most = BilledTime { is_at_most: true, ..BilledTime::default() };
            self.journal.bill(&record.run_id, at_most, &[])?;
        }
        Ok(())
    }
}

/// The request that ends a template deployment; none for other requests.
pub(crate) fn cancel_call(call: &Call) -> Option<Call> {
    let (path, query) = call.path.split_once('?')?;
    let is_template = call.method == Method::PUT && path.contains(TEMPLATES);
    is_template.then(|| Call {
        method: Method::POST,
        plane: call.plane.clone(),
        path: format!("{path}/cancel?{query}"),
        body: None,
    })
}
