//! Pools, nodes, jobs and tasks as the service returns them.

use serde_json::{Value, json};

use crate::cloud::Cloud;
use crate::resources::provider::remove;
use crate::state::batch::{Job, Pool, PoolNode, Task};
use crate::time::utc;
use crate::wire::answer::Answer;
use crate::wire::form::fields;

const FOR_EVER: &str = "P10675199DT2H48M5.4775807S";

impl Cloud {
    pub(super) fn metadata(&self, kind: &str) -> Value {
        json!(format!("{}/$metadata#{kind}/@Element", self.base))
    }

    pub(super) fn render_pool(&self, pool: &Pool) -> Value {
        let mut body = pool.body.clone();
        let count = |is_dedicated: bool| {
            pool.nodes
                .iter()
                .filter(|node| node.is_dedicated == is_dedicated && node.state != "preempted")
                .count()
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

    pub(super) fn render_node(&self, pool: &Pool, node: &PoolNode) -> Value {
        json!({
            "id": node.id, "url": format!("{}/pools/{}/nodes/{}", self.base, pool.id, node.id), "state": node.state,
            "schedulingState": "enabled", "stateTransitionTime": utc(node.allocated),
            "allocationTime": utc(node.allocated), "ipAddress": "10.0.0.4", "vmSize": pool.body["vmSize"],
            "isDedicated": node.is_dedicated,
        })
    }

    pub(super) fn render_job(&self, job: &Job) -> Value {
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

    pub(super) fn render_task(&self, job: &str, task: &Task) -> Value {
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

/// A list of items; their metadata is in the list, not in each item.
pub(super) fn list(items: impl Iterator<Item = Value>) -> Answer {
    let without_metadata = items.map(|mut item| {
        remove(&mut item, "odata.metadata");
        item
    });
    Answer::list(without_metadata.collect())
}

/// The body with only the fields that `$select` names.
pub(super) fn select(mut body: Value, query: &str) -> Value {
    let wanted = fields(query).into_iter().find(|(name, _)| name == "$select").map(|(_, value)| value);
    if let (Some(wanted), Some(fields)) = (wanted, body.as_object_mut()) {
        let wanted: Vec<&str> = wanted.split(',').map(str::trim).collect();
        fields.retain(|name, _| name == "odata.metadata" || wanted.contains(&name.as_str()));
    }
    body
}
