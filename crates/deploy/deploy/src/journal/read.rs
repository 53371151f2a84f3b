//! Queries of the journal.

use std::collections::BTreeMap;
use std::time::Duration;

use cudock_azure::{DeploymentState, JobTime, Step};
use cudock_base::Timestamp;
use rusqlite::types::Type;
use rusqlite::{Row, params};
use serde::de::DeserializeOwned;

use super::{DeploymentRecord, Journal, JournalError, PhaseRecord, StepRecord, StepRole, StepState};
use crate::journal::billed_time::BilledTime;
use crate::names::{phase_named, state_named};

const COLUMNS: &str =
    "run_id, name, identity, size, gpus, instances, price_per_hour, is_attached, created, expires,
    state, detail, url, exit_code, billed_from, billed_until, lost_seconds, replaces,
    billed_at_most";

impl Journal {
    /// All deployments, the newest first.
    pub fn all(&self) -> Result<Vec<DeploymentRecord>, JournalError> {
        self.records("ORDER BY created DESC, run_id", [])
    }

    /// The deployments of which something may exist, the newest first.
    pub fn existing(&self) -> Result<Vec<DeploymentRecord>, JournalError> {
        self.records("WHERE state <> 'gone' ORDER BY created DESC, run_id", [])
    }

    /// The deployment with a name or a run id; of several with the name, the one that exists, else the newest.
    pub fn find(&self, name: &str) -> Result<Option<DeploymentRecord>, JournalError> {
        let order = "WHERE name = ?1 OR run_id = ?1 ORDER BY state = 'gone', created DESC LIMIT 1";
        Ok(self.records(order, [name])?.pop())
    }

    pub fn run(&self, run_id: &str) -> Result<Option<DeploymentRecord>, JournalError> {
        Ok(self.records("WHERE run_id = ?1", [run_id])?.pop())
    }

    fn records(
        &self,
        rest: &str,
        params: impl rusqlite::Params,
    ) -> Result<Vec<DeploymentRecord>, JournalError> {
        let sql = format!("SELECT {COLUMNS} FROM deployments {rest}");
        let mut records: Vec<DeploymentRecord> = self.rows(&sql, params, record)?;
        for record in records.iter_mut().filter(|record| record.identity.node_idle.is_some()) {
            record.jobs = self.jobs(&record.run_id)?;
        }
        Ok(records)
    }

    fn jobs(&self, run_id: &str) -> Result<Vec<JobTime>, JournalError> {
        let sql = "SELECT name, began, ended FROM jobs WHERE run_id = ?1 ORDER BY name";
        self.rows(sql, [run_id], |row| {
            let until = row.get::<_, Option<i64>>(2)?.map(time);
            Ok(JobTime { name: row.get(0)?, from: time(row.get(1)?), until })
        })
    }

    /// The names of all deployments.
    pub fn names(&self) -> Result<Vec<String>, JournalError> {
        self.rows("SELECT DISTINCT name FROM deployments", [], |row| row.get(0))
    }

    /// The steps that delete a deployment.
    pub fn cleanup(&self, run_id: &str) -> Result<Vec<Step>, JournalError> {
        let sql = "SELECT cleanup FROM deployments WHERE run_id = ?1";
        let steps: Vec<Vec<Step>> = self.rows(sql, [run_id], |row| json(row, 0))?;
        Ok(steps.into_iter().next().unwrap_or_default())
    }

    /// The steps of a deployment and how far they have come.
    pub fn steps(&self, run_id: &str, role: StepRole) -> Result<Vec<StepRecord>, JournalError> {
        let sql = "SELECT request, state, has_secrets FROM steps
             WHERE run_id = ?1 AND role = ?2 ORDER BY position";
        self.rows(sql, params![run_id, role.name()], |row| {
            let state: String = row.get(1)?;
            Ok(StepRecord {
                step: json(row, 0)?,
                state: StepState::named(&state).ok_or_else(|| unknown(1, &state))?,
                has_secrets: row.get(2)?,
            })
        })
    }

    /// When the first request was sent that costs money.
    pub(crate) fn billed_request(&self, run_id: &str) -> Result<Option<Timestamp>, JournalError> {
        let sql = "SELECT MIN(intended) FROM steps WHERE run_id = ?1 AND role = 'create' AND is_billed";
        let found = self.rows(sql, [run_id], |row| Ok(row.get::<_, Option<i64>>(0)?.map(time)))?;
        Ok(found.into_iter().next().flatten())
    }

    pub fn phases(&self, run_id: &str) -> Result<Vec<PhaseRecord>, JournalError> {
        let sql = "SELECT phase, began, ended, is_billed FROM phases WHERE run_id = ?1 ORDER BY rowid";
        self.rows(sql, [run_id], |row| {
            let phase: String = row.get(0)?;
            Ok(PhaseRecord {
                phase: phase_named(&phase).ok_or_else(|| unknown(0, &phase))?,
                began: time(row.get(1)?),
                ended: row.get::<_, Option<i64>>(2)?.map(time),
                is_billed: row.get(3)?,
            })
        })
    }

    /// The ids of the resources of existing deployments, by run.
    pub fn resources(&self) -> Result<BTreeMap<String, Vec<String>>, JournalError> {
        let sql = "SELECT run_id, resource FROM steps JOIN deployments USING (run_id)
             WHERE role = 'create' AND resource IS NOT NULL AND steps.state IN ('intended', 'done')
                 AND deployments.state <> 'gone'
             ORDER BY run_id, position";
        let mut resources: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let rows = self.rows(sql, [], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)))?;
        for (run_id, resource) in rows {
            resources.entry(run_id).or_default().push(resource);
        }
        Ok(resources)
    }

    fn rows<T>(
        &self,
        sql: &str,
        params: impl rusqlite::Params,
        read: impl FnMut(&Row<'_>) -> Result<T, rusqlite::Error>,
    ) -> Result<Vec<T>, JournalError> {
        let rows = self.read(|connection| connection.prepare(sql)?.query_map(params, read)?.collect());
        rows.map_err(|error| match error {
            // A value that cannot be read was not written by this program.
            JournalError::Database {
                path,
                source: source @ rusqlite::Error::FromSqlConversionFailure(..),
            } => JournalError::damaged(&path, &source),
            other => other,
        })
    }
}

fn record(row: &Row<'_>) -> Result<DeploymentRecord, rusqlite::Error> {
    let price: String = row.get(6)?;
    let state: String = row.get(10)?;
    let moment = |column: usize| Ok::<_, rusqlite::Error>(row.get::<_, Option<i64>>(column)?.map(time));
    Ok(DeploymentRecord {
        run_id: row.get(0)?,
        name: row.get(1)?,
        identity: json(row, 2)?,
        size: row.get(3)?,
        gpus: row.get(4)?,
        instances: row.get(5)?,
        price_per_hour: price.parse().map_err(|_| unknown(6, &price))?,
        is_attached: row.get(7)?,
        created: time(row.get(8)?),
        expires: time(row.get(9)?),
        state: state_of(&state)?,
        detail: row.get(11)?,
        url: row.get(12)?,
        exit_code: row.get(13)?,
        billed: BilledTime { from: moment(14)?, until: moment(15)?, is_at_most: row.get(18)? },
        jobs: Vec::new(),
        lost: Duration::from_secs(u64::try_from(row.get::<_, i64>(16)?).unwrap_or(0)),
        replaces: row.get(17)?,
    })
}

fn state_of(name: &str) -> Result<DeploymentState, rusqlite::Error> {
    state_named(name).ok_or_else(|| unknown(10, name))
}

fn json<T: DeserializeOwned>(row: &Row<'_>, column: usize) -> Result<T, rusqlite::Error> {
    let text: String = row.get(column)?;
    serde_json::from_str(&text)
        .map_err(|error| rusqlite::Error::FromSqlConversionFailure(column, Type::Text, Box::new(error)))
}

fn unknown(column: usize, value: &str) -> rusqlite::Error {
    let problem = format!("unknown value `{value}`");
    rusqlite::Error::FromSqlConversionFailure(column, Type::Text, problem.into())
}

fn time(millis: i64) -> Timestamp {
    Timestamp::from_millis(u64::try_from(millis).unwrap_or(0))
}
