//! Machine Learning: jobs, endpoints and their deployments, in a workspace that exists.

use serde_json::{Value, json};

use crate::cloud::Cloud;
use crate::resources::resource::{Resource, bare_region};
use crate::resources::target::{Target, is_within};
use crate::services::container_instances::OUTPUT;
use crate::state::cluster_node::ClusterNode;
use crate::state::operation::{OperationStyle, Progress};
use crate::time::{Seconds, duration, utc};
use crate::wire::answer::Answer;

const JOB: &str = "microsoft.machinelearningservices/workspaces/jobs";
/// Time from the submission of a job until it runs: nodes and image.
const STARTING: [(Seconds, &str); 3] = [(5, "Preparing"), (30, "Queued"), (90, "Running")];
/// Default time that a node stays without a job.
const NODE_IDLE: Seconds = 120;

impl Cloud {
    pub(crate) fn ml_created(&mut self, target: &Target) {
        if !target.kind.ends_with("/computes") && !target.kind.ends_with("/workspaces") {
            let now = utc(self.now);
            let system_data = json!({"createdAt": now, "createdBy": crate::state::identity::CLIENT_ID, "lastModifiedAt": now});
            self.update(&target.key, |resource| resource.body["systemData"] = system_data);
        }
        match target.kind.as_str() {
            JOB => self.job_submitted(target),
            "microsoft.machinelearningservices/workspaces/environments/versions" => {
                // The first version makes the environment.
                let environment = target.id.split("/versions/").next().unwrap_or_default();
                self.store(&Target::parse(environment).unwrap(), &Value::Null);
            }
            "microsoft.machinelearningservices/workspaces/onlineendpoints/deployments" => {
                // Billed from the start of the deployment on, ready or not.
                self.charge(&target.key);
            }
            _ => {}
        }
    }

    fn job_submitted(&mut self, target: &Target) {
        self.update(&target.key, |job| job.set("status", json!("NotStarted")));
        for (seconds, status) in STARTING {
            self.after_for(&target.key, seconds, move |cloud, key| {
                if cloud.has_ended(key) || cloud.resources[key].started.is_some() {
                    return;
                }
                match status {
                    "Running" => cloud.start_ml_job(key),
                    _ => cloud.update(key, |job| job.set("status", json!(status))),
                }
            });
        }
    }

    /// Starts a job on serverless compute, or on a node of its cluster if there is one for it.
    fn start_ml_job(&mut self, key: &str) {
        match self.cluster_of(key) {
            None => self.charge(key),
            Some(cluster) if self.occupy_node(&cluster, key) => {}
            Some(_) => return,
        }
        let now = self.now;
        self.update(key, |job| {
            job.started = Some(now);
            job.set("status", json!("Running"));
            job.body["properties"]["properties"]["StartTimeUtc"] = json!(utc(now));
        });
        self.work_for(key, self.settings.job_seconds);
        let limit = &self.resources[key].property("limits")["timeout"];
        if let Some(limit) = limit.as_str().and_then(duration) {
            self.after_for(key, limit, |cloud, key| cloud.end_ml_job(key, "Canceled"));
        }
    }

    /// The key of the cluster that a job runs on.
    fn cluster_of(&self, job: &str) -> Option<String> {
        self.resources[job].property("computeId").as_str().map(str::to_ascii_lowercase)
    }

    /// Gives a job the node that has waited longest, or a new one; false if the cluster has no more.
    fn occupy_node(&mut self, cluster: &str, job: &str) -> bool {
        let Some(resource) = self.find(cluster).filter(|cluster| !cluster.is_deleting) else { return false };
        let most = resource.property("properties")["scaleSettings"]["maxNodeCount"].as_u64().unwrap_or(0);
        let nodes = || self.cluster_nodes.iter().filter(|node| node.cluster == cluster);
        let is_full = nodes().count() as u64 >= most;
        let idle = nodes().filter(|node| node.job.is_none()).min_by_key(|node| node.idle_since);
        match idle.map(|node| node.key.clone()) {
            Some(key) => {
                let node = self.cluster_nodes.iter_mut().find(|node| node.key == key).unwrap();
                node.job = Some(job.to_owned());
            }
            None if is_full => return false,
            None => {
                let key = format!("{cluster}/nodes/{}", self.serial());
                self.charge(&key);
                let (cluster, job, idle_since) = (cluster.to_owned(), Some(job.to_owned()), self.now);
                self.cluster_nodes.push(ClusterNode { key, cluster, job, idle_since });
            }
        }
        true
    }

    /// Lets the node of a job that has ended run the next one, or leave after a while.
    fn free_node(&mut self, job: &str) {
        let now = self.now;
        let Some(node) = self.cluster_nodes.iter_mut().find(|node| node.job.as_deref() == Some(job)) else {
            return;
        };
        (node.job, node.idle_since) = (None, now);
        let (key, cluster) = (node.key.clone(), node.cluster.clone());
        let settings = &self.resources[&cluster].property("properties")["scaleSettings"];
        let idle = settings["nodeIdleTimeBeforeScaleDown"].as_str().and_then(duration).unwrap_or(NODE_IDLE);
        self.after(idle, move |cloud| {
            let is_idle =
                |node: &ClusterNode| node.key == key && node.job.is_none() && node.idle_since == now;
            if cloud.cluster_nodes.iter().any(is_idle) {
                cloud.remove_nodes(&key);
            }
        });
        let waiting = self.resources.values().filter(|job| {
            job.target.kind == JOB
                && job.property("status") == "Queued"
                && job.created + STARTING[2].0 <= now
                && job.property("computeId").as_str().is_some_and(|id| id.eq_ignore_ascii_case(&cluster))
        });
        let next = waiting.min_by_key(|job| (job.created, job.serial)).map(|job| job.target.key.clone());
        if let Some(next) = next {
            self.start_ml_job(&next);
        }
    }

    /// Takes nodes away: one, or all of a cluster with the jobs on them.
    pub(crate) fn remove_nodes(&mut self, scope: &str) {
        let gone: Vec<ClusterNode> =
            self.cluster_nodes.extract_if(.., |node| is_within(&node.key, scope)).collect();
        for node in gone {
            self.stop_charging(&node.key);
            if let Some(job) = node.job {
                self.end_ml_job(&job, "Canceled");
            }
        }
    }

    fn has_ended(&self, key: &str) -> bool {
        self.resources[key].ended.is_some() || self.resources[key].is_deleting
    }

    pub(crate) fn end_ml_job(&mut self, key: &str, status: &str) {
        if self.has_ended(key) {
            return;
        }
        let now = self.now;
        self.stop_charging(key);
        self.update(key, |job| {
            job.ended = Some(now);
            job.set("status", json!(status));
            job.body["properties"]["properties"]["EndTimeUtc"] = json!(utc(now));
        });
        self.free_node(key);
    }

    /// An endpoint and what is in it are in the region of the workspace.
    pub(crate) fn refuse_elsewhere(&self, target: &Target, body: &Value) -> Option<Answer> {
        let workspace = self.find(target.key.split("/onlineendpoints/").next()?)?;
        let location = bare_region(body["location"].as_str()?);
        (location != workspace.location()).then(|| {
            let message = format!("The workspace is in {}, and not in {location}.", workspace.location());
            Answer::error(400, "InvalidLocation", message)
        })
    }

    pub(crate) fn endpoint_ready(&mut self, key: &str) {
        let name = self.resources[key].target.name.clone();
        let location = self.resources[key].location();
        self.update(key, |endpoint| {
            let host = format!("https://{name}.{location}.inference.ml.azure.com");
            endpoint.set("scoringUri", json!(format!("{host}/score")));
            endpoint.set("swaggerUri", json!(format!("{host}/swagger.json")));
        });
    }

    /// `cancel`, `listKeys`, `token`, `getLogs`.
    pub(crate) fn ml_action(&mut self, target: &Target, action: &str) -> Answer {
        if self.visible(&target.key).is_none() {
            return Self::not_found(target);
        }
        match action {
            "cancel" if target.kind == JOB => {
                if self.resources[&target.key].ended.is_some() {
                    return Answer::empty(200);
                }
                self.record(target, "cancel/action", "Started");
                self.end_ml_job(&target.key, "Canceled");
                let operation = self.begin(OperationStyle::Location, &target.key, "eastus");
                let done = operation.clone();
                self.after(10, move |cloud| cloud.end(&done, Progress::Succeeded));
                let location = self.signed(&operation);
                Answer::empty(202).with("Location", location)
            }
            "listkeys" => {
                let key = self.random.uuid();
                Answer::json(200, json!({"primaryKey": key, "secondaryKey": key}))
            }
            "getlogs" => {
                let is_ready = self.resources[&target.key].state() == "Succeeded";
                let state = if is_ready { "Succeeded" } else { "InProgress" };
                let steps = ["SystemSetup", "UserContainerImagePull", "ModelDownload", "UserContainerStart"];
                let status: String = steps.iter().map(|step| format!("{step}: {state}\n")).collect();
                let content = format!("Instance status:\n{status}\nContainer logs:\n{OUTPUT}");
                Answer::json(200, json!({"content": content}))
            }
            _ => Answer::error(404, "InvalidAction", format!("no action {action} of {}", target.kind)),
        }
    }

    /// Whether a host has the run history of the workspace in a path: it is in the workspace's region.
    pub(crate) fn is_run_history_of(&self, host: &str, path: &str) -> bool {
        let Some((workspace, _)) = workspace_and_run(path) else { return true };
        self.find(&workspace).is_some_and(|found| run_history_host(&found.location()) == host)
    }

    /// `GET …/experiments/{experiment}/runs/{job}/details` of the run history.
    pub(crate) fn run_history(&self, path: &str) -> Answer {
        let Some((workspace, job)) = workspace_and_run(path) else {
            return Answer::error(404, "NotFound", format!("{path} is not supported"));
        };
        match self.find(&format!("{workspace}/jobs/{}", job.to_ascii_lowercase())) {
            Some(job) => Answer::json(200, self.render_run(job)),
            None => Answer::error(404, "UserError", format!("Run {job} was not found")),
        }
    }

    fn render_run(&self, job: &Resource) -> Value {
        let name = &job.target.name;
        let mut run =
            json!({"runId": name, "target": "serverless", "status": job.property("status"), "logFiles": {}});
        if let Some(started) = job.started {
            run["startTimeUtc"] = json!(utc(started));
            run["logFiles"]["user_logs/std_log.txt"] =
                json!(format!("{}/blobs/{name}/std_log.txt?sig=stand-in", self.base));
        }
        if let Some(ended) = job.ended {
            run["endTimeUtc"] = json!(utc(ended));
        }
        run
    }
}

/// The host of the run history in a region.
pub(crate) fn run_history_host(region: &str) -> String {
    format!("{region}.api.azureml.ms")
}

/// The key of the workspace and the name of the run in a path of the run history.
fn workspace_and_run(path: &str) -> Option<(String, &str)> {
    let (workspace, run) = path.split_once("/experiments/").or_else(|| path.split_once("/runs/"))?;
    let run = run.strip_suffix("/details")?.rsplit('/').next()?;
    let target = Target::parse(workspace)?;
    target.kind.ends_with("/workspaces").then_some((target.key, run))
}
