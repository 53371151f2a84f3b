//! Machine Learning: jobs, endpoints and their deployments, in a workspace that exists.

use serde_json::{Value, json};

use crate::answer::Answer;
use crate::cloud::Cloud;
use crate::container_instances::OUTPUT;
use crate::operation::{OperationStyle, Progress};
use crate::resource::Resource;
use crate::target::{SUBSCRIPTION, Target};
use crate::time::{Seconds, duration, utc};

const JOB: &str = "microsoft.machinelearningservices/workspaces/jobs";
/// From the submission of a job until it runs: nodes and image.
const STARTING: [(Seconds, &str); 3] = [(5, "Preparing"), (30, "Queued"), (90, "Running")];

impl Cloud {
    pub(crate) fn ml_created(&mut self, target: &Target, body: &Value) {
        if !target.kind.ends_with("/computes") && !target.kind.ends_with("/workspaces") {
            let now = utc(self.now);
            let system_data =
                json!({"createdAt": now, "createdBy": crate::sign_in::CLIENT_ID, "lastModifiedAt": now});
            self.update(&target.key, |resource| resource.body["systemData"] = system_data);
        }
        match target.kind.as_str() {
            JOB => self.job_submitted(target, body),
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

    fn job_submitted(&mut self, target: &Target, body: &Value) {
        self.update(&target.key, |job| job.set("status", json!("NotStarted")));
        for (seconds, status) in STARTING {
            self.after_for(&target.key, seconds, move |cloud, key| {
                if cloud.has_ended(key) {
                    return;
                }
                let now = cloud.now;
                cloud.update(key, |job| job.set("status", json!(status)));
                if status == "Running" {
                    cloud.charge(key);
                    cloud.update(key, |job| {
                        job.started = Some(now);
                        job.body["properties"]["properties"]["StartTimeUtc"] = json!(utc(now));
                    });
                }
            });
        }
        self.work_for(&target.key, STARTING[2].0 + self.settings.job_seconds);
        if let Some(limit) = body["properties"]["limits"]["timeout"].as_str().and_then(duration) {
            let ends = STARTING[2].0 + limit;
            self.after_for(&target.key, ends, |cloud, key| cloud.end_ml_job(key, "Canceled"));
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

    /// `GET …/experiments/{experiment}/runs/{job}/details` of the run history.
    pub(crate) fn run_history(&self, path: &str) -> Answer {
        let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
        let ([.., "workspaces", workspace, "experiments", _, "runs", job, "details"]
        | [.., "workspaces", workspace, "runs", job, "details"]) = segments.as_slice()
        else {
            return Answer::error(404, "NotFound", format!("{path} is not supported"));
        };
        let group = segments.iter().position(|segment| segment.eq_ignore_ascii_case("resourceGroups"));
        let group = group.and_then(|at| segments.get(at + 1)).copied().unwrap_or_default();
        let key = format!(
            "/subscriptions/{SUBSCRIPTION}/resourcegroups/{group}/providers/{JOB_PATH}{workspace}/jobs/{job}"
        );
        match self.find(&key.to_ascii_lowercase()) {
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

const JOB_PATH: &str = "microsoft.machinelearningservices/workspaces/";
