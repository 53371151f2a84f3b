//! Batch: accounts, and their data plane of pools, nodes, jobs and tasks.
//!
//! The paths of the data plane do not name the account, which is in the host of the real service. Here a new pool or job
//! belongs to the account that was created last, and everything else is found by its id.

mod jobs;
mod outputs;
mod pools;
mod render;

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::answer::Answer;
use crate::batch::render::{list, select};
use crate::catalog;
use crate::cloud::Cloud;
use crate::target::{Target, is_within};
use crate::time::Seconds;

#[derive(Debug, Clone)]
pub(crate) struct Pool {
    id: String,
    serial: u64,
    /// The key of the account.
    account: String,
    body: Value,
    created: Seconds,
    state: &'static str,
    resize_errors: Vec<Value>,
    nodes: Vec<PoolNode>,
    is_resizing: bool,
}

#[derive(Debug, Clone)]
struct PoolNode {
    id: String,
    state: &'static str,
    allocated: Seconds,
    is_dedicated: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Job {
    serial: u64,
    account: String,
    body: Value,
    created: Seconds,
    state: &'static str,
    ended: Option<(Seconds, &'static str)>,
    /// The pool it runs on, and whether it is deleted with it.
    pool: String,
    is_auto_pool: bool,
    tasks: BTreeMap<String, Task>,
}

#[derive(Debug, Clone)]
struct Task {
    body: Value,
    created: Seconds,
    state: &'static str,
    started: Option<Seconds>,
    ended: Option<Seconds>,
    node: Option<String>,
    failure: Option<&'static str>,
    retries: u64,
    requeues: u64,
    /// Whether it is done, and ends when the client looks next.
    is_due: bool,
    /// Counts the starts, so that the end of an earlier one is not taken for that of a later one.
    starts: u64,
}

/// Everything in the data planes of all accounts.
#[derive(Debug, Clone, Default)]
pub(crate) struct BatchData {
    pub(crate) pools: BTreeMap<String, Pool>,
    pub(crate) jobs: BTreeMap<String, Job>,
}

impl BatchData {
    /// Forgets what is in accounts within a scope.
    pub(crate) fn remove_account(&mut self, scope: &str) {
        self.pools.retain(|_, pool| !is_within(&pool.account, scope));
        self.jobs.retain(|_, job| !is_within(&job.account, scope));
    }

    /// Pools, and jobs that have not ended.
    pub(crate) fn unfinished(&self) -> Vec<String> {
        let pools = self.pools.values().map(|pool| format!("{}/pools/{}", pool.account, pool.id));
        let jobs = self.jobs.iter().filter(|(_, job)| job.ended.is_none());
        pools.chain(jobs.map(|(id, job)| format!("{}/jobs/{id}", job.account))).collect()
    }

    /// Ends all work in accounts within a scope: they are being deleted.
    pub(crate) fn stop_account(&mut self, scope: &str) {
        for pool in self.pools.values_mut().filter(|pool| is_within(&pool.account, scope)) {
            pool.state = "deleting";
        }
        for job in self.jobs.values_mut().filter(|job| is_within(&job.account, scope)) {
            job.state = "deleting";
        }
    }
}

/// An error as the data plane writes it.
fn error(status: u16, code: &str, text: &str) -> Answer {
    Answer::json(
        status,
        json!({
            "odata.metadata": "$metadata#Microsoft.Azure.Batch.Protocol.Entities.Container.errors/@Element",
            "code": code, "message": {"lang": "en-US", "value": format!("{text}\nRequestId:0\nTime:0")},
        }),
    )
}

impl Cloud {
    pub(crate) fn batch_account_created(&mut self, target: &Target) {
        let (cores, spot) = (self.settings.quota_of("cores"), self.settings.quota_of("lowPriorityCores"));
        let location = self.resources[&target.key].location();
        let families: Vec<Value> = catalog::families()
            .iter()
            .map(|family| json!({"name": family, "coreQuota": self.settings.quota_of(family)}))
            .collect();
        self.update(&target.key, |account| {
            for (name, value) in [
                ("accountEndpoint", json!(format!("{}.{location}.batch.azure.com", target.name))),
                ("poolAllocationMode", json!("BatchService")),
                ("dedicatedCoreQuota", json!(cores)),
                ("dedicatedCoreQuotaPerVMFamily", json!(families)),
                ("dedicatedCoreQuotaPerVMFamilyEnforced", json!(true)),
                ("lowPriorityCoreQuota", json!(spot)),
                ("poolQuota", json!(100)),
                ("activeJobAndJobScheduleQuota", json!(300)),
            ] {
                if account.property(name).is_null() {
                    account.set(name, value);
                }
            }
        });
    }

    /// The account of new pools and jobs.
    fn batch_account(&self) -> Option<String> {
        let keys = self.keys_of("microsoft.batch/batchaccounts");
        let usable = keys
            .iter()
            .map(|key| &self.resources[key])
            .filter(|account| account.state() == "Succeeded" && !account.is_deleting);
        usable.max_by_key(|account| account.serial).map(|account| account.target.key.clone())
    }

    /// A request to the data plane.
    pub(crate) fn batch_service(
        &mut self,
        method: &str,
        path: &str,
        query: &str,
        body: &Value,
        condition: Option<&str>,
    ) -> Answer {
        if !query.contains("api-version=") {
            return error(400, "MissingRequiredQueryParameter", "api-version is missing");
        }
        let Some(account) = self.batch_account() else {
            return error(404, "AccountNotFound", "The specified account does not exist.");
        };
        let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
        match (method, segments.as_slice()) {
            ("POST", ["pools"]) => self.create_pool(&account, body),
            ("GET", ["pools"]) => {
                let pools = self.batch.pools.values().filter(|pool| pool.account == account);
                list(pools.map(|pool| self.render_pool(pool)))
            }
            ("GET", ["pools", id]) => match self.batch.pools.get(*id) {
                Some(pool) => {
                    let etag = format!("0x{:X}", pool.serial);
                    Answer::json(200, select(self.render_pool(pool), query)).with("ETag", etag)
                }
                None => error(404, "PoolNotFound", "The specified pool does not exist."),
            },
            ("DELETE", ["pools", id]) => self.delete_pool(id),
            ("GET", ["pools", id, "nodes"]) => match self.batch.pools.get(*id) {
                Some(pool) => {
                    Answer::list(pool.nodes.iter().map(|node| self.render_node(pool, node)).collect())
                }
                None => error(404, "PoolNotFound", "The specified pool does not exist."),
            },
            ("POST", ["pools", id, "resize" | "stopresize"]) => match self.batch.pools.get(*id) {
                Some(pool) => Answer::empty(202).with("ETag", format!("0x{:X}", pool.serial)),
                None => error(404, "PoolNotFound", "The specified pool does not exist."),
            },
            ("POST", ["jobs"]) => self.create_job(&account, body),
            ("GET", ["jobs"]) => {
                let jobs = self.batch.jobs.values().filter(|job| job.account == account);
                list(jobs.map(|job| self.render_job(job)))
            }
            (_, ["jobs", id, rest @ ..]) => self.job_request(method, id, rest, query, body, condition),
            ("GET", ["supportedimages"]) => Answer::list(vec![json!({
                "nodeAgentSKUId": "batch.node.ubuntu 22.04", "osType": "linux", "verificationType": "verified",
                "imageReference": {"publisher": "microsoft-dsvm", "offer": "ubuntu-hpc", "sku": "2204", "version": "latest"},
                "capabilities": ["DockerCompatible", "NvidiaTeslaDriverInstalled"],
            })]),
            ("GET", ["poolusagemetrics"]) => {
                error(400, "PoolUsageMetricAPIRetired", "This API has been retired.")
            }
            _ => error(404, "ResourceNotFound", &format!("{method} {path} is not supported")),
        }
    }
}
