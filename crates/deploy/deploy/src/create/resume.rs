//! Goes on with a deployment whose command died.

use cudock_azure::DeploymentState;
use cudock_base::UsageError;

use crate::create::attached::{DeployOutput, Ended};
use crate::create::run::{Deployer, find_deployment};
use crate::create::wait::WaitGoal;
use crate::error::DeployError;
use crate::journal::{DeploymentRecord, StepRole, StepState};

/// The outcome of resuming a deployment.
#[derive(Debug, Clone, PartialEq)]
pub enum Resumed {
    /// A job or a service in the foreground, which has been deleted.
    Ended(Box<Ended>),
    /// A detached deployment that runs.
    Running(Box<DeploymentRecord>),
    /// It had been deleted already.
    Gone(Box<DeploymentRecord>),
}

impl Deployer<'_> {
    /// `cudock resume`: sends the requests that are missing, then waits as the command that died would have.
    pub fn resume(&self, name: &str, output: &dyn DeployOutput) -> Result<Resumed, DeployError> {
        let record = find_deployment(self.journal, name)?;
        if record.state == DeploymentState::Gone {
            return Ok(Resumed::Gone(Box::new(record)));
        }
        let _lock = self.take_lock(&record.run_id, &record.name)?;
        if record.state == DeploymentState::Deleting {
            self.delete(&record)?;
            return Ok(Resumed::Gone(Box::new(self.known(&record.run_id)?)));
        }
        self.complete(&record)?;
        if record.is_attached {
            return Ok(Resumed::Ended(Box::new(self.resume_attached(&record, output)?)));
        }
        let status = self.wait(&record, WaitGoal::Running).map_err(|error| match error {
            // It was not meant to end with a command.
            DeployError::Interrupted => error,
            error => self.abandon(&record, error),
        })?;
        output.running(&record, status.url.as_deref());
        Ok(Resumed::Running(Box::new(self.known(&record.run_id)?)))
    }

    /// Sends the requests that are not known to have succeeded. Repeating one is harmless, because names are fixed.
    fn complete(&self, record: &DeploymentRecord) -> Result<(), DeployError> {
        let steps = self.journal.steps(&record.run_id, StepRole::Create)?;
        let missing = || steps.iter().enumerate().filter(|(_, entry)| entry.state != StepState::Done);
        if let Some((_, entry)) = missing().find(|(_, entry)| entry.has_secrets) {
            let name = &record.name;
            let message = format!(
                "cannot resume `{name}`: step `{}` was not sent, and the journal does not keep its secrets",
                entry.step.id
            );
            return Err(UsageError::new(message)
                .hint(format!("`cudock down {name}`, then deploy it again"))
                .into());
        }
        let sent = self.send_steps(record, missing().map(|(position, entry)| (position, &entry.step)));
        sent.map_err(|error| self.abandon(record, error))
    }
}
