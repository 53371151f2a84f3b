//! Changes of the journal.

use std::time::Duration;

use cudock_azure::{DeploymentState, JobTime, Phase, Status, Step};
use cudock_base::Timestamp;
use rusqlite::{ErrorCode, Transaction, params};

use super::{Journal, JournalError, NewDeployment, StepRole, StepState};
use crate::journal::billed_time::BilledTime;
use crate::names::{phase_name, state_name};

impl Journal {
    /// Writes down a deployment before anything of it is created.
    pub fn begin(&self, new: &NewDeployment<'_>) -> Result<(), JournalError> {
        let NewDeployment { deployment, spec, .. } = new;
        let identity = self.json(&deployment.identity)?;
        let cleanup = self.json(&deployment.cleanup)?;
        let steps: Vec<(&Step, String)> = deployment
            .steps
            .iter()
            .map(|step| Ok((step, self.json(step)?)))
            .collect::<Result<_, JournalError>>()?;
        let written = self.write(|change| {
            change.execute(
                "INSERT INTO deployments (run_id, name, identity, cleanup, target, region, size, gpus, instances,
                     price_per_hour, is_attached, created, expires, state, replaces)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)",
                params![
                    deployment.run_id,
                    deployment.name,
                    identity,
                    cleanup,
                    deployment.service.id(),
                    deployment.region,
                    spec.size,
                    spec.gpus,
                    spec.instances,
                    deployment.price_per_hour.to_string(),
                    new.is_attached,
                    millis(new.created),
                    millis(spec.expires),
                    state_name(DeploymentState::Starting),
                    new.replaces,
                ],
            )?;
            for (position, (step, request)) in (0_i64..).zip(&steps) {
                let entry = StepEntry { role: StepRole::Create, position, state: StepState::Planned };
                insert_step(change, &deployment.run_id, &entry, step, request, None)?;
            }
            Ok(())
        });
        match written {
            Err(JournalError::Database { source, .. })
                if source.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) =>
            {
                Err(JournalError::NameTaken { name: deployment.name.clone() })
            }
            other => other,
        }
    }

    /// Writes down that the request of a step is about to be sent.
    pub fn intend(
        &self,
        run_id: &str,
        role: StepRole,
        position: usize,
        step: &Step,
        at: Timestamp,
    ) -> Result<(), JournalError> {
        let request = self.json(step)?;
        let position = i64::try_from(position).unwrap_or(i64::MAX);
        self.write(|change| {
            let entry = StepEntry { role, position, state: StepState::Intended };
            insert_step(change, run_id, &entry, step, &request, Some(at))
        })
    }

    /// Writes down how a step ended.
    pub fn end_step(
        &self,
        run_id: &str,
        role: StepRole,
        position: usize,
        error: Option<&str>,
        at: Timestamp,
    ) -> Result<(), JournalError> {
        let state = if error.is_some() { StepState::Failed } else { StepState::Done };
        let position = i64::try_from(position).unwrap_or(i64::MAX);
        self.write(|change| {
            change.execute(
                "UPDATE steps SET state = ?4, ended = ?5, error = ?6
                 WHERE run_id = ?1 AND role = ?2 AND position = ?3",
                params![run_id, role.name(), position, state.name(), millis(at), error],
            )
        })?;
        Ok(())
    }

    /// Records the status that the service reports. A deployment that is being deleted stays so.
    pub fn observe(&self, run_id: &str, status: &Status) -> Result<(), JournalError> {
        // Only a deletion makes it gone: a service may not know yet what it has just created.
        let state = match status.state {
            DeploymentState::Gone | DeploymentState::Deleting => None,
            state => Some(state_name(state)),
        };
        let billed = BilledTime::seen(status.billed_from, status.billed_until);
        self.write(|change| {
            change.execute(
                "UPDATE deployments SET state = COALESCE(?2, state), detail = ?3, url = COALESCE(?4, url)
                 WHERE run_id = ?1 AND state NOT IN ('deleting', 'gone')",
                params![run_id, state, status.detail, status.url],
            )?;
            change.execute(
                "UPDATE deployments SET exit_code = COALESCE(?2, exit_code) WHERE run_id = ?1",
                params![run_id, status.exit_code],
            )?;
            set_billed(change, run_id, billed, &status.jobs)
        })
    }

    /// Writes down when billing began and ended and when jobs ran, as far as that is known. The earliest begin counts.
    pub fn bill(&self, run_id: &str, billed: BilledTime, jobs: &[JobTime]) -> Result<(), JournalError> {
        self.write(|change| set_billed(change, run_id, billed, jobs))
    }

    pub fn set_state(
        &self,
        run_id: &str,
        state: DeploymentState,
        detail: Option<&str>,
    ) -> Result<(), JournalError> {
        self.write(|change| {
            change.execute(
                "UPDATE deployments SET state = ?2, detail = COALESCE(?3, detail) WHERE run_id = ?1",
                params![run_id, state_name(state), detail],
            )
        })?;
        Ok(())
    }

    /// Adds to the work that evictions have cost.
    pub fn add_lost(&self, run_id: &str, lost: Duration) -> Result<(), JournalError> {
        let seconds = i64::try_from(lost.as_secs()).unwrap_or(i64::MAX);
        self.write(|change| {
            change.execute(
                "UPDATE deployments SET lost_seconds = lost_seconds + ?2 WHERE run_id = ?1",
                params![run_id, seconds],
            )
        })?;
        Ok(())
    }

    /// Ends the current phase of a deployment and begins the next one; none if it is over.
    pub fn enter_phase(
        &self,
        run_id: &str,
        next: Option<(Phase, bool)>,
        at: Timestamp,
    ) -> Result<(), JournalError> {
        self.write(|change| {
            change.execute(
                "UPDATE phases SET ended = ?2 WHERE run_id = ?1 AND ended IS NULL",
                params![run_id, millis(at)],
            )?;
            if let Some((phase, is_billed)) = next {
                change.execute(
                    "INSERT INTO phases (run_id, phase, began, is_billed) VALUES (?1, ?2, ?3, ?4)",
                    params![run_id, phase_name(phase), millis(at), is_billed],
                )?;
            }
            Ok(())
        })
    }

    fn json(&self, value: &impl serde::Serialize) -> Result<String, JournalError> {
        serde_json::to_string(value).map_err(|error| JournalError::damaged(&self.path, &error))
    }
}

/// The key of a step, and how far it has come.
struct StepEntry {
    role: StepRole,
    position: i64,
    state: StepState,
}

fn insert_step(
    change: &Transaction<'_>,
    run_id: &str,
    entry: &StepEntry,
    step: &Step,
    request: &str,
    intended: Option<Timestamp>,
) -> Result<(), rusqlite::Error> {
    let has_secrets = step.call.body.as_ref().is_some_and(|body| body.expose() != *body.redacted());
    change.execute(
        "INSERT INTO steps (run_id, role, position, id, request, resource, is_billed, has_secrets, state, intended)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
         ON CONFLICT (run_id, role, position)
         DO UPDATE SET state = excluded.state, intended = excluded.intended, ended = NULL, error = NULL",
        params![
            run_id,
            entry.role.name(),
            entry.position,
            step.id,
            request,
            step.resource,
            step.is_billed,
            has_secrets,
            entry.state.name(),
            intended.map(millis),
        ],
    )?;
    Ok(())
}

fn set_billed(
    change: &Transaction<'_>,
    run_id: &str,
    billed: BilledTime,
    jobs: &[JobTime],
) -> Result<(), rusqlite::Error> {
    change.execute(
        "UPDATE deployments
         SET billed_from = MIN(COALESCE(billed_from, ?2), COALESCE(?2, billed_from)),
             billed_until = COALESCE(?3, billed_until),
             billed_at_most = MAX(billed_at_most, ?4)
         WHERE run_id = ?1",
        params![run_id, billed.from.map(millis), billed.until.map(millis), billed.is_at_most],
    )?;
    for job in jobs {
        change.execute(
            "INSERT INTO jobs (run_id, name, began, ended) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (run_id, name)
             DO UPDATE SET began = MIN(began, excluded.began), ended = COALESCE(excluded.ended, ended)",
            params![run_id, job.name, millis(job.from), job.until.map(millis)],
        )?;
    }
    Ok(())
}

/// Milliseconds since 1970, as the tables have them.
pub(super) fn millis(time: Timestamp) -> i64 {
    time.millis().and_then(|millis| i64::try_from(millis).ok()).unwrap_or(0)
}
