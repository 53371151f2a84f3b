//! Container groups.

use serde_json::{Value, json};

use crate::cloud::Cloud;
use crate::resources::provider::{list_mut, remove};
use crate::resources::resource::Resource;
use crate::resources::target::Target;
use crate::time::{Seconds, utc};
use crate::wire::answer::Answer;

/// The output of every container.
pub(crate) const OUTPUT: &str = "hello from the stand-in\n";
/// The further output of a trial of a sweep.
pub(crate) const METRICS: &str = "epoch=1 loss=0.5\nepoch=2 loss=0.25\n";

impl Cloud {
    /// A group that is being created or changed cannot be changed.
    pub(crate) fn refuse_container_group(&self, target: &Target) -> Option<Answer> {
        let is_busy = self.find(&target.key).is_some_and(Resource::is_busy);
        is_busy.then(|| {
            let message =
                format!("The container group '{}' is still transitioning, please retry later.", target.name);
            Answer::error(409, "ContainerGroupTransitioning", message)
        })
    }

    pub(crate) fn container_group_created(&mut self, target: &Target) {
        self.update(&target.key, |group| {
            group.set("sku", json!("Standard"));
            if !group.property("initContainers").is_array() {
                group.set("initContainers", json!([]));
            }
        });
    }

    /// The containers have started: that is when the group is billed.
    pub(crate) fn container_group_ready(&mut self, key: &str) {
        if self.resources[key].started.is_some() {
            return;
        }
        let now = self.now;
        self.update(key, |group| group.started = Some(now));
        self.charge(key);
        // Others are restarted when they end, and run for ever.
        if ["Never", "OnFailure"]
            .contains(&self.resources[key].property("restartPolicy").as_str().unwrap_or("Always"))
        {
            self.work_for(key, self.settings.job_seconds);
        }
    }

    pub(crate) fn end_containers(&mut self, key: &str) {
        let now = self.now;
        self.stop_charging(key);
        self.update(key, |group| group.ended = group.ended.or(Some(now)));
    }

    pub(crate) fn container_events(&self, group: &Resource) -> Value {
        if !group.target.kind.ends_with("containergroups") {
            return json!([]);
        }
        let event = |name: &str, message: &str, time: Seconds| {
            let time = utc(time);
            json!({"count": 1, "firstTimestamp": time, "lastTimestamp": time, "name": name, "message": message, "type": "Normal"})
        };
        let steps = [("Pulling", "pulling image", 4), ("Pulled", "Successfully pulled image", 7)];
        let past = steps.into_iter().filter(|(.., after)| group.created + after <= self.now);
        let mut events: Vec<Value> =
            past.map(|(name, message, after)| event(name, message, group.created + after)).collect();
        events.extend(group.started.map(|started| event("Started", "Started container", started)));
        json!(events)
    }

    pub(crate) fn render_container_group(&self, group: &Resource) -> Value {
        let mut body = group.body.clone();
        let exit_code = self.settings.job_exit_code;
        let (state, current) = match (group.started, group.ended) {
            (None, _) => ("Pending", json!({"state": "Waiting", "detailStatus": ""})),
            (Some(started), None) => {
                ("Running", json!({"state": "Running", "startTime": utc(started), "detailStatus": ""}))
            }
            (Some(started), Some(ended)) => {
                let (name, detail) =
                    if exit_code == 0 { ("Succeeded", "Completed") } else { ("Failed", "Error") };
                let current = json!({
                    "state": "Terminated", "startTime": utc(started), "exitCode": exit_code, "finishTime": utc(ended),
                    "detailStatus": detail,
                });
                (name, current)
            }
        };
        let events = self.container_events(group);
        for container in list_mut(&mut body, "/properties/containers") {
            if group.started.is_some() {
                container["properties"]["instanceView"] =
                    json!({"restartCount": 0, "currentState": current, "events": events});
            }
            for variable in list_mut(container, "/properties/environmentVariables") {
                remove(variable, "secureValue");
            }
        }
        for credential in list_mut(&mut body, "/properties/imageRegistryCredentials") {
            remove(credential, "password");
        }
        for volume in list_mut(&mut body, "/properties/volumes") {
            if let Some(secret) = volume.get_mut("secret") {
                *secret = json!({});
            }
        }
        if group.started.is_some() && body.pointer("/properties/ipAddress").is_some_and(Value::is_object) {
            body["properties"]["ipAddress"]["ip"] = json!("192.0.2.10");
        }
        body["properties"]["instanceView"] = json!({"events": [], "state": state});
        body
    }

    /// `GET …/containers/{name}/logs`, `POST …/containers/{name}/exec` and `POST …/stop`.
    pub(crate) fn container_group_action(&mut self, target: &Target, action: &str, body: &Value) -> Answer {
        let group_key = match target.key.split_once("/containers/") {
            Some((group, _)) => group.to_owned(),
            None => target.key.clone(),
        };
        let Some(group) = self.find(&group_key) else { return Self::not_found(target) };
        match action {
            "logs" if group.started.is_some() => Answer::json(200, json!({"content": OUTPUT})),
            "logs" => Answer::json(200, json!({"content": ""})),
            "stop" if group.is_busy() => {
                self.refuse_container_group(target).unwrap_or_else(|| Answer::empty(204))
            }
            "stop" => {
                self.end_containers(&group_key);
                Answer::empty(204)
            }
            "exec" if group.started.is_some() && group.ended.is_none() => self.start_terminal(body),
            "exec" => Answer::error(409, "ContainerNotRunning", "The container is not running."),
            _ => Answer::error(404, "InvalidAction", format!("no action {action} of a container group")),
        }
    }
}
