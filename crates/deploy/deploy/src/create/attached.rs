//! Deployments that end with the command: jobs that are waited for, and services in the foreground.

use cudock_base::bug::Parts;
use std::sync::atomic::Ordering;
use std::time::Duration;

use cudock_azure::{Checkpoints, DeploymentState, Status, WorkShape};

use crate::clock::pause;
use crate::create::run::{Deployer, PlannedDeployment};
use crate::create::wait::WaitGoal;
use crate::error::DeployError;
use crate::journal::{DeploymentRecord, RunLock};
use crate::observe::logs::read_logs;
use crate::observe::status;

/// Interval of checks whether a service in the foreground still runs.
const WATCH: Duration = Duration::from_secs(15);

/// How an attached deployment ended. Nothing of it exists anymore.
#[derive(Debug, Clone, PartialEq)]
pub struct Ended {
    pub record: DeploymentRecord,
    /// Exit code of a job.
    pub exit_code: i32,
    /// Work that was done again after evictions.
    pub lost: Duration,
}

/// Receives the events of an attached deployment.
pub trait DeployOutput {
    /// It runs; a service responds at this URL.
    fn running(&self, record: &DeploymentRecord, url: Option<&str>);

    /// Output of a job.
    fn output(&self, text: &str);

    /// A placement failed or was evicted, and the next one is tried.
    fn next_placement(&self, error: &str);
}

impl Deployer<'_> {
    /// Creates a deployment in the first placement that has capacity, and returns when it runs. It stays.
    pub fn up_detached(
        &self,
        placements: &[PlannedDeployment],
        output: &dyn DeployOutput,
    ) -> Result<DeploymentRecord, DeployError> {
        let (record, _lock, _) = self.create_first(placements, false, None, output)?;
        let goal = self.wait(&record, WaitGoal::Running);
        let status = goal.map_err(|error| self.abandon(&record, error))?;
        match status.state {
            DeploymentState::Failed | DeploymentState::Evicted => {
                let error = DeployError::Failed { name: record.name.clone(), detail: status.detail };
                Err(self.abandon(&record, error))
            }
            _ => {
                output.running(&record, status.url.as_deref());
                self.known(&record.run_id)
            }
        }
    }

    /// Creates a deployment, waits for its end, and deletes it: also after an error and when interrupted. A job that is
    /// evicted begins again in the next placement.
    pub fn up_attached(
        &self,
        placements: &[PlannedDeployment],
        output: &dyn DeployOutput,
    ) -> Result<Ended, DeployError> {
        let mut rest = placements;
        let mut evicted: Option<DeploymentRecord> = None;
        let mut lost = Duration::ZERO;
        loop {
            let replaces = evicted.as_ref().map(|record| record.run_id.as_str());
            let (record, lock, used) = self.create_first(rest, true, replaces, output)?;
            let status = self.follow(&record, output).map_err(|error| self.abandon(&record, error))?;
            let is_evicted = status.state == DeploymentState::Evicted;
            if is_evicted {
                let checkpoints = used.checked_sub(1).and_then(|index| rest.get(index));
                let checkpoints = checkpoints.and_then(|planned| planned.spec.checkpoints.as_ref());
                lost += self.lost_work(&record, checkpoints)?;
            }
            let ended = self.finish(&record, &status, lost, output)?;
            drop(lock);
            if !is_evicted {
                return Ok(ended);
            }
            rest = rest.part(used..);
            let name = record.name.clone();
            if rest.is_empty() {
                return Err(DeployError::Evicted { name });
            }
            output.next_placement(&format!("`{name}` was evicted"));
            evicted = Some(record);
        }
    }

    /// `cudock resume` of an attached deployment: waits for its end and deletes it.
    pub(crate) fn resume_attached(
        &self,
        record: &DeploymentRecord,
        output: &dyn DeployOutput,
    ) -> Result<Ended, DeployError> {
        let status = self.follow(record, output).map_err(|error| self.abandon(record, error))?;
        if status.state == DeploymentState::Evicted {
            // Their storage is known to the command that died only.
            let lost = self.lost_work(record, None)?;
            self.finish(record, &status, lost, output)?;
            return Err(DeployError::Evicted { name: record.name.clone() });
        }
        self.finish(record, &status, Duration::ZERO, output)
    }

    /// Creates the first placement that has capacity. Also returns how many were used up.
    fn create_first(
        &self,
        placements: &[PlannedDeployment],
        is_attached: bool,
        replaces: Option<&str>,
        output: &dyn DeployOutput,
    ) -> Result<(DeploymentRecord, RunLock, usize), DeployError> {
        for (index, planned) in placements.iter().enumerate() {
            match self.create(planned, is_attached, replaces) {
                Ok((record, lock)) => return Ok((record, lock, index + 1)),
                Err(error) if error.is_no_capacity() && index + 1 < placements.len() => {
                    output.next_placement(&cudock_base::text::error_chain(&error));
                }
                Err(error) => return Err(error),
            }
        }
        Err(cudock_base::UsageError::new("no placement fits this workload").into())
    }

    /// Waits for the end of a job; a service runs until it ends by itself or the command is interrupted.
    fn follow(&self, record: &DeploymentRecord, output: &dyn DeployOutput) -> Result<Status, DeployError> {
        if !matches!(record.identity.work, WorkShape::Serve { .. }) {
            return self.wait(record, WaitGoal::Ended);
        }
        let mut current = self.wait(record, WaitGoal::Running)?;
        if current.state == DeploymentState::Running {
            output.running(record, current.url.as_deref());
        }
        while current.state == DeploymentState::Running {
            pause(self.clock, WATCH, self.interrupted);
            if self.interrupted.load(Ordering::Relaxed) {
                return Err(DeployError::Interrupted);
            }
            // A single status that cannot be read does not end a service.
            if let Ok((status, _)) = status(self.cloud, &record.identity) {
                self.journal.observe(&record.run_id, &status)?;
                current = status;
            }
        }
        match current.state {
            DeploymentState::Gone | DeploymentState::Deleting => {
                Err(DeployError::Vanished { name: record.name.clone() })
            }
            _ => Ok(current),
        }
    }

    /// Fetches the output of what has ended, and deletes it.
    fn finish(
        &self,
        record: &DeploymentRecord,
        status: &Status,
        lost: Duration,
        output: &dyn DeployOutput,
    ) -> Result<Ended, DeployError> {
        match read_logs(self.deleter, &record.identity, self.outputs) {
            Ok(logs) if logs.is_empty() => {}
            Ok(logs) => output.output(&logs),
            Err(error) => output.output(&format!("the output cannot be read: {error}\n")),
        }
        self.delete(record)?;
        let exit_code = match (status.exit_code, status.state) {
            (Some(code), _) => code,
            (None, DeploymentState::Succeeded) => 0,
            (None, _) => 1,
        };
        Ok(Ended { record: self.known(&record.run_id)?, exit_code, lost })
    }

    /// The work that an eviction has cost: what was done since the last checkpoint, or all of it if none is known.
    fn lost_work(
        &self,
        record: &DeploymentRecord,
        checkpoints: Option<&Checkpoints>,
    ) -> Result<Duration, DeployError> {
        self.bill_deleted(&self.known(&record.run_id)?)?;
        let known = self.known(&record.run_id)?;
        let is_mounted = record.identity.mounts_checkpoints();
        let question = checkpoints.and_then(|checkpoints| checkpoints.question(&record.name, is_mounted));
        let blobs = question.and_then(|question| self.cloud.download(&question, None).ok());
        let kept = blobs.as_deref().and_then(Checkpoints::last_written);
        let now = self.cloud.now();
        let lost = match (kept, known.billed.from) {
            (Some(kept), Some(from)) if kept >= from => known.billed.until.unwrap_or(now).since(kept),
            _ => known.billed_length(now),
        };
        self.journal.add_lost(&record.run_id, lost)?;
        Ok(lost)
    }
}
