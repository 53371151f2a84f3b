//! Container Apps: environments, apps, jobs and their executions.

use serde_json::{Value, json};

use crate::cloud::Cloud;
use crate::resources::resource::{Resource, bare_region};
use crate::resources::target::Target;
use crate::services::container_instances::OUTPUT;
use crate::time::{utc, with_offset, without_zone};
use crate::wire::answer::Answer;

const JOB: &str = "microsoft.app/jobs";
/// The image is pulled this long before an execution runs.
const PULL_SECONDS: u64 = 8;

/// An app is in the region of its environment, and on one of its profiles.
fn refuse_in(environment: &Resource, body: &Value) -> Option<Answer> {
    let location = bare_region(body["location"].as_str().unwrap_or_default());
    if location != environment.location() {
        let message = format!("The environment is in {}, and not in {location}.", environment.location());
        return Some(Answer::error(400, "InvalidLocation", message));
    }
    let profile = body["properties"]["workloadProfileName"].as_str()?;
    let profiles = environment.property("workloadProfiles").as_array()?;
    let is_named = |one: &Value| ["name", "Name"].iter().any(|key| one[*key] == profile);
    (!profiles.iter().any(is_named)).then(|| {
        let message = format!("The environment has no workload profile '{profile}'.");
        Answer::error(400, "WorkloadProfileNotFound", message)
    })
}

impl Cloud {
    pub(crate) fn refuse_without_environment(&self, body: &Value) -> Option<Answer> {
        let properties = &body["properties"];
        let named =
            properties["environmentId"].as_str().or_else(|| properties["managedEnvironmentId"].as_str());
        let key = named.unwrap_or_default().to_ascii_lowercase();
        match self.find(&key) {
            Some(environment) if environment.state() == "Succeeded" && !environment.is_deleting => {
                refuse_in(environment, body)
            }
            Some(_) => Some(Answer::error(
                409,
                "ManagedEnvironmentNotReady",
                format!("The environment '{key}' is not ready."),
            )),
            None => Some(Answer::error(
                400,
                "InvalidParameterValueInContainerTemplate",
                format!("The environment '{key}' does not exist."),
            )),
        }
    }

    pub(crate) fn container_app_created(&mut self, target: &Target) {
        let (now, by) = (without_zone(self.now), crate::state::identity::CLIENT_ID);
        let system_data = json!({
            "createdBy": by, "createdByType": "Application", "createdAt": now,
            "lastModifiedBy": by, "lastModifiedByType": "Application", "lastModifiedAt": now,
        });
        self.update(&target.key, |app| app.body["systemData"] = system_data);
        match target.kind.as_str() {
            JOB => self.update(&target.key, |job| job.set("runningStatus", json!("Ready"))),
            "microsoft.app/containerapps" => {
                // Billed from `systemData.createdAt` on: a GPU app has at least one replica.
                self.charge(&target.key);
            }
            "microsoft.app/managedenvironments" => self.step_environment(&target.key),
            _ => {}
        }
    }

    /// An environment passes through these states.
    fn step_environment(&mut self, key: &str) {
        for (seconds, state) in [
            (30, "InitializationInProgress"),
            (90, "InfrastructureSetupInProgress"),
            (150, "InfrastructureSetupComplete"),
        ] {
            self.after_for(key, seconds, move |cloud, key| {
                if cloud.resources[key].is_busy() && !cloud.resources[key].is_deleting {
                    cloud.update(key, |environment| environment.set_state(state));
                }
            });
        }
    }

    pub(crate) fn container_app_ready(&mut self, key: &str) {
        let location = self.resources[key].location();
        let now = self.now;
        let name = self.resources[key].target.name.clone();
        let is_app = self.resources[key].target.kind == "microsoft.app/containerapps";
        self.update(key, |resource| {
            let domain = format!("stand-in.{location}.azurecontainerapps.io");
            if is_app {
                resource.set("runningStatus", json!("Running"));
                let revision = format!("{name}--0000001");
                resource.set("latestRevisionName", json!(revision));
                resource.set("latestReadyRevisionName", json!(revision));
                if resource.property("configuration")["ingress"].is_object() {
                    resource.body["properties"]["configuration"]["ingress"]["fqdn"] =
                        json!(format!("{name}.{domain}"));
                }
                resource.started.get_or_insert(now);
            } else {
                resource.set("defaultDomain", json!(domain));
            }
        });
    }

    /// `start`, `stop`, `getAuthToken`, and the lists of executions, revisions and replicas.
    pub(crate) fn container_app_action(&mut self, target: &Target, method: &str, action: &str) -> Answer {
        if self.visible(&target.key).is_none() && !target.key.contains("/revisions/") {
            return Self::not_found(target);
        }
        match (target.kind.as_str(), method, action) {
            (JOB, "POST", "start") => self.start_execution(target),
            ("microsoft.app/jobs/executions", "POST", "stop") => {
                self.end_execution(&target.key, "Stopped");
                Answer::empty(202)
            }
            (JOB | "microsoft.app/containerapps", "POST", "getauthtoken") => {
                let token = self.issue_token("logs");
                let expires = utc(self.now + 3600);
                let resource = &self.resources[&target.key];
                Answer::json(
                    200,
                    json!({
                        "location": resource.body["location"], "properties": {"token": token, "expires": expires},
                        "id": target.id, "name": target.name, "type": format!("{}/accesstoken", target.type_name),
                    }),
                )
            }
            (JOB | "microsoft.app/jobs/executions", "POST", _) => {
                Answer::error(404, "InvalidAction", format!("no action {action} of a job"))
            }
            ("microsoft.app/jobs/executions", _, "replicas") => {
                let started = self.resources[&target.key].started.unwrap_or(self.now);
                let replica = self.replica(&target.id, &target.name, started + PULL_SECONDS <= self.now);
                Answer::list(vec![replica])
            }
            ("microsoft.app/containerapps/revisions", _, "replicas") => {
                let app = target.key.split("/revisions/").next().unwrap_or_default();
                let is_running = self.find(app).is_some_and(|app| app.started.is_some());
                Answer::list(vec![self.replica(&target.id, &target.name, is_running)])
            }
            ("microsoft.app/containerapps", _, "revisions") => {
                let app = &self.resources[&target.key];
                let name = app.property("latestRevisionName").as_str().unwrap_or_default();
                let is_running = app.started.is_some();
                let (running, health, provisioning) = if is_running {
                    ("Running", "Healthy", "Provisioned")
                } else {
                    ("Processing", "None", "Provisioning")
                };
                Answer::list(vec![json!({
                    "id": format!("{}/revisions/{name}", target.id), "name": name,
                    "type": "Microsoft.App/containerapps/revisions",
                    "properties": {
                        "active": true, "runningState": running, "healthState": health, "provisioningState": provisioning,
                        "replicas": u8::from(is_running),
                    },
                })])
            }
            _ => self.get(target, ""),
        }
    }

    fn replica(&self, id: &str, name: &str, is_running: bool) -> Value {
        let name = format!("{name}-00001");
        let (replica, container, details) = if is_running {
            ("Running", "Running", "Container started")
        } else {
            ("NotRunning", "Waiting", "Container is waiting with reason: PullingImage on legion.")
        };
        json!({
            "id": format!("{id}/replicas/{name}"), "name": name, "type": "Microsoft.App/containerapps/revisions/replicas",
            "properties": {
                "createdTime": utc(self.now), "runningState": replica, "runningStateDetails": "",
                "containers": [{
                    "name": "main", "ready": is_running, "started": is_running, "restartCount": 0,
                    "runningState": container, "runningStateDetails": details,
                    "logStreamEndpoint": format!("{}{id}/replicas/{name}/containers/main/logstream", self.base),
                    "execEndpoint": format!("{}{id}/replicas/{name}/containers/main/exec", self.base.replace("https", "wss")),
                }],
                "initContainers": [],
            },
        })
    }

    /// Each call is a new execution.
    fn start_execution(&mut self, job: &Target) -> Answer {
        if self.resources[&job.key].state() != "Succeeded" {
            return Answer::error(409, "ContainerAppsJobNotReady", "The job is still being changed.");
        }
        let name = format!("{}-{:07x}", job.name, self.random.below(1 << 28));
        let target = Target::parse(&format!("{}/executions/{name}", job.id)).unwrap();
        let template = self.resources[&job.key].property("template").clone();
        self.store(&target, &json!({"properties": {"template": template}}));
        let now = self.now;
        self.update(&target.key, |execution| {
            execution.visible_from = now;
            execution.started = Some(now);
        });
        // Billed from the start, while the image is pulled.
        self.charge(&target.key);
        self.work_for(&target.key, PULL_SECONDS + self.settings.job_seconds);
        let limit =
            self.resources[&job.key].property("configuration")["replicaTimeout"].as_u64().unwrap_or(1800);
        self.after_for(&target.key, PULL_SECONDS + limit, |cloud, key| cloud.end_execution(key, "Failed"));
        Answer::json(200, json!({"id": target.id, "name": name}))
    }

    pub(crate) fn end_execution(&mut self, key: &str, state: &str) {
        if self.resources[key].ended.is_some() {
            return;
        }
        let now = self.now;
        self.stop_charging(key);
        self.update(key, |execution| {
            execution.ended = Some(now);
            execution.set("status", json!(state));
        });
    }

    pub(crate) fn render_execution(&self, execution: &Resource) -> Value {
        let mut body = execution.body.clone();
        let properties = &mut body["properties"];
        if let Some(properties) = properties.as_object_mut() {
            properties.remove("provisioningState");
        }
        if let Some(started) = execution.started {
            properties["startTime"] = json!(with_offset(started));
        }
        let Some(ended) = execution.ended else {
            properties["status"] = json!("Running");
            return body;
        };
        let code = self.settings.job_exit_code;
        properties["endTime"] = json!(with_offset(ended));
        properties["detailedStatus"] =
            json!({"replicas": [{"name": "replica", "containers": [{"name": "main", "code": code}]}]});
        body
    }

    /// The lines of a container, for requests with the token of [`Self::container_app_action`].
    pub(crate) fn log_stream(&self) -> Answer {
        let line = |text: &str| format!("{}\n", json!({"TimeStamp": utc(self.now), "Log": text}));
        Answer::text(line("Connecting to the container 'main'...") + &line(OUTPUT.trim_end()))
    }
}
