//! A sweep job of Machine Learning: the command job of a deployment, repeated by the service with other parameters.

use cudock_facts::Facts;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::sweep::sweep_faults;
use crate::call::Body;
use crate::deployment::Deployment;
use crate::services::TranslationError;
use crate::services::bodies::read::text;
use crate::services::bodies::request::iso_8601;

/// The parts of a job that belong to a trial; the rest belongs to the sweep.
const OF_TRIAL: [&str; 5] = ["command", "environmentId", "environmentVariables", "distribution", "resources"];

/// Makes the command job of a deployment a sweep. `job` is the sweep in the form of a YAML file; its trial has only a
/// command. A sweep that makes no sense is refused, because the service accepts it.
pub fn sweep_deployment(
    facts: &Facts,
    mut deployment: Deployment,
    job: &Value,
) -> Result<Deployment, TranslationError> {
    let faults = sweep_faults(facts, job);
    if let Some(first) = faults.first() {
        let messages: Vec<&str> = faults.iter().map(|fault| fault.message.as_str()).collect();
        let message = format!("Machine Learning cannot run this sweep: {}", messages.join("; "));
        return Err(TranslationError::new(message).hint(first.fix.clone()));
    }
    let none = || TranslationError::new("the deployment has no job that could be repeated");
    let step = deployment.steps.iter_mut().find(|step| step.call.path.contains("/jobs/")).ok_or_else(none)?;
    let body = step.call.body.as_mut().ok_or_else(none)?;
    let mut whole = body.redacted().clone();
    let command = whole.get_mut("properties").and_then(Value::as_object_mut).ok_or_else(none)?;
    let mut trial: Map<String, Value> = Map::new();
    for key in OF_TRIAL {
        trial.extend(command.remove_entry(key));
    }
    if let Some(line) = text(job, "/trial/command") {
        trial.insert("command".to_owned(), json!(line));
    }
    let secrets: Vec<_> =
        body.secrets().map(|(pointer, secret)| (pointer.to_owned(), secret.clone())).collect();
    command.insert("jobType".to_owned(), json!("Sweep"));
    command.insert("trial".to_owned(), Value::Object(trial));
    command.insert("searchSpace".to_owned(), search_space(job));
    command.insert("samplingAlgorithm".to_owned(), sampling(job));
    command.insert(
        "objective".to_owned(),
        json!({
            "goal": capitalized(text(job, "/objective/goal").unwrap_or_default()),
            "primaryMetric": text(job, "/objective/primary_metric"),
        }),
    );
    command.insert("limits".to_owned(), limits(job));
    if let Some(policy) = job.get("early_termination") {
        command.insert("earlyTermination".to_owned(), early_termination(policy));
    }
    // Variables of the trial moved with it.
    let moved = |pointer: &str| {
        pointer.replacen("/properties/environmentVariables", "/properties/trial/environmentVariables", 1)
    };
    *body = secrets
        .into_iter()
        .fold(Body::new(whole), |body, (pointer, secret)| body.secret(moved(&pointer), secret));
    Ok(deployment)
}

/// Each parameter as a list of its kind and its arguments, in the order of the service.
fn search_space(job: &Value) -> Value {
    let parameters = job.get("search_space").and_then(Value::as_object).into_iter().flatten();
    let encoded = parameters.map(|(name, distribution)| {
        let kind = text(distribution, "/type").unwrap_or_default();
        let keys = ["values", "upper", "min_value", "max_value", "mu", "sigma", "q"];
        let arguments: Vec<&Value> = keys.iter().filter_map(|key| distribution.get(key)).collect();
        (name.clone(), json!([kind, arguments]))
    });
    Value::Object(encoded.collect())
}

fn sampling(job: &Value) -> Value {
    let kind = text(job, "/sampling_algorithm").or_else(|| text(job, "/sampling_algorithm/type"));
    let mut sampling = Map::new();
    sampling.insert("samplingAlgorithmType".to_owned(), json!(capitalized(kind.unwrap_or_default())));
    if let Some(rule) = text(job, "/sampling_algorithm/rule") {
        sampling.insert("rule".to_owned(), json!(capitalized(rule)));
    }
    if let Some(seed) = job.pointer("/sampling_algorithm/seed") {
        sampling.insert("seed".to_owned(), seed.clone());
    }
    Value::Object(sampling)
}

fn limits(job: &Value) -> Value {
    let mut limits = Map::new();
    limits.insert("jobLimitsType".to_owned(), json!("Sweep"));
    for (key, name) in
        [("max_total_trials", "maxTotalTrials"), ("max_concurrent_trials", "maxConcurrentTrials")]
    {
        limits.extend(job.pointer(&format!("/limits/{key}")).map(|count| (name.to_owned(), count.clone())));
    }
    for (key, name) in [("timeout", "timeout"), ("trial_timeout", "trialTimeout")] {
        let seconds = job.pointer(&format!("/limits/{key}")).and_then(Value::as_u64);
        limits
            .extend(seconds.map(|seconds| (name.to_owned(), json!(iso_8601(Duration::from_secs(seconds))))));
    }
    Value::Object(limits)
}

fn early_termination(policy: &Value) -> Value {
    let names = [
        ("slack_factor", "slackFactor"),
        ("slack_amount", "slackAmount"),
        ("truncation_percentage", "truncationPercentage"),
        ("evaluation_interval", "evaluationInterval"),
        ("delay_evaluation", "delayEvaluation"),
    ];
    let fields = names.iter().filter_map(|(key, name)| Some(((*name).to_owned(), policy.get(key)?.clone())));
    let mut encoded: Map<String, Value> = fields.collect();
    let kind: String = text(policy, "/type").unwrap_or_default().split('_').map(capitalized).collect();
    encoded.insert("policyType".to_owned(), json!(kind));
    Value::Object(encoded)
}

fn capitalized(word: &str) -> String {
    let mut chars = word.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}
