//! The state of deployments according to their services, and the list of `ps`.

pub(crate) mod exec;
pub(crate) mod logs;
pub(crate) mod verify;

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use cudock_azure::{Call, DeploymentIdentity, DeploymentState, Status};
use cudock_base::{Timestamp, Usd, lock, try_parallel};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::cloud::{ApiError, ApiErrorReason, CloudApi};
use crate::journal::{DeploymentRecord, Journal, JournalError};
use crate::names::state_name;

/// Status requests at the same time.
const CONCURRENT: usize = 16;

/// The status of a deployment according to its services, and the delay before the next request that
/// they want.
pub(crate) fn status(
    cloud: &dyn CloudApi,
    identity: &DeploymentIdentity,
) -> Result<(Status, Option<Duration>), ApiError> {
    let mut retry_after = None;
    let mut responses = Vec::new();
    for call in identity.status_calls() {
        // The group is the first. With it, also the hosts of what was in it are gone.
        let is_gone = responses.first() == Some(&None) && identity.is_within_group();
        match response_body(cloud, &call, &mut retry_after) {
            Err(error) if is_gone && error.reason == ApiErrorReason::Outside => responses.push(None),
            response => responses.push(response?),
        }
    }
    for call in identity.follow_up_calls(&responses) {
        responses.push(response_body(cloud, &call, &mut retry_after)?);
    }
    Ok((identity.status(&responses), retry_after))
}

/// The body of a response; none for 404.
pub(crate) fn response_body(
    cloud: &dyn CloudApi,
    call: &Call,
    retry_after: &mut Option<Duration>,
) -> Result<Option<Value>, ApiError> {
    match cloud.send(call) {
        Ok(reply) => {
            *retry_after = reply.retry_after.or(*retry_after);
            Ok(Some(reply.body))
        }
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

/// The data of a deployment that every report has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DeploymentName {
    pub name: String,
    pub run_id: String,
    pub service: &'static str,
    pub region: String,
    pub size: Option<String>,
    pub state: &'static str,
}

impl DeploymentName {
    pub(crate) fn of(record: &DeploymentRecord) -> Self {
        Self {
            name: record.name.clone(),
            run_id: record.run_id.clone(),
            service: record.identity.service.id(),
            region: record.identity.region.clone(),
            size: record.size.clone(),
            state: state_name(record.state),
        }
    }
}

/// A deployment in the report of `ps`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct DeploymentSummary {
    #[serde(flatten)]
    pub deployment: DeploymentName,
    /// The service's own words.
    pub detail: Option<String>,
    pub url: Option<String>,
    pub exit_code: Option<i32>,
    pub created: String,
    /// When the cloud deletes it by itself.
    pub expires: String,
    /// Seconds since it was created.
    pub age: u64,
    /// US dollars; 0 when it is not billed anymore.
    pub cost_per_hour: Usd,
    pub cost_so_far: Usd,
    /// Resource ids.
    pub resources: Vec<String>,
}

impl DeploymentSummary {
    fn new(record: &DeploymentRecord, resources: Vec<String>, now: Timestamp) -> Self {
        Self {
            deployment: DeploymentName::of(record),
            detail: record.detail.clone(),
            url: record.url.clone(),
            exit_code: record.exit_code,
            created: record.created.to_string(),
            expires: record.expires.to_string(),
            age: now.since(record.created).as_secs(),
            cost_per_hour: if record.is_billed() { record.price_per_hour } else { Usd::ZERO },
            cost_so_far: record.billed_cost(now),
            resources,
        }
    }
}

/// The deployments that exist, or all. With a cloud, their states are read from it; problems with that are returned as
/// notes, because the journal's knowledge is better than none.
pub fn ps(
    journal: &Journal,
    cloud: Option<&dyn CloudApi>,
    is_all: bool,
) -> Result<(Vec<DeploymentSummary>, Vec<String>), JournalError> {
    let mut records = if is_all { journal.all()? } else { journal.existing()? };
    let notes = match cloud {
        Some(cloud) => refresh(cloud, journal, &mut records)?,
        None => Vec::new(),
    };
    let now = cloud.map_or_else(Timestamp::now, CloudApi::now);
    let mut resources: BTreeMap<String, Vec<String>> = journal.resources()?;
    let summaries = records
        .iter()
        .map(|record| {
            let resources = resources.remove(&record.run_id).unwrap_or_default();
            DeploymentSummary::new(record, resources, now)
        })
        .collect();
    Ok((summaries, notes))
}

/// Reads the states of existing deployments, several at the same time, and writes them down. A deployment that the cloud
/// no longer has is shown as gone, but the journal keeps it until its deletion was confirmed.
pub(crate) fn refresh(
    cloud: &dyn CloudApi,
    journal: &Journal,
    records: &mut [DeploymentRecord],
) -> Result<Vec<String>, JournalError> {
    let pending = records.iter_mut().filter(|record| record.state != DeploymentState::Gone);
    let pending: Vec<Mutex<&mut DeploymentRecord>> = pending.map(Mutex::new).collect();
    let notes = try_parallel(&pending, CONCURRENT, |record| refresh_one(cloud, journal, &mut lock(record)))?;
    Ok(notes.into_iter().flatten().collect())
}

fn refresh_one(
    cloud: &dyn CloudApi,
    journal: &Journal,
    record: &mut DeploymentRecord,
) -> Result<Option<String>, JournalError> {
    let (status, _) = match status(cloud, &record.identity) {
        Ok(status) => status,
        Err(error) => return Ok(Some(format!("{}: state of the journal: {error}", record.name))),
    };
    let is_gone = status.state == DeploymentState::Gone;
    journal.observe(&record.run_id, &status)?;
    if let Some(known) = journal.run(&record.run_id)? {
        *record = known;
    }
    if is_gone && record.state != DeploymentState::Starting {
        record.state = DeploymentState::Gone;
    }
    Ok(None)
}
