//! A sweep as Machine Learning's own job, where the service can express it.

use std::time::Duration;

use cudock_base::Usd;
use cudock_base::shell::quote;
use cudock_sweep::{Distribution, Goal, Inexpressible, MetricSource, ParameterValue, PassMode, SweepPlan};
use serde_json::{Map, Value, json};

use crate::create::placements::affordable_time;

/// Maximum number of values of a choice.
const MOST_VALUES: i64 = 1000;

/// The sweep in the form of Machine Learning's YAML file; an error names the property that the
/// service cannot express. Money becomes time: that after which all machines together have cost as
/// much.
pub(super) fn job(
    plan: &SweepPlan,
    size: Option<&str>,
    price_per_hour: Usd,
    left: Duration,
) -> Result<Value, Inexpressible> {
    if let Some(name) = &plan.machine {
        return Err(Inexpressible::new(format!(
            "parameter `{name}` chooses sizes, and the service runs all trials on one"
        )));
    }
    let [objective] = plan.objectives.as_slice() else {
        return Err(Inexpressible::new("it has several objectives"));
    };
    if !matches!(plan.metrics, MetricSource::Mlflow { .. }) {
        return Err(Inexpressible::new(
            "the service reads metrics from MLflow only (`from = \"mlflow\"` in [sweep.metrics])",
        ));
    }
    if plan.pass != PassMode::Arguments {
        return Err(Inexpressible::new("the service passes parameters as arguments only"));
    }
    let mut space = Map::new();
    for parameter in &plan.space.parameters {
        if !parameter.conditions.is_empty() {
            return Err(Inexpressible::new(format!("parameter `{}` has conditions", parameter.name)));
        }
        space.insert(parameter.name.clone(), distribution(&parameter.name, &parameter.distribution)?);
    }
    let affordable = plan.limits.dollars.map(|dollars| affordable_time(dollars, price_per_hour));
    let timeout = [plan.limits.timeout, affordable].into_iter().flatten().fold(left, Duration::min);
    let mut limits = Map::new();
    let grid = plan.space.parameters.iter().map(|parameter| match &parameter.distribution {
        Distribution::Choice(values) => u64::try_from(values.len()).unwrap_or(u64::MAX),
        Distribution::RandInt { start, end } => end.abs_diff(*start),
        _ => 1,
    });
    let trials = plan.limits.trials.map_or_else(|| grid.fold(1, u64::saturating_mul), u64::from);
    limits.insert("max_total_trials".to_owned(), json!(trials));
    limits.insert("max_concurrent_trials".to_owned(), json!(plan.limits.concurrent.unwrap_or(1)));
    limits.insert("timeout".to_owned(), json!(timeout.as_secs()));
    if let Some(time) = plan.limits.trial_timeout {
        limits.insert("trial_timeout".to_owned(), json!(time.as_secs()));
    }
    let mut job = json!({
        "type": "sweep",
        "trial": {"command": command(plan)},
        "search_space": space,
        "sampling_algorithm": plan.sampler.azure_ml(plan.seed)?,
        "objective": {
            "primary_metric": objective.metric,
            "goal": if objective.goal == Goal::Minimize { "minimize" } else { "maximize" },
        },
        "limits": limits,
        "resources": {"instance_type": size},
    });
    if let (Some(policy), Value::Object(job)) = (&plan.policy, &mut job) {
        job.insert("early_termination".to_owned(), policy.azure_ml()?);
    }
    Ok(job)
}

/// `{name}` becomes the service's own notation; parameters without one are arguments at the end.
fn command(plan: &SweepPlan) -> String {
    let names = || plan.space.parameters.iter().map(|parameter| parameter.name.as_str());
    let placeholder = |name: &str| format!("{{{name}}}");
    let value = |name: &str| format!("${{{{search_space.{name}}}}}");
    let with_values = |word: &String| {
        let replaced =
            names().fold(word.clone(), |word, name| word.replace(&placeholder(name), &value(name)));
        let literal = names().fold(word.clone(), |word, name| word.replace(&placeholder(name), ""));
        // Values that the service inserts need no quotes, unless the rest of the word does.
        let is_plain = literal.is_empty() || quote(&literal) == literal;
        if is_plain && replaced != *word { replaced } else { quote(&replaced).into_owned() }
    };
    let is_used = |name: &&str| plan.command.iter().any(|word| word.contains(&placeholder(name)));
    let unused = names().filter(|name| !is_used(name)).map(|name| format!("--{name}={}", value(name)));
    plan.command.iter().map(with_values).chain(unused).collect::<Vec<_>>().join(" ")
}

fn distribution(name: &str, distribution: &Distribution) -> Result<Value, Inexpressible> {
    let logarithms = |min: f64, max: f64| (min.ln(), max.ln());
    Ok(match distribution {
        Distribution::Choice(values) => {
            let values: Vec<Value> = values.iter().map(choice).collect();
            json!({"type": "choice", "values": values})
        }
        Distribution::Uniform { min, max } => json!({"type": "uniform", "min_value": min, "max_value": max}),
        Distribution::QUniform { min, max, step } => {
            json!({"type": "quniform", "min_value": min, "max_value": max, "q": step})
        }
        // The service has the bounds of the logarithm.
        Distribution::LogUniform { min, max } => {
            let (min, max) = logarithms(*min, *max);
            json!({"type": "loguniform", "min_value": min, "max_value": max})
        }
        Distribution::QLogUniform { min, max, step } => {
            let (min, max) = logarithms(*min, *max);
            json!({"type": "qloguniform", "min_value": min, "max_value": max, "q": step})
        }
        Distribution::Normal { mean, deviation } => json!({"type": "normal", "mu": mean, "sigma": deviation}),
        Distribution::LogNormal { mean, deviation } => {
            json!({"type": "lognormal", "mu": mean, "sigma": deviation})
        }
        Distribution::QNormal { mean, deviation, step } => {
            json!({"type": "qnormal", "mu": mean, "sigma": deviation, "q": step})
        }
        Distribution::QLogNormal { mean, deviation, step } => {
            json!({"type": "qlognormal", "mu": mean, "sigma": deviation, "q": step})
        }
        Distribution::RandInt { start: 0, end } => json!({"type": "randint", "upper": end}),
        Distribution::RandInt { start, end } if end.saturating_sub(*start) <= MOST_VALUES => {
            json!({"type": "choice", "values": (*start..*end).collect::<Vec<i64>>()})
        }
        Distribution::RandInt { .. } => {
            return Err(Inexpressible::new(format!("integers of parameter `{name}` do not begin at 0")));
        }
    })
}

/// The service has no booleans.
fn choice(value: &ParameterValue) -> Value {
    match value {
        ParameterValue::Bool(value) => json!(value.to_string()),
        ParameterValue::Int(value) => json!(value),
        ParameterValue::Float(value) => json!(value),
        ParameterValue::Text(value) => json!(value),
    }
}

#[cfg(test)]
mod tests {
    use cudock_project::Project;

    use super::*;

    const SWEEP: &str = "[sweep]\ncommand = [\"python\", \"train.py\", \"--lr\", \"{lr}\"]\nimage = \"team/app:1\"\n\
        objectives = [{ metric = \"loss\", goal = \"minimize\" }]\nmetrics = { from = \"mlflow\" }\nsampler = \"random\"\n\
        limits = { trials = 27, concurrent = 3, dollars = 6 }\n\
        [sweep.parameters]\nlr = { loguniform = [1e-4, 1] }\nbatch = { choice = [16, 32] }\n\
        [sweep.early_termination]\npolicy = \"bandit\"\nslack_factor = 0.2\n";

    fn plan(text: &str) -> SweepPlan {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("cudock.toml"), text).unwrap();
        Project::open(directory.path()).unwrap().sweep_plan().unwrap()
    }

    fn job_of(plan: &SweepPlan) -> Result<Value, Inexpressible> {
        job(plan, Some("Standard_NC4as_T4_v3"), Usd::from_cents(150), Duration::from_secs(36_000))
    }

    #[test]
    fn a_sweep_becomes_the_job_of_the_service_and_money_becomes_time() {
        let job = job_of(&plan(SWEEP)).unwrap();
        assert_eq!(
            job["trial"]["command"],
            "python train.py --lr ${{search_space.lr}} --batch=${{search_space.batch}}"
        );
        assert_eq!(job["search_space"]["lr"]["type"], "loguniform");
        assert_eq!(job["search_space"]["lr"]["max_value"], 0.0);
        // 6 dollars at 1.50 per hour.
        let limits = json!({"max_total_trials": 27, "max_concurrent_trials": 3, "timeout": 4 * 3600});
        assert_eq!(job["limits"], limits);
        let policy =
            json!({"type": "bandit", "slack_factor": 0.2, "evaluation_interval": 1, "delay_evaluation": 0});
        assert_eq!(job["early_termination"], policy);
    }

    #[test]
    fn arguments_keep_their_quotes_and_all_of_their_parameters() {
        let mut plan = plan(SWEEP);
        plan.command = ["sh", "-c", "echo {lr} {batch}", "{lr}x{batch}", "a b"].map(str::to_owned).to_vec();
        assert_eq!(
            command(&plan),
            "sh -c 'echo ${{search_space.lr}} ${{search_space.batch}}' \
             ${{search_space.lr}}x${{search_space.batch}} 'a b'"
        );
    }

    #[test]
    fn what_the_service_cannot_express_is_named() {
        for (old, new, expected) in [
            ("from = \"mlflow\"", "from = \"stdout\"", "MLflow only"),
            ("sampler = \"random\"", "sampler = \"tpe\"", "no TPE"),
            ("policy = \"bandit\"\nslack_factor = 0.2", "policy = \"asha\"", "neither ASHA"),
            ("sampler = \"random\"", "pass = \"environment\"", "arguments only"),
            ("batch = {", "batch = { when = { lr = [1.0] },", "conditions"),
        ] {
            let text = SWEEP.replace(old, new);
            let mut plan = plan(if expected == "conditions" { SWEEP } else { &text });
            if expected == "conditions" {
                let condition = cudock_sweep::Condition { parent: "lr".to_owned(), values: Vec::new() };
                plan.space.parameters.iter_mut().for_each(|one| one.conditions.push(condition.clone()));
            }
            let error = job_of(&plan).unwrap_err();
            assert!(error.to_string().contains(expected), "{error}");
        }
    }
}
