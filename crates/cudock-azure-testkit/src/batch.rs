//! Batch: accounts, and their data plane of pools, nodes, jobs and tasks.
//!
//! The paths of the data plane do not name the account, which is in the host of the real service. Here a new pool or job
//! belongs to the account that was created last, and everything else is found by its id.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::answer::Answer;
use crate::catalog;
use crate::cloud::Cloud;
use crate::container_instances::OUTPUT;
use crate::route::fields;
use crate::target::{Target, is_within};
use crate::time::{Seconds, duration, utc};

/// From the allocation of a node until it can work.
const NODE_START_SECONDS: Seconds = 120;
/// Until a pool gets a node back that was preempted.
const REFILL_SECONDS: Seconds = 60;
const FOR_EVER: &str = "P10675199DT2H48M5.4775807S";

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
    nodes: Vec<Node>,
    is_resizing: bool,
}

#[derive(Debug, Clone)]
struct Node {
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
        let usable = keys.iter().map(|key| &self.resources[key]).filter(|account| {
            account.state() == "Succeeded" && !account.is_deleting
        });
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
                Answer::list(pools.map(|pool| self.render_pool(pool)).collect())
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
                Some(pool) => Answer::list(pool.nodes.iter().map(|node| self.render_node(pool, node)).collect()),
                None => error(404, "PoolNotFound", "The specified pool does not exist."),
            },
            ("POST", ["pools", id, "resize" | "stopresize"]) => match self.batch.pools.get(*id) {
                Some(pool) => Answer::empty(202).with("ETag", format!("0x{:X}", pool.serial)),
                None => error(404, "PoolNotFound", "The specified pool does not exist."),
            },
            ("POST", ["jobs"]) => self.create_job(&account, body),
            ("GET", ["jobs"]) => {
                let jobs = self.batch.jobs.values().filter(|job| job.account == account);
                Answer::list(jobs.map(|job| self.render_job(job)).collect())
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

    fn create_pool(&mut self, account: &str, body: &Value) -> Answer {
        let id = body["id"].as_str().unwrap_or_default().to_owned();
        if self.batch.pools.contains_key(&id) {
            return error(409, "PoolExists", "The specified pool already exists.");
        }
        let size = body["vmSize"].as_str().unwrap_or_default();
        if catalog::size(size).is_none() {
            let mut refusal = error(400, "InvalidPropertyValue", "The value provided for one of the properties is invalid.");
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

    fn add_pool(&mut self, account: &str, id: &str, body: Value) -> u64 {
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

    /// The pool, if it is still the one that was meant and is not being deleted.
    fn active_pool(&mut self, id: &str, serial: u64) -> Option<&mut Pool> {
        self.batch.pools.get_mut(id).filter(|pool| pool.serial == serial && pool.state == "active")
    }

    fn allocate_nodes(&mut self, id: &str, serial: u64) {
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
                pool.resize_errors.push(json!({"code": code, "message": "The specified account has reached core quota."}));
                continue;
            }
            for number in 0..wanted {
                let suffix = if is_dedicated { "d" } else { "p" };
                let id = format!("tvmps_{serial:08x}{number:04x}_{suffix}");
                pool.nodes.push(Node { id, state: "creating", allocated: now, is_dedicated });
            }
        }
        let account = pool.account.clone();
        let nodes: Vec<(String, bool)> = pool.nodes.iter().map(|node| (node.id.clone(), node.is_dedicated)).collect();
        for (node, is_dedicated) in nodes {
            self.charge(&node_key(&account, id, &node));
            self.start_node(id, serial, &node);
            if let Some(seconds) = self.settings.evict_after.filter(|_| !is_dedicated) {
                let id = id.to_owned();
                self.after(seconds, move |cloud| cloud.preempt(&id, serial, &node));
            }
        }
    }

    fn start_node(&mut self, pool: &str, serial: u64, node: &str) {
        let (pool, node) = (pool.to_owned(), node.to_owned());
        self.after(NODE_START_SECONDS, move |cloud| {
            let Some(pool) = cloud.active_pool(&pool, serial) else { return };
            for node in pool.nodes.iter_mut().filter(|other| other.id == node && other.state == "creating") {
                node.state = "idle";
            }
        });
    }

    /// Takes a Spot node away; its task waits again, and the pool gets the node back later.
    fn preempt(&mut self, id: &str, serial: u64, node: &str) {
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

    fn delete_pool(&mut self, id: &str) -> Answer {
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

    fn create_job(&mut self, account: &str, body: &Value) -> Answer {
        let id = body["id"].as_str().unwrap_or_default().to_owned();
        match self.batch.jobs.get(&id) {
            Some(job) if job.state == "deleting" => {
                return error(409, "JobBeingDeleted", "The specified job is being deleted.");
            }
            Some(_) => return error(409, "JobExists", "The specified job already exists."),
            None => {}
        }
        let automatic = &body["poolInfo"]["autoPoolSpecification"];
        let is_auto_pool = automatic.is_object();
        let pool = if is_auto_pool {
            if automatic["poolLifetimeOption"] != "job" {
                return error(400, "InvalidPropertyValue", "poolLifetimeOption must be job");
            }
            let prefix = automatic["autoPoolIdPrefix"].as_str().unwrap_or_default();
            let pool = format!("{prefix}{}", self.random.uuid().to_uppercase());
            self.add_pool(account, &pool, automatic["pool"].clone());
            pool
        } else {
            body["poolInfo"]["poolId"].as_str().unwrap_or_default().to_owned()
        };
        if !self.batch.pools.contains_key(&pool) {
            return error(409, "PoolNotFound", "The specified pool does not exist.");
        }
        let serial = self.serial();
        let job = Job {
            serial,
            account: account.to_owned(),
            body: body.clone(),
            created: self.now,
            state: "active",
            ended: None,
            pool,
            is_auto_pool,
            tasks: BTreeMap::new(),
        };
        self.batch.jobs.insert(id.clone(), job);
        let limit = body["constraints"]["maxWallClockTime"].as_str().and_then(duration);
        if let Some(limit) = limit.filter(|limit| *limit < 10 * 366 * 86_400) {
            let id = id.clone();
            self.after(limit, move |cloud| {
                if cloud.batch.jobs.get(&id).is_some_and(|job| job.serial == serial) {
                    cloud.end_job(&id, "MaxWallClockTimeExpiry");
                }
            });
        }
        Answer::empty(201).with("ETag", format!("0x{serial:X}")).with("Location", format!("{}/jobs/{id}", self.base))
    }

    /// Ends a job that is active, its tasks, and the pool that was made for it.
    fn end_job(&mut self, id: &str, reason: &'static str) {
        let now = self.now;
        let Some(job) = self.batch.jobs.get_mut(id).filter(|job| job.state == "active") else { return };
        job.state = "completed";
        job.ended = Some((now, reason));
        for task in job.tasks.values_mut().filter(|task| task.state != "completed") {
            (task.state, task.ended, task.failure) = ("completed", Some(now), Some("TaskEnded"));
        }
        let pool = job.is_auto_pool.then(|| job.pool.clone());
        if let Some(pool) = pool {
            self.delete_pool(&pool);
        }
    }

    fn job_request(
        &mut self,
        method: &str,
        id: &str,
        rest: &[&str],
        query: &str,
        body: &Value,
        condition: Option<&str>,
    ) -> Answer {
        if method == "GET" && rest.is_empty() {
            self.end_due_tasks(id);
        }
        let Some(job) = self.batch.jobs.get_mut(id) else {
            return error(404, "JobNotFound", "The specified job does not exist.");
        };
        let etag = format!("0x{:X}", job.serial);
        if condition.is_some_and(|condition| condition != "*" && condition.trim_matches('"') != etag) {
            return error(412, "ConditionNotMet", "The condition specified using HTTP conditional header(s) is not met.");
        }
        match (method, rest) {
            ("GET", []) => {
                let job = &self.batch.jobs[id];
                Answer::json(200, select(self.render_job(job), query)).with("ETag", etag)
            }
            ("PATCH" | "PUT", []) => {
                let action = body["onAllTasksComplete"].as_str();
                if action.is_some_and(|action| !["noaction", "terminatejob"].contains(&action.to_lowercase().as_str())) {
                    return error(400, "InvalidPropertyValue", "The value provided for one of the properties is invalid.");
                }
                for (name, value) in body.as_object().into_iter().flatten() {
                    job.body[name] = value.clone();
                }
                Answer::empty(200).with("ETag", etag)
            }
            ("POST", ["terminate"]) => {
                if job.state == "completed" {
                    return error(409, "JobCompleted", "The specified job is already in a completed state.");
                }
                self.end_job(id, "UserTerminate");
                Answer::empty(202).with("ETag", etag)
            }
            ("DELETE", []) => {
                if job.state == "deleting" {
                    return error(409, "JobBeingDeleted", "The specified job is being deleted.");
                }
                let serial = job.serial;
                self.end_job(id, "UserTerminate");
                self.batch.jobs.get_mut(id).unwrap().state = "deleting";
                let id = id.to_owned();
                self.after(30, move |cloud| {
                    if cloud.batch.jobs.get(&id).is_some_and(|job| job.serial == serial) {
                        cloud.batch.jobs.remove(&id);
                    }
                });
                Answer::empty(202)
            }
            ("GET", ["taskcounts"]) => {
                let count = |state: &str| job.tasks.values().filter(|task| task.state == state).count();
                let failed = job.tasks.values().filter(|task| task.failure.is_some()).count();
                let (active, running, completed) = (count("active"), count("running"), count("completed"));
                Answer::json(200, json!({"taskCounts": {
                    "active": active, "running": running, "completed": completed, "succeeded": completed - failed,
                    "failed": failed,
                }}))
            }
            ("POST", ["tasks"]) => self.add_task(id, body),
            ("POST", ["addtaskcollection"]) => {
                let tasks = body["value"].as_array().cloned().unwrap_or_default();
                if tasks.len() > 100 {
                    return error(413, "RequestBodyTooLarge", "more than 100 tasks");
                }
                let results = tasks.iter().map(|task| {
                    let added = self.add_task(id, task);
                    let status = if added.is_success() { "Success" } else { "ClientError" };
                    let mut result = json!({"taskId": task["id"], "status": status});
                    if let Some(error) = added.body {
                        result["error"] = error;
                    }
                    result
                });
                Answer::list(results.collect())
            }
            ("GET", ["tasks"]) => {
                let job = &self.batch.jobs[id];
                Answer::list(job.tasks.values().map(|task| self.render_task(id, task)).collect())
            }
            (_, ["tasks", task, rest @ ..]) => self.task_request(method, id, task, rest),
            _ => error(404, "ResourceNotFound", &format!("{method} {rest:?} of a job is not supported")),
        }
    }

    fn add_task(&mut self, job_id: &str, body: &Value) -> Answer {
        let (now, base) = (self.now, self.base.clone());
        let job = self.batch.jobs.get_mut(job_id).unwrap();
        let id = body["id"].as_str().unwrap_or_default().to_owned();
        if job.state != "active" {
            return error(409, "JobCompleted", "The specified job is already in a completed state.");
        }
        if job.tasks.contains_key(&id) {
            return error(409, "TaskExists", "The specified task already exists.");
        }
        let task = Task {
            body: body.clone(),
            created: now,
            state: "active",
            started: None,
            ended: None,
            node: None,
            failure: None,
            retries: 0,
            requeues: 0,
            is_due: false,
            starts: 0,
        };
        job.tasks.insert(id.clone(), task);
        Answer::empty(201)
            .with("ETag", format!("0x{:X}", job.serial))
            .with("Location", format!("{base}/jobs/{job_id}/tasks/{id}"))
    }

    fn task_request(&mut self, method: &str, job_id: &str, task_id: &str, rest: &[&str]) -> Answer {
        let now = self.now;
        let job = self.batch.jobs.get_mut(job_id).unwrap();
        let etag = format!("0x{:X}", job.serial);
        let Some(task) = job.tasks.get_mut(task_id) else {
            return error(404, "TaskNotFound", "The specified task does not exist.");
        };
        match (method, rest) {
            ("GET", []) => {
                let task = task.clone();
                Answer::json(200, self.render_task(job_id, &task)).with("ETag", etag)
            }
            ("PUT", []) => Answer::empty(200).with("ETag", etag),
            ("DELETE", []) => {
                job.tasks.remove(task_id);
                Answer::empty(200)
            }
            ("POST", ["terminate"]) => {
                (task.state, task.ended, task.failure) = ("completed", Some(now), Some("TaskEnded"));
                Answer::empty(204).with("ETag", etag)
            }
            ("POST", ["reactivate"]) => {
                (task.state, task.started, task.ended) = ("active", None, None);
                (task.failure, task.node) = (None, None);
                Answer::empty(204).with("ETag", etag)
            }
            ("GET" | "HEAD", ["files", "stdout.txt"]) if task.started.is_some() => Answer::text(OUTPUT.to_owned()),
            ("GET" | "HEAD", ["files", "stderr.txt"]) if task.started.is_some() => Answer::text(String::new()),
            ("GET" | "HEAD", ["files", ..]) => error(404, "FileNotFound", "The specified file does not exist."),
            _ => error(404, "ResourceNotFound", &format!("{method} {rest:?} of a task is not supported")),
        }
    }

    /// Starts tasks on idle nodes, and ends jobs whose tasks are all done.
    pub(crate) fn step_batch(&mut self) {
        let jobs: Vec<String> = self.batch.jobs.keys().cloned().collect();
        for id in jobs {
            let job = &self.batch.jobs[&id];
            if job.state != "active" {
                continue;
            }
            let ends_itself = job.body["onAllTasksComplete"].as_str().is_some_and(|action| action.eq_ignore_ascii_case("terminatejob"));
            if ends_itself && job.tasks.values().all(|task| task.state == "completed") {
                self.end_job(&id, "AllTasksComplete");
                continue;
            }
            while self.start_task(&id) {}
        }
    }

    fn start_task(&mut self, job_id: &str) -> bool {
        let now = self.now;
        let job = self.batch.jobs.get_mut(job_id).unwrap();
        let Some(pool) = self.batch.pools.get_mut(&job.pool).filter(|pool| pool.state == "active") else { return false };
        let slots = pool.body["taskSlotsPerNode"].as_u64().unwrap_or(1);
        let load = |node: &Node| job.tasks.values().filter(|task| task.state == "running" && task.node.as_ref() == Some(&node.id)).count();
        let free = pool.nodes.iter().find(|node| ["idle", "running"].contains(&node.state) && (load(node) as u64) < slots);
        let Some(node) = free.map(|node| node.id.clone()) else { return false };
        let Some((task_id, task)) = job.tasks.iter_mut().find(|(_, task)| task.state == "active") else { return false };
        (task.state, task.started, task.node) = ("running", Some(now), Some(node));
        task.starts += 1;
        let (job_id, task_id, starts) = (job_id.to_owned(), task_id.clone(), task.starts);
        let limit = task.body["constraints"]["maxWallClockTime"].as_str().and_then(duration).unwrap_or(Seconds::MAX);
        let seconds = self.settings.job_seconds.min(limit);
        self.after(seconds, move |cloud| {
            let found = cloud.batch.jobs.get_mut(&job_id).and_then(|job| job.tasks.get_mut(&task_id));
            if let Some(task) = found.filter(|task| task.state == "running" && task.starts == starts) {
                task.is_due = true;
            }
        });
        true
    }

    /// Ends the tasks of a job that are done, and the job with them.
    fn end_due_tasks(&mut self, job: &str) {
        let (now, code) = (self.now, self.settings.job_exit_code);
        for task in self.batch.jobs.get_mut(job).into_iter().flat_map(|job| job.tasks.values_mut()) {
            if !std::mem::take(&mut task.is_due) || task.state != "running" {
                continue;
            }
            let allowed = task.body["constraints"]["maxTaskRetryCount"].as_u64().unwrap_or(0);
            if code != 0 && task.retries < allowed {
                (task.state, task.node) = ("active", None);
                task.retries += 1;
            } else {
                (task.state, task.ended) = ("completed", Some(now));
                task.failure = (code != 0).then_some("FailureExitCode");
            }
        }
        self.step_batch();
    }

    fn metadata(&self, kind: &str) -> Value {
        json!(format!("{}/$metadata#{kind}/@Element", self.base))
    }

    fn render_pool(&self, pool: &Pool) -> Value {
        let mut body = pool.body.clone();
        let count = |is_dedicated: bool| {
            pool.nodes.iter().filter(|node| node.is_dedicated == is_dedicated && node.state != "preempted").count()
        };
        for (name, value) in [
            ("odata.metadata", self.metadata("pools")),
            ("id", json!(pool.id)),
            ("url", json!(format!("{}/pools/{}", self.base, pool.id))),
            ("eTag", json!(format!("0x{:X}", pool.serial))),
            ("creationTime", json!(utc(pool.created))),
            ("lastModified", json!(utc(pool.created))),
            ("state", json!(pool.state)),
            ("stateTransitionTime", json!(utc(pool.created))),
            ("allocationState", json!(if pool.is_resizing { "resizing" } else { "steady" })),
            ("currentDedicatedNodes", json!(count(true))),
            ("currentLowPriorityNodes", json!(count(false))),
        ] {
            body[name] = value;
        }
        if !pool.resize_errors.is_empty() {
            body["resizeErrors"] = json!(pool.resize_errors);
        }
        body
    }

    fn render_node(&self, pool: &Pool, node: &Node) -> Value {
        json!({
            "id": node.id, "url": format!("{}/pools/{}/nodes/{}", self.base, pool.id, node.id), "state": node.state,
            "schedulingState": "enabled", "stateTransitionTime": utc(node.allocated),
            "allocationTime": utc(node.allocated), "ipAddress": "10.0.0.4", "vmSize": pool.body["vmSize"],
            "isDedicated": node.is_dedicated,
        })
    }

    fn render_job(&self, job: &Job) -> Value {
        let mut body = job.body.clone();
        let id = job.body["id"].as_str().unwrap_or_default();
        for (name, value) in [
            ("odata.metadata", self.metadata("jobs")),
            ("url", json!(format!("{}/jobs/{id}", self.base))),
            ("eTag", json!(format!("0x{:X}", job.serial))),
            ("creationTime", json!(utc(job.created))),
            ("lastModified", json!(utc(job.created))),
            ("state", json!(job.state)),
            ("stateTransitionTime", json!(utc(job.ended.map_or(job.created, |(ended, _)| ended)))),
            ("executionInfo", json!({"startTime": utc(job.created), "poolId": job.pool})),
        ] {
            body[name] = value;
        }
        if body["constraints"]["maxWallClockTime"].is_null() {
            body["constraints"]["maxWallClockTime"] = json!(FOR_EVER);
        }
        if let Some((ended, reason)) = job.ended {
            body["executionInfo"]["endTime"] = json!(utc(ended));
            body["executionInfo"]["terminateReason"] = json!(reason);
        }
        body
    }

    fn render_task(&self, job: &str, task: &Task) -> Value {
        let mut body = task.body.clone();
        let id = task.body["id"].as_str().unwrap_or_default();
        let changed = task.ended.or(task.started).unwrap_or(task.created);
        for (name, value) in [
            ("odata.metadata", self.metadata("tasks")),
            ("url", json!(format!("{}/jobs/{job}/tasks/{id}", self.base))),
            ("eTag", json!("0x1")),
            ("creationTime", json!(utc(task.created))),
            ("lastModified", json!(utc(changed))),
            ("state", json!(task.state)),
            ("stateTransitionTime", json!(utc(changed))),
            ("executionInfo", json!({"retryCount": task.retries, "requeueCount": task.requeues})),
        ] {
            body[name] = value;
        }
        let info = &mut body["executionInfo"];
        if let Some(started) = task.started {
            info["startTime"] = json!(utc(started));
        }
        if let Some(ended) = task.ended {
            info["endTime"] = json!(utc(ended));
            info["result"] = json!(if task.failure.is_none() { "success" } else { "failure" });
            if task.started.is_some() && task.failure != Some("TaskEnded") {
                info["exitCode"] = json!(self.settings.job_exit_code);
            }
            if let Some(code) = task.failure {
                info["failureInfo"] = json!({"category": "UserError", "code": code, "message": code});
            }
        }
        if let Some(node) = &task.node {
            body["nodeInfo"] = json!({"nodeId": node});
        }
        body
    }
}

/// What bills a node: it is within the account, and ends with it.
fn node_key(account: &str, pool: &str, node: &str) -> String {
    format!("{account}/pools/{pool}/nodes/{node}")
}

/// Only the fields that `$select` names.
fn select(mut body: Value, query: &str) -> Value {
    let wanted = fields(query).into_iter().find(|(name, _)| name == "$select").map(|(_, value)| value);
    if let (Some(wanted), Some(fields)) = (wanted, body.as_object_mut()) {
        let wanted: Vec<&str> = wanted.split(',').map(str::trim).collect();
        fields.retain(|name, _| name == "odata.metadata" || wanted.contains(&name.as_str()));
    }
    body
}
