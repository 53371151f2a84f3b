//! Which part of the cloud a request is for.

use cudock_base::text::percent;
use cudock_testkit::http::Request;
use serde_json::{Value, json};

use crate::cloud::Cloud;
use crate::resources::groups;
use crate::resources::target::Target;
use crate::services::container_instances::{METRICS, OUTPUT};
use crate::state::identity::Caller;
use crate::wire::answer::Answer;
use crate::wire::form::fields;

/// Path prefixes of requests to the host of a Batch account, and to that of a region's run history.
pub(crate) const BATCH: &str = "/batch/";
pub(crate) const RUN_HISTORY: &str = "/ml/";

/// The host and the path of a request to a plane with many hosts.
fn on_host<'p>(path: &'p str, plane: &str) -> Option<(&'p str, &'p str)> {
    let rest = path.strip_prefix(plane)?;
    Some(rest.split_at(rest.find('/')?))
}

/// The response to a client that connects to a host which does not exist.
fn no_such_host(host: &str) -> Answer {
    Answer { text: Some(format!("the host {host} does not exist")), ..Answer::empty(421) }
}

impl Cloud {
    /// Carries out a request.
    pub(crate) fn handle(&mut self, request: &Request) -> Answer {
        let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
        if let Some(tenant) = path.strip_suffix("/oauth2/v2.0/token") {
            return self.sign_in(tenant.trim_start_matches('/'), &fields(&request.text()));
        }
        if let Some(answer) = self.blob_service(&request.method, path, query) {
            return answer;
        }
        if path.starts_with("/blobs/") {
            return Answer::text(format!("{OUTPUT}{METRICS}"));
        }
        if let Some(refusal) = self.refuse_token(request.header("authorization"), path) {
            return refusal;
        }
        let body = if request.body.is_empty() {
            Value::Null
        } else {
            match serde_json::from_slice(&request.body) {
                Ok(body) => body,
                Err(error) => return Answer::error(400, "InvalidRequestContent", error.to_string()),
            }
        };
        if path.ends_with("/logstream") {
            return self.log_stream();
        }
        if path.starts_with("/subscriptions") || path.starts_with("/providers/") {
            let answer = self.resource_manager(&request.method, &request.path, &body, &Caller::User);
            return self.with_limits(&request.method, path, answer);
        }
        if let Some((host, path)) = on_host(path, RUN_HISTORY) {
            let run = path.strip_prefix("/history/v1.0").filter(|run| self.is_run_history_of(host, run));
            return run.map_or_else(|| no_such_host(host), |run| self.run_history(run));
        }
        let Some((host, path)) = on_host(path, BATCH) else { return no_such_host(path) };
        let Some(account) = self.account_of_host(host) else { return no_such_host(host) };
        let condition = request.header("if-match");
        let mut answer = self.batch_service(&account, &request.method, path, query, &body, condition);
        if answer.body.is_some() {
            answer = answer.with("Content-Type", "application/json;odata=minimalmetadata");
        }
        answer
    }

    /// A request to Resource Manager, by a user or by an identity.
    pub(crate) fn resource_manager(
        &mut self,
        method: &str,
        path: &str,
        body: &Value,
        caller: &Caller,
    ) -> Answer {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        if method == "GET"
            && let Some(answer) = self.poll(path, query)
        {
            return answer;
        }
        if path.trim_end_matches('/') == "/subscriptions" {
            return Answer::list(vec![groups::subscription()]);
        }
        if !query.contains("api-version=") {
            let message = "The api-version query parameter (?api-version=) is required for all requests.";
            return Answer::error(400, "MissingApiVersionParameter", message);
        }
        let Some(target) = Target::parse(path) else {
            return Answer::error(404, "SubscriptionNotFound", "The subscription could not be found.");
        };
        let query = percent::decode(query).unwrap_or_default();
        if method == "GET" && target.kind != "subscriptions" {
            self.end_due_work(&target.key);
        }
        if let Some(answer) = self.catalog(method, &target, body, &query) {
            return answer;
        }
        match (method, target.tail.as_deref()) {
            ("PUT", None) => self.put(&target, body, caller),
            ("PATCH", None) => self.patch(&target, body),
            ("DELETE", None) => self.delete(&target, &query, caller),
            ("HEAD", None) => Answer::empty(if self.visible(&target.key).is_some() { 204 } else { 404 }),
            ("GET" | "POST", _) => {
                let denied = if method == "POST" { self.deny(caller, &target.key, "action") } else { None };
                denied.unwrap_or_else(|| self.read_or_act(method, &target, body, &query))
            }
            _ => Answer::error(405, "MethodNotAllowed", format!("{method} {path}")),
        }
    }

    fn read_or_act(&mut self, method: &str, target: &Target, body: &Value, query: &str) -> Answer {
        let kind = target.kind.as_str();
        match (kind, method, target.tail.as_deref()) {
            ("microsoft.logic/workflows/triggers", "GET", None) => {
                let answer = self.workflow_action(&target.parent_key(), method, "triggers");
                let triggers = answer.body.as_ref().and_then(|body| body["value"].as_array().cloned());
                let found =
                    triggers.into_iter().flatten().find(|trigger| trigger["name"] == target.name.as_str());
                found.map_or_else(|| Self::not_found(target), |trigger| Answer::json(200, trigger))
            }
            ("microsoft.logic/workflows/triggers", "POST", Some("run")) => {
                self.workflow_action(&target.parent_key(), method, "run")
            }
            ("microsoft.logic/workflows", _, Some(tail)) => self.workflow_action(&target.key, method, tail),
            ("microsoft.compute/virtualmachines", "POST", Some(action)) => {
                self.machine_action(target, action, body)
            }
            ("microsoft.compute/virtualmachines", "GET", Some("instanceview")) => {
                let answer = self.get(&Target { tail: None, ..target.clone() }, "instanceView");
                match &answer.body {
                    Some(body) if answer.is_success() => {
                        Answer::json(200, body["properties"]["instanceView"].clone())
                    }
                    _ => answer,
                }
            }
            (_, _, Some(action))
                if kind.starts_with("microsoft.containerinstance/containergroups")
                    && (method == "POST" || action == "logs") =>
            {
                self.container_group_action(target, action, body)
            }
            (_, _, Some(action)) if kind.starts_with("microsoft.app/") && kind != "microsoft.app" => {
                self.container_app_action(target, method, action)
            }
            ("microsoft.app/containerapps/revisions", "GET", None) => {
                let app = Target::parse(target.id.split("/revisions/").next().unwrap_or_default()).unwrap();
                let list = self.container_app_action(&app, method, "revisions");
                let first = list.body.as_ref().map(|body| body["value"][0].clone());
                first.filter(|_| list.is_success()).map_or(list, |revision| Answer::json(200, revision))
            }
            (_, "POST", Some(action)) if kind.starts_with("microsoft.machinelearningservices/") => {
                self.ml_action(target, action)
            }
            ("microsoft.batch/batchaccounts", "POST", Some("listkeys")) => {
                let key = self.random.uuid();
                Answer::json(200, json!({"accountName": target.name, "primary": key, "secondary": key}))
            }
            ("microsoft.resources/deployments", _, Some(action)) => {
                self.deployment_action(target, method, action, body)
            }
            (_, "GET", _) => self.get(target, query),
            _ => Answer::error(404, "InvalidAction", format!("{method} {} {:?}", target.id, target.tail)),
        }
    }

    /// The headers with the number of requests that are left.
    fn with_limits(&self, method: &str, path: &str, answer: Answer) -> Answer {
        let answer = if answer.body.is_some() {
            answer.with("Content-Type", "application/json; charset=utf-8")
        } else {
            answer
        };
        let lower = path.to_ascii_lowercase();
        let kind = match method {
            "GET" | "HEAD" => "reads",
            "DELETE" => "deletes",
            _ => "writes",
        };
        let own = ["x-ms-ratelimit-remaining-subscription-", kind].concat();
        let global = ["x-ms-ratelimit-remaining-subscription-global-", kind].concat();
        let answer = answer.with(&own, "199").with(&global, "2999");
        let is_write = kind != "reads";
        let answer = if lower.contains("/microsoft.compute/") {
            answer.with(
                "x-ms-ratelimit-remaining-resource",
                "Microsoft.Compute/LowCostGetSubscriptionMaximum;23999",
            )
        } else if lower.contains("/microsoft.containerinstance/") && is_write {
            answer
                .with("x-ms-ratelimit-remaining-subscription-resource-requests-pt5m", "99")
                .with("x-ms-ratelimit-remaining-subscription-resource-requests-pt1h", "299")
        } else if lower.contains("/microsoft.app/") || lower.contains("/onlineendpoints/") {
            answer.with("x-ms-ratelimit-remaining-subscription-resource-requests", "799")
        } else {
            answer
        };
        let serial = self.log.len();
        answer
            .with("x-ms-request-id", format!("request-{serial}"))
            .with("x-ms-correlation-request-id", format!("correlation-{serial}"))
    }
}
