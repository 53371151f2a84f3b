//! Jobs and tasks.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::error;
use super::outputs::log;
use super::render::{list, select};
use crate::cloud::Cloud;
use crate::state::batch::{Job, PoolNode, Task};
use crate::time::{Seconds, duration};
use crate::wire::answer::Answer;

impl Cloud {
    pub(super) fn create_job(&mut self, account: &str, body: &Value) -> Answer {
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
        if body["jobManagerTask"].is_object() {
            self.add_task(&id, &body["jobManagerTask"]);
        }
        let limit = body["constraints"]["maxWallClockTime"].as_str().and_then(duration);
        if let Some(limit) = limit.filter(|limit| *limit < 10 * 366 * 86_400) {
            let id = id.clone();
            self.after(limit, move |cloud| {
                if cloud.batch.jobs.get(&id).is_some_and(|job| job.serial == serial) {
                    cloud.end_job(&id, "MaxWallClockTimeExpiry");
                }
            });
        }
        Answer::empty(201)
            .with("ETag", format!("0x{serial:X}"))
            .with("Location", format!("{}/jobs/{id}", self.base))
    }

    /// Ends a job that is active, its tasks, and the pool that was made for it.
    pub(super) fn end_job(&mut self, id: &str, reason: &'static str) {
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

    pub(super) fn job_request(
        &mut self,
        method: &str,
        id: &str,
        rest: &[&str],
        query: &str,
        body: &Value,
        condition: Option<&str>,
    ) -> Answer {
        if method == "GET" {
            self.end_due_tasks(id);
        }
        let Some(job) = self.batch.jobs.get_mut(id) else {
            return error(404, "JobNotFound", "The specified job does not exist.");
        };
        let etag = format!("0x{:X}", job.serial);
        if condition.is_some_and(|condition| condition != "*" && condition.trim_matches('"') != etag) {
            return error(
                412,
                "ConditionNotMet",
                "The condition specified using HTTP conditional header(s) is not met.",
            );
        }
        match (method, rest) {
            ("GET", []) => {
                let job = &self.batch.jobs[id];
                Answer::json(200, select(self.render_job(job), query)).with("ETag", etag)
            }
            ("PATCH" | "PUT", []) => {
                let action = body["onAllTasksComplete"].as_str();
                if action.is_some_and(|action| {
                    !["noaction", "terminatejob"].contains(&action.to_lowercase().as_str())
                }) {
                    return error(
                        400,
                        "InvalidPropertyValue",
                        "The value provided for one of the properties is invalid.",
                    );
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
                Answer::json(
                    200,
                    json!({"taskCounts": {
                        "active": active, "running": running, "completed": completed, "succeeded": completed - failed,
                        "failed": failed,
                    }}),
                )
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
                list(job.tasks.values().map(|task| self.render_task(id, task)))
            }
            (_, ["tasks", task, rest @ ..]) => self.task_request(method, id, task, rest),
            _ => error(404, "ResourceNotFound", &format!("{method} {rest:?} of a job is not supported")),
        }
    }

    pub(super) fn add_task(&mut self, job_id: &str, body: &Value) -> Answer {
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

    pub(super) fn task_request(
        &mut self,
        method: &str,
        job_id: &str,
        task_id: &str,
        rest: &[&str],
    ) -> Answer {
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
            ("GET" | "HEAD", ["files", ..])
                if task.started.is_some() && !self.batch.pools.contains_key(&job.pool) =>
            {
                error(404, "NodeNotFound", "The specified node does not exist.")
            }
            ("GET" | "HEAD", ["files", name @ ..]) => {
                let text = name.first().filter(|_| task.started.is_some()).and_then(|name| log(name));
                let missing = || error(404, "FileNotFound", "The specified file does not exist.");
                text.map_or_else(missing, Answer::text)
            }
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
            let ends_itself = job.body["onAllTasksComplete"]
                .as_str()
                .is_some_and(|action| action.eq_ignore_ascii_case("terminatejob"));
            if ends_itself && job.tasks.values().all(|task| task.state == "completed") {
                self.end_job(&id, "AllTasksComplete");
                continue;
            }
            while self.start_task(&id) {}
        }
    }

    pub(super) fn start_task(&mut self, job_id: &str) -> bool {
        let now = self.now;
        let job = self.batch.jobs.get_mut(job_id).unwrap();
        let Some(pool) = self.batch.pools.get_mut(&job.pool).filter(|pool| pool.state == "active") else {
            return false;
        };
        let slots = pool.body["taskSlotsPerNode"].as_u64().unwrap_or(1);
        let load = |node: &PoolNode| {
            job.tasks
                .values()
                .filter(|task| task.state == "running" && task.node.as_ref() == Some(&node.id))
                .count()
        };
        let free = pool
            .nodes
            .iter()
            .find(|node| ["idle", "running"].contains(&node.state) && (load(node) as u64) < slots);
        let Some(node) = free.map(|node| node.id.clone()) else { return false };
        let Some((task_id, task)) = job.tasks.iter_mut().find(|(_, task)| task.state == "active") else {
            return false;
        };
        (task.state, task.started, task.node) = ("running", Some(now), Some(node));
        task.starts += 1;
        let (job_id, task_id, starts) = (job_id.to_owned(), task_id.clone(), task.starts);
        let limit =
            task.body["constraints"]["maxWallClockTime"].as_str().and_then(duration).unwrap_or(Seconds::MAX);
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
    pub(super) fn end_due_tasks(&mut self, job: &str) {
        let (now, code) = (self.now, self.settings.job_exit_code);
        let mut ended = Vec::new();
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
                ended.push(task.body.clone());
            }
        }
        for body in ended {
            let failure = self.upload_outputs(&body, code);
            let id = body["id"].as_str().unwrap_or_default();
            let task = self.batch.jobs.get_mut(job).and_then(|job| job.tasks.get_mut(id));
            if let Some(task) = task {
                task.failure = task.failure.or(failure);
            }
        }
        self.step_batch();
    }
}
