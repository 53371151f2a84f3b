//! Logic Apps: workflows that fire by the clock and call Resource Manager with their identity.

use serde_json::{Map, Value, json};

use crate::cloud::Cloud;
use crate::state::identity::Caller;
use crate::time::{Seconds, parse, utc};
use crate::wire::answer::Answer;

/// Why a definition cannot be run here: what is not implemented must not look as if it worked.
pub(crate) fn refuse_workflow(body: &Value) -> Option<Answer> {
    let definition = &body["properties"]["definition"];
    let refuse = |what: String| Some(Answer::error(400, "InvalidTemplate", what));
    for (name, trigger) in definition["triggers"].as_object().unwrap_or(&Map::new()) {
        let recurrence = &trigger["recurrence"];
        if trigger["type"] != "Recurrence" || interval(recurrence).is_none() {
            return refuse(format!("the trigger {name} is not supported"));
        }
        let start = recurrence["startTime"].as_str();
        if start.is_some_and(|start| parse(start).is_none() || !start.ends_with('Z')) {
            return refuse(format!("the trigger {name} has an invalid startTime"));
        }
    }
    let unsupported = unsupported_action(&definition["actions"]);
    unsupported.and_then(|name| refuse(format!("the action {name} is not supported")))
}

/// The first action that cannot be run here.
fn unsupported_action(actions: &Value) -> Option<String> {
    actions.as_object().into_iter().flatten().find_map(|(name, action)| {
        let inputs = &action["inputs"];
        match action["type"].as_str() {
            Some("Http") => {
                let is_known = ["GET", "DELETE", "POST"]
                    .contains(&inputs["method"].as_str().unwrap_or_default())
                    && inputs["uri"].is_string()
                    && inputs["authentication"]["type"] == "ManagedServiceIdentity";
                (!is_known).then(|| name.clone())
            }
            // With any outcomes, the condition must be one that can be evaluated.
            Some("If") if holds(&action["expression"], &[], 0).is_some() => {
                unsupported_action(&action["actions"])
            }
            _ => Some(name.clone()),
        }
    })
}

/// How an action ended.
struct ActionOutcome {
    name: String,
    status: &'static str,
    /// Status code of the HTTP response.
    code: Option<u16>,
    body: Value,
}

/// Whether a condition holds; none if it is made of anything but `and`, `or`, `equals` and `greaterOrEquals`.
fn holds(condition: &Value, outcomes: &[ActionOutcome], now: Seconds) -> Option<bool> {
    let (operator, operands) = condition.as_object()?.iter().next()?;
    let operands = operands.as_array()?;
    let mut conditions = operands.iter().map(|condition| holds(condition, outcomes, now));
    match operator.as_str() {
        "and" => conditions.try_fold(true, |all, one| Some(all && one?)),
        "or" => conditions.try_fold(false, |any, one| Some(any || one?)),
        "equals" | "greaterOrEquals" => {
            let [left, right] = operands.as_slice() else { return None };
            let (left, right) = (operand(left, outcomes, now)?, operand(right, outcomes, now)?);
            Some(if operator == "equals" { left == right } else { left.as_u64() >= right.as_u64() })
        }
        _ => None,
    }
}

/// A constant, `@outputs('Action')?['statusCode']`, `@body('Action')?['error']?['code']`, `@ticks(utcNow())` or
/// `@ticks('time')`.
fn operand(value: &Value, outcomes: &[ActionOutcome], now: Seconds) -> Option<Value> {
    let Some(expression) = value.as_str().and_then(|text| text.strip_prefix('@')) else {
        return Some(value.clone());
    };
    if let Some(time) = expression.strip_prefix("ticks(").and_then(|rest| rest.strip_suffix(')')) {
        let literal = time.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
        return match literal {
            Some(literal) => parse(literal).map(Value::from),
            None => (time == "utcNow()").then(|| Value::from(now)),
        };
    }
    let outcome_of = |name: &str| outcomes.iter().find(|outcome| outcome.name == name);
    if let Some(name) =
        expression.strip_prefix("body('").and_then(|rest| rest.strip_suffix("')?['error']?['code']"))
    {
        return Some(outcome_of(name).map_or(Value::Null, |outcome| outcome.body["error"]["code"].clone()));
    }
    let outcome = outcome_of(expression.strip_prefix("outputs('")?.strip_suffix("')?['statusCode']")?);
    Some(outcome.and_then(|outcome| outcome.code).map_or(Value::Null, Value::from))
}

fn interval(recurrence: &Value) -> Option<Seconds> {
    let unit = match recurrence["frequency"].as_str()? {
        "Second" => 1,
        "Minute" => 60,
        "Hour" => 3600,
        "Day" => 86_400,
        _ => return None,
    };
    recurrence["interval"].as_u64().filter(|interval| *interval > 0).map(|interval| interval * unit)
}

impl Cloud {
    /// Sets the clock of a workflow that was created or changed.
    pub(crate) fn workflow_changed(&mut self, key: &str) {
        let now = self.now;
        let version = format!("{:020}", self.serial());
        self.update(key, |workflow| {
            let created = workflow.property("createdTime").clone();
            workflow.set("createdTime", if created.is_null() { json!(utc(now)) } else { created });
            workflow.set("changedTime", json!(utc(now)));
            workflow.set("version", json!(version));
            if workflow.property("state").is_null() {
                workflow.set("state", json!("Enabled"));
            }
        });
        let triggers = self.resources[key].property("definition")["triggers"].clone();
        for trigger in triggers.as_object().into_iter().flat_map(Map::values) {
            let every = interval(&trigger["recurrence"]).unwrap_or(1);
            // Without a start time it fires at once. Runs of the past are dropped.
            let first = trigger["recurrence"]["startTime"].as_str().and_then(parse).unwrap_or(now);
            let first = if first >= now { first } else { first + (now - first).div_ceil(every) * every };
            self.set_trigger(key, first, every, version.clone());
        }
    }

    fn set_trigger(&mut self, key: &str, at: Seconds, every: Seconds, version: String) {
        let delay = at.saturating_sub(self.now);
        self.after_for(key, delay, move |cloud, key| {
            let workflow = &cloud.resources[key];
            // A later version has its own clock.
            if workflow.property("version") != version.as_str() || workflow.property("state") != "Enabled" {
                return;
            }
            cloud.run_workflow(key);
            if cloud.find(key).is_some() {
                cloud.set_trigger(key, at + every, every, version);
            }
        });
    }

    /// Runs a workflow once.
    pub(crate) fn run_workflow(&mut self, key: &str) {
        let workflow = self.resources[key].clone();
        let mut outcomes = Vec::new();
        self.run_actions(&workflow.body, &workflow.property("definition")["actions"], &mut outcomes);
        let status =
            if outcomes.iter().any(|outcome| outcome.status == "Failed") { "Failed" } else { "Succeeded" };
        let actions: Vec<Value> = outcomes
            .iter()
            .map(|outcome| json!({"name": outcome.name, "status": outcome.status, "code": outcome.code}))
            .collect();
        let run = json!({"startTime": utc(self.now), "status": status, "actions": actions});
        self.workflow_runs.entry(key.to_owned()).or_default().push(run);
    }

    /// Runs actions, each after those that it names. One that gets an error has failed.
    fn run_actions(&mut self, workflow: &Value, actions: &Value, outcomes: &mut Vec<ActionOutcome>) {
        let actions = actions.as_object().cloned().unwrap_or_default();
        loop {
            let is_done = |name: &String| outcomes.iter().any(|outcome| outcome.name == *name);
            let ready = actions.iter().find(|(name, action)| {
                let after = action["runAfter"].as_object();
                !is_done(name) && after.is_none_or(|after| after.keys().all(is_done))
            });
            let Some((name, action)) = ready else { return };
            let is_wanted = action["runAfter"].as_object().into_iter().flatten().all(|(name, wanted)| {
                let status = outcomes
                    .iter()
                    .find(|outcome| outcome.name == *name)
                    .map_or("", |outcome| outcome.status);
                wanted.as_array().is_some_and(|wanted| wanted.iter().any(|wanted| wanted == status))
            });
            let mut outcome =
                ActionOutcome { name: name.clone(), status: "Skipped", code: None, body: Value::Null };
            if is_wanted && action["type"] == "If" {
                if holds(&action["expression"], outcomes, self.now) == Some(true) {
                    self.run_actions(workflow, &action["actions"], outcomes);
                }
                outcome.status = "Succeeded";
            } else if is_wanted {
                if let Some(answer) = self.run_http(workflow, action) {
                    (outcome.code, outcome.body) = (Some(answer.status), answer.body.unwrap_or_default());
                }
                let is_success = outcome.code.is_some_and(|code| (200..300).contains(&code));
                outcome.status = if is_success { "Succeeded" } else { "Failed" };
            }
            outcomes.push(outcome);
        }
    }

    /// The response; none if the action has no identity or leads elsewhere.
    fn run_http(&mut self, workflow: &Value, action: &Value) -> Option<Answer> {
        let inputs = &action["inputs"];
        let principal = match inputs["authentication"]["identity"].as_str() {
            None => workflow["identity"]["principalId"].as_str()?.to_owned(),
            Some(identity) => {
                let assigned = workflow["identity"]["userAssignedIdentities"].as_object()?;
                assigned.keys().find(|id| id.eq_ignore_ascii_case(identity))?;
                self.find(&identity.to_ascii_lowercase())?.principal()?.to_owned()
            }
        };
        let (method, uri) = (inputs["method"].as_str()?, inputs["uri"].as_str()?);
        let caller = Caller::Identity(principal);
        if let Some(path) = self.own_path(uri) {
            return Some(self.resource_manager(method, &path, &inputs["body"], &caller));
        }
        let (host, path) = uri.strip_prefix("https://")?.split_once('/')?;
        let account = self.account_of_host(host)?;
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let denied = self.deny(&caller, &account, "action");
        Some(denied.unwrap_or_else(|| {
            self.batch_service(&account, method, &format!("/{path}"), query, &inputs["body"], None)
        }))
    }

    /// The path of a URL of Resource Manager: of this one, or of the public cloud's.
    fn own_path(&self, url: &str) -> Option<String> {
        let hosts = [self.base.as_str(), "https://management.azure.com"];
        let path = hosts.iter().find_map(|host| url.strip_prefix(host))?;
        Some(format!("/{}", path.trim_start_matches('/')))
    }

    /// `triggers/{name}`, `runs` and the actions of a workflow.
    pub(crate) fn workflow_action(&mut self, key: &str, method: &str, tail: &str) -> Answer {
        let Some(workflow) = self.find(key) else {
            return Answer::error(404, "ResourceNotFound", "The workflow was not found.");
        };
        match (method, tail) {
            ("POST", "disable" | "enable") => {
                let state = if tail == "disable" { "Disabled" } else { "Enabled" };
                self.update(key, |workflow| workflow.set("state", json!(state)));
                if tail == "enable" {
                    self.workflow_changed(key);
                }
                Answer::empty(200)
            }
            ("GET", "runs") => {
                let runs = self.workflow_runs.get(key).cloned().unwrap_or_default();
                Answer::list(runs.into_iter().rev().map(|run| json!({"properties": run})).collect())
            }
            ("GET", "triggers") => {
                let triggers =
                    workflow.property("definition")["triggers"].as_object().cloned().unwrap_or_default();
                let state = workflow.property("state").clone();
                let rendered = triggers.iter().map(|(name, trigger)| {
                    let every = interval(&trigger["recurrence"]).unwrap_or(1);
                    let start = trigger["recurrence"]["startTime"].as_str().and_then(parse).unwrap_or(self.now);
                    let next = if start >= self.now { start } else { start + (self.now - start).div_ceil(every) * every };
                    let recurrence = &trigger["recurrence"];
                    json!({"name": name, "properties": {"state": state, "nextExecutionTime": utc(next), "recurrence": recurrence}})
                });
                Answer::list(rendered.collect())
            }
            ("POST", "run") => {
                self.run_workflow(key);
                Answer::empty(202)
            }
            _ => Answer::error(404, "InvalidAction", format!("no action {tail} of a workflow")),
        }
    }
}
