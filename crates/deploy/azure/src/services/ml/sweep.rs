//! Sweeps that Machine Learning and its client accept although they make no sense.

use cudock_facts::Facts;
use cudock_facts::finding::{Finding, Severity};
use cudock_facts::lookup::NameMatch;
use serde_json::Value;

use crate::codes;
use crate::services::bodies::read::text;

const MOST_TRIALS: i64 = 1000;

/// The faults of a sweep job in the form of its YAML file, as far as the service does not report them.
pub(super) fn sweep_faults(facts: &Facts, job: &Value) -> Vec<Finding> {
    let policy = job.get("early_termination").filter(|policy| policy.is_object());
    let algorithm = text(job, "/sampling_algorithm").or_else(|| text(job, "/sampling_algorithm/type"));
    let mut faults = Vec::new();
    if policy.is_some() && algorithm.is_some_and(|name| name.eq_ignore_ascii_case("bayesian")) {
        faults.push(fault(
            "bayesian sampling does not work with early termination: a canceled trial teaches it nothing"
                .to_owned(),
            "remove `early_termination`, or sample by `random` or `grid`",
        ));
    }
    let has = |key: &str| policy.is_some_and(|policy| policy.get(key).is_some_and(|value| !value.is_null()));
    if has("slack_factor") && has("slack_amount") {
        faults.push(fault(
            "a bandit policy has either `slack_factor` or `slack_amount`; of both, one is ignored".to_owned(),
            "remove one of them",
        ));
    }
    for key in ["max_concurrent_trials", "max_total_trials"] {
        let count = job.pointer(&format!("/limits/{key}")).and_then(Value::as_i64);
        if let Some(count) = count.filter(|count| *count > MOST_TRIALS) {
            faults.push(fault(
                format!("{key} is {count}, and the service runs at most {MOST_TRIALS}"),
                "lower it, or divide the sweep",
            ));
        }
    }
    let space = job.get("search_space");
    for name in references(text(job, "/trial/command").unwrap_or_default()) {
        if space.and_then(|space| space.get(name)).is_none() {
            faults.push(fault(
                format!(
                    "the command uses `${{{{search_space.{name}}}}}`, which `search_space` does not define"
                ),
                "define it, or correct its name",
            ));
        }
    }
    faults.extend(size_fault(facts, job));
    faults
}

fn fault(message: String, fix: &str) -> Finding {
    Finding::new(codes::SENSELESS_SWEEP, Severity::Error, message, fix)
}

/// The names in `${{search_space.NAME}}`.
fn references(command: &str) -> impl Iterator<Item = &str> {
    command.split("${{").skip(1).filter_map(|rest| {
        let (inside, _) = rest.split_once("}}")?;
        inside.trim().strip_prefix("search_space.")
    })
}

/// GPU sizes begin with `Standard_N`, and the tables have all of them.
fn size_fault(facts: &Facts, job: &Value) -> Option<Finding> {
    let size =
        text(job, "/resources/instance_type").or_else(|| text(job, "/trial/resources/instance_type"))?;
    if !size.to_ascii_lowercase().starts_with("standard_n") {
        return None;
    }
    match facts.sizes().find(size) {
        NameMatch::NotFound(near) => {
            let hint = cudock_base::did_you_mean(&near)
                .unwrap_or_else(|| "list the sizes: cudock facts size".to_owned());
            Some(fault(format!("`{size}` is not a size of Azure"), &hint))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn sweep() -> Value {
        json!({
            "type": "sweep",
            "sampling_algorithm": "random",
            "search_space": {"lr": {"type": "uniform", "min_value": 0.1, "max_value": 0.9}},
            "objective": {"primary_metric": "loss", "goal": "minimize"},
            "trial": {"command": "python train.py --lr ${{search_space.lr}} --data ${{inputs.data}}"},
            "limits": {"max_total_trials": 20, "max_concurrent_trials": 4},
            "early_termination": {"type": "bandit", "slack_factor": 0.1},
            "resources": {"instance_type": "Standard_NC4as_T4_v3"},
        })
    }

    #[test]
    fn what_the_official_client_accepts_although_it_makes_no_sense_is_found() {
        assert_eq!(sweep_faults(&Facts::embedded(), &sweep()), []);
        let cases = [
            ("/sampling_algorithm", json!("bayesian"), "bayesian sampling"),
            ("/sampling_algorithm", json!({"type": "Bayesian"}), "bayesian sampling"),
            ("/limits/max_concurrent_trials", json!(5000), "max_concurrent_trials is 5000"),
            (
                "/early_termination",
                json!({"slack_factor": 0.1, "slack_amount": 0.2}),
                "either `slack_factor`",
            ),
            ("/trial/command", json!("train ${{search_space.nope}}"), "${{search_space.nope}}"),
            ("/resources/instance_type", json!("Standard_NC6_v3"), "`Standard_NC6_v3` is not a size"),
        ];
        for (pointer, value, expected) in cases {
            let mut job = sweep();
            *job.pointer_mut(pointer).unwrap() = value;
            let faults = sweep_faults(&Facts::embedded(), &job);
            assert_eq!(faults.len(), 1, "{pointer}: {faults:?}");
            assert!(faults[0].message.contains(expected), "{}", faults[0].message);
        }
    }

    #[test]
    fn other_jobs_and_odd_values_have_no_faults() {
        for job in
            [json!(null), json!({"type": "command"}), json!({"trial": {"command": "${{search_space.x"}})]
        {
            assert_eq!(sweep_faults(&Facts::embedded(), &job), [], "{job}");
        }
    }
}
