//! A sweep as a journal file of Optuna (`JournalFileBackend`), for `optuna-dashboard` and `optuna.load_study`.
//!
//! The file is written as a whole: one line creates the study, and one line each trial with all that is known of it. It
//! is JSON as Python reads and writes it, with `NaN` and `Infinity`, which `serde_json` cannot write.

use cudock_base::Timestamp;
use cudock_sweep::{Distribution, Goal, Parameter, ParameterValue, Sweep, Trial, TrialStatus};
use serde_json::{Value, json};

use super::values::{numbered, reason};

/// Operations of the journal.
mod op {
    pub(crate) const CREATE_STUDY: u8 = 0;
    pub(crate) const SET_STUDY_USER_ATTR: u8 = 2;
    pub(crate) const SET_STUDY_SYSTEM_ATTR: u8 = 3;
    pub(crate) const CREATE_TRIAL: u8 = 4;
}

/// Unbounded distributions are shown with this many standard deviations to each side.
const DEVIATIONS: f64 = 6.0;

/// The content of the file. Trials have the numbers that they have in the sweep. Times are UTC.
pub fn optuna_journal(sweep: &Sweep, now: Timestamp) -> String {
    let plan = sweep.plan();
    let directions: Vec<u8> = plan.objectives.iter().map(|objective| direction(objective.goal)).collect();
    let names: Vec<&str> = plan.objectives.iter().map(|objective| objective.metric.as_str()).collect();
    let mut lines = vec![
        operation(op::CREATE_STUDY, &json!({"study_name": plan.name, "directions": directions})),
        operation(
            op::SET_STUDY_SYSTEM_ATTR,
            &json!({"study_id": 0, "system_attr": {"study:metric_names": names}}),
        ),
        operation(
            op::SET_STUDY_USER_ATTR,
            &json!({"study_id": 0, "user_attr": {"cost_usd": sweep.cost(now)}}),
        ),
    ];
    let distributions: Vec<(&Parameter, Value)> = plan
        .space
        .parameters
        .iter()
        .map(|parameter| (parameter, distribution(&parameter.distribution, observed(sweep, &parameter.name))))
        .collect();
    lines.extend(sweep.trials().iter().map(|trial| trial_line(sweep, trial, &distributions, now)));
    lines.concat()
}

/// A line; `worker_id` is who wrote it, and must not be that of a process that reads it.
fn operation(code: u8, fields: &Value) -> String {
    let mut line = json!({"op_code": code, "worker_id": "cudock"});
    if let (Some(line), Some(fields)) = (line.as_object_mut(), fields.as_object()) {
        line.extend(fields.clone());
    }
    format!("{line}\n")
}

fn direction(goal: Goal) -> u8 {
    match goal {
        Goal::Minimize => 1,
        Goal::Maximize => 2,
    }
}

/// Optuna's states of a trial.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OptunaState {
    Running = 0,
    Complete = 1,
    Pruned = 2,
    Fail = 3,
    Waiting = 4,
}

/// A trial that succeeded without a finite value fails in Optuna, as it does there. One that was stopped before it reported
/// anything fails as well, because nothing was pruned.
fn state_of(trial: &Trial) -> OptunaState {
    match trial.status {
        TrialStatus::Waiting => OptunaState::Waiting,
        TrialStatus::Starting | TrialStatus::Running | TrialStatus::Stopping => OptunaState::Running,
        TrialStatus::Succeeded if trial.result.is_some() => OptunaState::Complete,
        TrialStatus::Stopped if trial.attempt().is_some_and(|attempt| !attempt.curves.is_empty()) => {
            OptunaState::Pruned
        }
        TrialStatus::Succeeded | TrialStatus::Stopped | TrialStatus::Failed => OptunaState::Fail,
    }
}

fn trial_line(sweep: &Sweep, trial: &Trial, space: &[(&Parameter, Value)], now: Timestamp) -> String {
    let objectives = &sweep.plan().objectives;
    let state = state_of(trial);
    let result =
        trial.result.as_ref().filter(|_| matches!(state, OptunaState::Complete | OptunaState::Pruned));
    // One value is `value`, several are `values`; Optuna rejects a trial that has both.
    let (value, values) = match result.map(Vec::as_slice) {
        Some([value]) => (json!(value), Value::Null),
        Some(values) => (Value::Null, json!(values)),
        None => (Value::Null, Value::Null),
    };
    let given = space.iter().filter_map(|(parameter, distribution)| {
        let value = trial.parameters.get(&parameter.name)?;
        Some((parameter, distribution, internal(&parameter.distribution, value)?))
    });
    let mut distributions = serde_json::Map::new();
    let mut params = serde_json::Map::new();
    for (parameter, distribution, value) in given {
        // A distribution is text in the text, as Optuna has it.
        distributions.insert(parameter.name.clone(), Value::String(distribution.to_string()));
        params.insert(parameter.name.clone(), json!(value));
    }
    let mut user_attrs = json!({"cost_usd": trial.cost(now), "attempts": trial.attempts.len()});
    if let (Some(attrs), Some(reason)) = (user_attrs.as_object_mut(), reason(trial, objectives)) {
        attrs.insert("reason".to_owned(), Value::String(reason));
    }
    let mut fields = json!({
        "study_id": 0,
        "state": state as u8,
        "value": value,
        "values": values,
        "datetime_start": started(trial).map(naive),
        "distributions": distributions,
        "params": params,
        "user_attrs": user_attrs,
        "system_attrs": {},
    });
    if let (Some(fields), Some(ended)) = (fields.as_object_mut(), ended(trial)) {
        fields.insert("datetime_complete".to_owned(), Value::String(naive(ended)));
    }
    with_intermediate_values(&operation(op::CREATE_TRIAL, &fields), &intermediate_values(sweep, trial))
}

fn started(trial: &Trial) -> Option<Timestamp> {
    trial.attempts.first().map(|attempt| attempt.starting)
}

fn ended(trial: &Trial) -> Option<Timestamp> {
    let attempt = trial.attempt().filter(|_| trial.status.is_ended())?;
    Some(attempt.starting.plus(attempt.ran))
}

/// Optuna's times have no zone, and one with a zone cannot be compared with them.
fn naive(time: Timestamp) -> String {
    time.to_string().trim_end_matches('Z').to_owned()
}

/// The curve by step. Optuna has none for several objectives.
fn intermediate_values(sweep: &Sweep, trial: &Trial) -> String {
    let [objective] = sweep.plan().objectives.as_slice() else {
        return String::new();
    };
    let points = numbered(trial.curve(&objective.metric));
    let pairs = points.iter().map(|(step, value)| format!("\"{step}\":{}", python_float(*value)));
    pairs.collect::<Vec<_>>().join(",")
}

fn python_float(value: f64) -> String {
    match value {
        value if value.is_nan() => "NaN".to_owned(),
        f64::INFINITY => "Infinity".to_owned(),
        f64::NEG_INFINITY => "-Infinity".to_owned(),
        value => format!("{value:?}"),
    }
}

fn with_intermediate_values(line: &str, pairs: &str) -> String {
    let open = line.trim_end().strip_suffix('}').unwrap_or(line);
    format!("{open},\"intermediate_values\":{{{pairs}}}}}\n")
}

/// The lowest and highest number that trials have for a parameter.
fn observed(sweep: &Sweep, name: &str) -> Option<(f64, f64)> {
    let values = sweep.trials().iter().filter_map(|trial| trial.parameters.get(name)?.as_number());
    values.map(|value| (value, value)).reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
}

/// How Optuna stores a value: the index of a choice, or the number.
fn internal(distribution: &Distribution, value: &ParameterValue) -> Option<f64> {
    match distribution {
        Distribution::Choice(choices) => {
            let index = choices.iter().position(|choice| choice == value)?;
            u32::try_from(index).ok().map(f64::from)
        }
        _ => value.as_number(),
    }
}

/// Optuna's counterpart of a distribution. It has no unbounded ones: those get wide bounds that contain what was observed.
fn distribution(distribution: &Distribution, observed: Option<(f64, f64)>) -> Value {
    let widened = |low: f64, high: f64| match observed {
        Some((lowest, highest)) => (low.min(lowest), high.max(highest)),
        None => (low, high),
    };
    match distribution {
        Distribution::Choice(choices) => {
            json!({"name": "CategoricalDistribution", "attributes": {"choices": choices}})
        }
        Distribution::Uniform { min, max } => float(widened(*min, *max), false, None),
        Distribution::LogUniform { min, max } | Distribution::QLogUniform { min, max, .. } => {
            float(widened(*min, *max), true, None)
        }
        Distribution::QUniform { min, max, step } => {
            let (low, high) = widened((min / step).round() * step, (max / step).round() * step);
            float((low, high), false, Some(*step))
        }
        Distribution::Normal { mean, deviation } | Distribution::QNormal { mean, deviation, .. } => {
            let reach = DEVIATIONS * deviation;
            float(widened(mean - reach, mean + reach), false, None)
        }
        Distribution::LogNormal { mean, deviation } | Distribution::QLogNormal { mean, deviation, .. } => {
            let reach = DEVIATIONS * deviation;
            let (low, high) = ((mean - reach).exp(), (mean + reach).exp());
            float(widened(low.max(f64::MIN_POSITIVE), high.min(f64::MAX)), true, None)
        }
        Distribution::RandInt { start, end } => json!({
            "name": "IntDistribution",
            "attributes": {"log": false, "step": 1, "low": start, "high": end.saturating_sub(1)},
        }),
    }
}

/// A range of floats. A rounded value may be zero or below, where no logarithm exists; then it is not logarithmic.
fn float((low, high): (f64, f64), log: bool, step: Option<f64>) -> Value {
    let attributes = json!({"step": step, "low": low, "high": high, "log": log && low > 0.0});
    json!({"name": "FloatDistribution", "attributes": attributes})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_distribution_has_a_counterpart() {
        for (ours, observed, expected) in [
            (
                Distribution::Choice(vec![ParameterValue::Int(1), ParameterValue::Text("a".into())]),
                None,
                json!({"name": "CategoricalDistribution", "attributes": {"choices": [1, "a"]}}),
            ),
            (Distribution::Uniform { min: 0.0, max: 1.0 }, None, float((0.0, 1.0), false, None)),
            (Distribution::LogUniform { min: 1e-4, max: 0.1 }, None, float((1e-4, 0.1), true, None)),
            (
                Distribution::QUniform { min: 10.0, max: 99.0, step: 16.0 },
                None,
                float((16.0, 96.0), false, Some(16.0)),
            ),
            (Distribution::Normal { mean: 1.0, deviation: 0.5 }, None, float((-2.0, 4.0), false, None)),
            (
                Distribution::Normal { mean: 1.0, deviation: 0.5 },
                Some((-3.0, 0.0)),
                float((-3.0, 4.0), false, None),
            ),
            (
                Distribution::QLogUniform { min: 0.1, max: 100.0, step: 1.0 },
                Some((0.0, 7.0)),
                float((0.0, 100.0), false, None),
            ),
            (
                Distribution::RandInt { start: 2, end: 8 },
                None,
                json!({"name": "IntDistribution", "attributes": {"log": false, "step": 1, "low": 2, "high": 7}}),
            ),
        ] {
            assert_eq!(distribution(&ours, observed), expected, "{ours:?}");
        }
    }

    #[test]
    fn values_that_json_does_not_have_are_written_as_python_does() {
        for (value, text) in [
            (f64::NAN, "NaN"),
            (f64::INFINITY, "Infinity"),
            (f64::NEG_INFINITY, "-Infinity"),
            (1.0, "1.0"),
            (1e-7, "1e-7"),
        ] {
            assert_eq!(python_float(value), text);
        }
        assert_eq!(
            with_intermediate_values("{\"a\":1}\n", "\"1\":NaN"),
            "{\"a\":1,\"intermediate_values\":{\"1\":NaN}}\n"
        );
    }
}
