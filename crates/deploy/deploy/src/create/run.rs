//! Creates deployments: the journal first, then the request.

use std::sync::atomic::{AtomicBool, Ordering};

use cudock_azure::{BlobContainer, Deployment, DeploymentSpec, Step};

use crate::clock::Clock;
use crate::cloud::CloudApi;
use crate::create::phase::{PhaseLimits, PhaseProgress};
use crate::error::DeployError;
use crate::journal::{DeploymentRecord, Journal, NewDeployment, RunLock, StepRole};

/// Everything needed to create, watch and delete deployments.
pub struct Deployer<'a> {
    /// Ends its requests when the command is interrupted.
    pub cloud: &'a dyn CloudApi,
    /// Client for deletions; not canceled by Ctrl-C.
    pub deleter: &'a dyn CloudApi,
    pub journal: &'a Journal,
    pub clock: &'a dyn Clock,
    /// Set when the user ends the command.
    pub interrupted: &'a AtomicBool,
    pub on_progress: &'a dyn Fn(&PhaseProgress<'_>),
    /// Storage of logs that outlive the deployment.
    pub outputs: Option<&'a BlobContainer>,
    pub limits: PhaseLimits,
}

/// A deployment that can be created, with what it was translated from.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedDeployment {
    pub spec: DeploymentSpec,
    pub deployment: Deployment,
}

impl Deployer<'_> {
    /// Creates a deployment. If that fails or is interrupted, everything of it is deleted.
    pub(crate) fn create(
        &self,
        planned: &PlannedDeployment,
        is_attached: bool,
        replaces: Option<&str>,
    ) -> Result<(DeploymentRecord, RunLock), DeployError> {
        let PlannedDeployment { spec, deployment } = planned;
        let created = self.cloud.now();
        let lock = self.take_lock(&deployment.run_id, &deployment.name)?;
        self.journal.begin(&NewDeployment { deployment, spec, is_attached, created, replaces })?;
        let record = self.known(&deployment.run_id)?;
        match self.send_steps(&record, deployment.steps.iter().enumerate()) {
            Ok(()) => Ok((record, lock)),
            Err(error) => Err(self.abandon(&record, error)),
        }
    }

    /// Carries out steps in order, each written down before its request is sent.
    pub(crate) fn send_steps<'s>(
        &self,
        record: &DeploymentRecord,
        steps: impl Iterator<Item = (usize, &'s Step)>,
    ) -> Result<(), DeployError> {
        let run_id = &record.run_id;
        let mut phase = None;
        let mut is_billed = false;
        for (position, step) in steps {
            if self.interrupted.load(Ordering::Relaxed) {
                return Err(DeployError::Interrupted);
            }
            is_billed |= step.is_billed;
            if phase.replace(step.phase) != Some(step.phase) {
                self.journal.enter_phase(run_id, Some((step.phase, is_billed)), self.cloud.now())?;
                (self.on_progress)(&PhaseProgress::beginning(step.phase, Some(&step.id)));
            }
            self.journal.intend(run_id, StepRole::Create, position, step, self.cloud.now())?;
            let result = self.cloud.run(step);
            let failure = result.as_ref().err().map(ToString::to_string);
            let written = self.journal.end_step(
                run_id,
                StepRole::Create,
                position,
                failure.as_deref(),
                self.cloud.now(),
            );
            result.map_err(|error| {
                DeployError::cloud(
                    format!("step `{}` of deployment `{}` failed", step.id, record.name),
                    error,
                )
            })?;
            written?;
        }
        Ok(())
    }

    /// Deletes a deployment because of an error, which is returned.
    pub(crate) fn abandon(&self, record: &DeploymentRecord, error: DeployError) -> DeployError {
        match self.delete(record) {
            Ok(()) => error,
            Err(cleanup) => DeployError::NotDeleted {
                name: record.name.clone(),
                error: Box::new(error),
                cleanup: Box::new(cleanup),
            },
        }
    }

    pub(crate) fn take_lock(&self, run_id: &str, name: &str) -> Result<RunLock, DeployError> {
        let lock = self.journal.lock(run_id)?;
        lock.ok_or_else(|| DeployError::Busy { name: name.to_owned() })
    }

    /// The journal's record of a run.
    pub(crate) fn known(&self, run_id: &str) -> Result<DeploymentRecord, DeployError> {
        let record = self.journal.run(run_id)?;
        record.ok_or_else(|| DeployError::Unknown { name: run_id.to_owned(), near: Vec::new() })
    }
}

/// The deployment with a name or run id.
pub fn find_deployment(journal: &Journal, name: &str) -> Result<DeploymentRecord, DeployError> {
    if let Some(record) = journal.find(name)? {
        return Ok(record);
    }
    let names = journal.names()?;
    let near = cudock_base::text::suggest::nearest(name, names.iter().map(String::as_str));
    let near = near.into_iter().map(str::to_owned).collect();
    Err(DeployError::Unknown { name: name.to_owned(), near })
}
