//! Pools and their nodes.

use serde_json::{Value, json};

use super::error;
use crate::catalog;
use crate::cloud::Cloud;
use crate::resources::target::is_within;
use crate::state::batch::{Pool, PoolNode};
use crate::time::Seconds;
use crate::wire::answer::Answer;

/// Time from the allocation of a node until it can work.
const NODE_START_SECONDS: Seconds = 120;
/// Time until a pool gets a preempted node back.
const REFILL_SECONDS: Seconds = 60;

impl Cloud {
    pub(super) fn create_pool(&mut self, account: &str, body: &Value) -> Answer {
        let id = body["id"].as_str().unwrap_or_default().to_owned();
        if self.batch.pools.contains_key(&id) {
            return error(409, "PoolExists", "The specified pool already exists.");
        }
        let size = body["vmSize"].as_str().unwrap_or_default();
        if catalog::size(size).is_none() {
            let mut refusal = error(
                400,
                "InvalidPropertyValue",
                "The value provided for one of the properties is invalid.",
            );
            if let Some(body) = &mut refusal.body {
                body["values"] = json!([{"key": "PropertyName", "value": "vmSize"}, {"key": "PropertyValue", "value": size}]);
            }
            return refusal;
        }
        let serial = self.add_pool(account, &id, body.clone());
        Answer::empty(201)
            .with("ETag", format!("0x{serial:X}"))
            .with("Location", format!("{}/pools/{id}", self.base))
    }

    pub(super) fn add_pool(&mut self, account: &str, id: &str, body: Value) -> u64 {
        let serial = self.serial();
        let pool = Pool {
            id: id.to_owned(),
            serial,
            account: account.to_owned(),
            body,
            created: self.now,
            state: "active",
            resize_errors: Vec::new(),
            nodes: Vec::new(),
            is_resizing: true,
            is_seeded: false,
        };
        self.batch.pools.insert(id.to_owned(), pool);
        self.allocate_nodes(id, serial);
        let id = id.to_owned();
        self.after(NODE_START_SECONDS, move |cloud| {
            if let Some(pool) = cloud.active_pool(&id, serial) {
                pool.is_resizing = false;
            }
        });
        serial
    }

    /// Creates a pool before the test.
    pub(crate) fn seed_pool(&mut self, account: &str, body: Value) {
        let id = body["id"].as_str().unwrap_or_default().to_owned();
        self.add_pool(account, &id, body);
        // Its nodes are not billed to the deployment.
        self.charges.retain(|charge| !is_within(&charge.key, account));
        let pool = self.batch.pools.get_mut(&id).unwrap();
        pool.is_seeded = true;
        pool.nodes.iter_mut().for_each(|node| node.state = "idle");
    }

    /// The pool, if it is still the one that was meant and is not being deleted.
    pub(super) fn active_pool(&mut self, id: &str, serial: u64) -> Option<&mut Pool> {
        self.batch.pools.get_mut(id).filter(|pool| pool.serial == serial && pool.state == "active")
    }

    pub(super) fn allocate_nodes(&mut self, id: &str, serial: u64) {
        let now = self.now;
        let limits = [self.settings.quota_of("cores"), self.settings.quota_of("lowPriorityCores")];
        let Some(pool) = self.active_pool(id, serial) else { return };
        let (cores, _) = catalog::size(pool.body["vmSize"].as_str().unwrap_or_default()).unwrap_or_default();
        for (name, is_dedicated, limit, code) in [
            ("targetDedicatedNodes", true, limits[0], "AccountCoreQuotaReached"),
            ("targetLowPriorityNodes", false, limits[1], "AccountLowPriorityCoreQuotaReached"),
        ] {
            let wanted = pool.body[name].as_u64().unwrap_or(0);
            if wanted * cores > limit {
                pool.resize_errors
                    .push(json!({"code": code, "message": "The specified account has reached core quota."}));
                continue;
            }
            for number in 0..wanted {
                let suffix = if is_dedicated { "d" } else { "p" };
                let id = format!("tvmps_{serial:08x}{number:04x}_{suffix}");
                pool.nodes.push(PoolNode { id, state: "creating", allocated: now, is_dedicated });
            }
        }
        let account = pool.account.clone();
        let nodes: Vec<(String, bool)> =
            pool.nodes.iter().map(|node| (node.id.clone(), node.is_dedicated)).collect();
        for (node, is_dedicated) in nodes {
            self.charge(&node_key(&account, id, &node));
            self.start_node(id, serial, &node);
            if let Some(seconds) = self.settings.evict_after.filter(|_| !is_dedicated) {
                let id = id.to_owned();
                self.after(seconds, move |cloud| cloud.preempt(&id, serial, &node));
            }
        }
    }

    pub(super) fn start_node(&mut self, pool: &str, serial: u64, node: &str) {
        let (pool, node) = (pool.to_owned(), node.to_owned());
        self.after(NODE_START_SECONDS, move |cloud| {
            let Some(pool) = cloud.active_pool(&pool, serial) else { return };
            for node in pool.nodes.iter_mut().filter(|other| other.id == node && other.state == "creating") {
                node.state = "idle";
            }
        });
    }

    /// Takes a Spot node away; its task waits again, and the pool gets the node back later.
    pub(super) fn preempt(&mut self, id: &str, serial: u64, node: &str) {
        let Some(pool) = self.active_pool(id, serial) else { return };
        let account = pool.account.clone();
        for node in pool.nodes.iter_mut().filter(|other| other.id == node) {
            node.state = "preempted";
        }
        self.stop_charging(&node_key(&account, id, node));
        for job in self.batch.jobs.values_mut().filter(|job| job.pool == id) {
            for task in job.tasks.values_mut() {
                if task.state == "running" && task.node.as_deref() == Some(node) {
                    (task.state, task.node, task.started) = ("active", None, None);
                    task.requeues += 1;
                    task.starts += 1;
                }
            }
        }
        let (id, node) = (id.to_owned(), node.to_owned());
        self.after(REFILL_SECONDS, move |cloud| {
            let now = cloud.now;
            let Some(pool) = cloud.active_pool(&id, serial) else { return };
            for node in pool.nodes.iter_mut().filter(|other| other.id == node) {
                (node.state, node.allocated) = ("creating", now);
            }
            cloud.charge(&node_key(&account, &id, &node));
            cloud.start_node(&id, serial, &node);
        });
    }

    pub(super) fn delete_pool(&mut self, id: &str) -> Answer {
        let Some(pool) = self.batch.pools.get_mut(id) else {
            return error(404, "PoolNotFound", "The specified pool does not exist.");
        };
        if pool.state == "deleting" {
            return error(409, "PoolBeingDeleted", "The specified pool is being deleted.");
        }
        pool.state = "deleting";
        let (account, serial, id) = (pool.account.clone(), pool.serial, id.to_owned());
        self.stop_charging(&format!("{account}/pools/{id}"));
        self.after(90, move |cloud| {
            cloud.batch.pools.retain(|_, pool| pool.id != id || pool.serial != serial);
        });
        Answer::empty(202)
    }
}

/// The key under which a node is billed: it is within the account, and ends with it.
fn node_key(account: &str, pool: &str, node: &str) -> String {
    format!("{account}/pools/{pool}/nodes/{node}")
}
