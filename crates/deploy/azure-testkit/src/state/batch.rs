//! The data planes of Batch accounts: pools, nodes, jobs and tasks.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::resources::target::is_within;
use crate::time::Seconds;

#[derive(Debug, Clone)]
pub(crate) struct Pool {
    pub(crate) id: String,
    pub(crate) serial: u64,
    /// The key of the account.
    pub(crate) account: String,
    pub(crate) body: Value,
    pub(crate) created: Seconds,
    pub(crate) state: &'static str,
    pub(crate) resize_errors: Vec<Value>,
    pub(crate) nodes: Vec<PoolNode>,
    pub(crate) is_resizing: bool,
    /// Whether it existed before the test; then its nodes are not billed to the deployment.
    pub(crate) is_seeded: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct PoolNode {
    pub(crate) id: String,
    pub(crate) state: &'static str,
    pub(crate) allocated: Seconds,
    pub(crate) is_dedicated: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Job {
    pub(crate) serial: u64,
    pub(crate) account: String,
    pub(crate) body: Value,
    pub(crate) created: Seconds,
    pub(crate) state: &'static str,
    pub(crate) ended: Option<(Seconds, &'static str)>,
    /// The pool it runs on, and whether it is deleted with it.
    pub(crate) pool: String,
    pub(crate) is_auto_pool: bool,
    pub(crate) tasks: BTreeMap<String, Task>,
}

#[derive(Debug, Clone)]
pub(crate) struct Task {
    pub(crate) body: Value,
    pub(crate) created: Seconds,
    pub(crate) state: &'static str,
    pub(crate) started: Option<Seconds>,
    pub(crate) ended: Option<Seconds>,
    pub(crate) node: Option<String>,
    pub(crate) failure: Option<&'static str>,
    pub(crate) retries: u64,
    pub(crate) requeues: u64,
    /// Whether it is done, and ends when the client looks next.
    pub(crate) is_due: bool,
    /// Counts the starts, so that the end of an earlier one is not taken for that of a later one.
    pub(crate) starts: u64,
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
        let pools = self.pools.values().filter(|pool| !pool.is_seeded);
        let pools = pools.map(|pool| format!("{}/pools/{}", pool.account, pool.id));
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
