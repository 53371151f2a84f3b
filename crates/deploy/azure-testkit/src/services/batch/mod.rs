//! Batch: accounts, and their data plane of pools, nodes, jobs and tasks.
//!
//! Each account has a host of its own, which exists as long as the account.

mod jobs;
mod outputs;
mod pools;
mod render;

use serde_json::{Value, json};

use crate::catalog;
use crate::cloud::Cloud;
use crate::resources::target::Target;
use crate::services::batch::render::{list, select};
use crate::wire::answer::Answer;

/// The suffix of the hosts of all accounts.
pub(crate) const BATCH_SUFFIX: &str = "batch.azure.com";

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
                ("accountEndpoint", json!(format!("{}.{location}.{BATCH_SUFFIX}", target.name))),
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

    /// The key of the account that has a host.
    pub(crate) fn account_of_host(&self, host: &str) -> Option<String> {
        let mut accounts = self.keys_of("microsoft.batch/batchaccounts").into_iter();
        accounts.find(|key| {
            let account = &self.resources[key];
            account.property("accountEndpoint") == host
                && account.state() == "Succeeded"
                && !account.is_deleting
        })
    }

    /// A request to the data plane of an account.
    pub(crate) fn batch_service(
        &mut self,
        account: &str,
        method: &str,
        path: &str,
        query: &str,
        body: &Value,
        condition: Option<&str>,
    ) -> Answer {
        if !query.contains("api-version=") {
            return error(400, "MissingRequiredQueryParameter", "api-version is missing");
        }
        let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
        // Resources of other accounts do not exist here.
        match segments.as_slice() {
            ["pools", id, ..] if self.batch.pools.get(*id).is_none_or(|pool| pool.account != account) => {
                return error(404, "PoolNotFound", "The specified pool does not exist.");
            }
            ["jobs", id, ..] if self.batch.jobs.get(*id).is_none_or(|job| job.account != account) => {
                return error(404, "JobNotFound", "The specified job does not exist.");
            }
            _ => {}
        }
        match (method, segments.as_slice()) {
            ("POST", ["pools"]) => self.create_pool(account, body),
            ("GET", ["pools"]) => {
                let pools = self.batch.pools.values().filter(|pool| pool.account == account);
                list(pools.map(|pool| self.render_pool(pool)))
            }
            ("GET", ["pools", id]) => {
                let pool = &self.batch.pools[*id];
                let etag = format!("0x{:X}", pool.serial);
                Answer::json(200, select(self.render_pool(pool), query)).with("ETag", etag)
            }
            ("DELETE", ["pools", id]) => self.delete_pool(id),
            ("GET", ["pools", id, "nodes"]) => {
                let pool = &self.batch.pools[*id];
                Answer::list(pool.nodes.iter().map(|node| self.render_node(pool, node)).collect())
            }
            ("POST", ["pools", id, "resize" | "stopresize"]) => {
                Answer::empty(202).with("ETag", format!("0x{:X}", self.batch.pools[*id].serial))
            }
            ("POST", ["jobs"]) => self.create_job(account, body),
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
