//! The search space of a `cudock.toml`: how it is written, and what it becomes.

use std::collections::{BTreeMap, BTreeSet};

use cudock_base::text::suggest::closest;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::config::problem::Problem;
use crate::parameter_value::ParameterValue;
use crate::space::{Condition, Distribution, Parameter, Space, multiples};

/// A parameter: one distribution, and optionally the condition under which it exists.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ParameterOptions {
    /// One of these values: `[16, 32, 64]`.
    pub choice: Option<Vec<ParameterValue>>,
    /// Any number between two: `[min, max]`.
    pub uniform: Option<Vec<f64>>,
    /// A number whose logarithm is uniform: `[min, max]`.
    pub loguniform: Option<Vec<f64>>,
    /// Uniform, rounded to a multiple of a step: `[min, max, step]`.
    pub quniform: Option<Vec<f64>>,
    /// Loguniform, rounded to a multiple of a step: `[min, max, step]`.
    pub qloguniform: Option<Vec<f64>>,
    /// Normally distributed: `[mean, deviation]`.
    pub normal: Option<Vec<f64>>,
    /// A number whose logarithm is normally distributed: `[mean, deviation]` of the logarithm.
    pub lognormal: Option<Vec<f64>>,
    /// Normally distributed, rounded to a multiple of a step: `[mean, deviation, step]`.
    pub qnormal: Option<Vec<f64>>,
    /// Lognormal, rounded to a multiple of a step: `[mean, deviation, step]`.
    pub qlognormal: Option<Vec<f64>>,
    /// An integer: `[start, end]`, without `end`.
    pub randint: Option<Vec<i64>>,
    /// One of these sizes of Azure, on which the trial runs: `["NC4as_T4_v3", "NC24ads_A100_v4"]`; for `--on`.
    pub sizes: Option<Vec<String>>,
    /// The parameter exists only if each of these others has one of its values: `{ optimizer = ["sgd"] }`.
    pub when: BTreeMap<String, Vec<ParameterValue>>,
}

/// Validates parameters, and puts parents before their children.
pub(super) fn space(options: &BTreeMap<String, ParameterOptions>) -> Result<Space, Problem> {
    if options.is_empty() {
        let message = "`parameters` is empty: add one such as `lr = { loguniform = [1e-4, 1e-1] }`";
        return Err(Problem::new("parameters", message));
    }
    let mut parameters = Vec::with_capacity(options.len());
    for (name, option) in options {
        check_name(name)?;
        let distribution = distribution(name, option)?;
        let conditions = option
            .when
            .iter()
            .map(|(parent, values)| Condition { parent: parent.clone(), values: values.clone() });
        parameters.push(Parameter { name: name.clone(), distribution, conditions: conditions.collect() });
    }
    // The last one changes fastest in a grid, so that trials of all sizes come from the beginning.
    parameters.sort_by_key(|parameter| options.get(&parameter.name).is_some_and(|one| one.sizes.is_some()));
    for parameter in &parameters {
        check_conditions(parameter, &parameters)?;
    }
    parents_first(parameters)
}

/// The parameter that chooses the size of a trial's machine.
pub(super) fn machine(options: &BTreeMap<String, ParameterOptions>) -> Result<Option<String>, Problem> {
    let mut with_sizes = options.iter().filter(|(_, option)| option.sizes.is_some());
    let Some((name, option)) = with_sizes.next() else { return Ok(None) };
    if let Some((other, _)) = with_sizes.next() {
        let message = format!("`{name}` and `{other}` both choose the size of a trial's machine: keep one");
        return Err(Problem::new(&key(other, ".sizes"), message));
    }
    if !option.when.is_empty() {
        let message = format!("every trial runs on a machine, so `{name}` always exists: remove `when`");
        return Err(Problem::new(&key(name, ".when"), message));
    }
    Ok(Some(name.clone()))
}

fn key(name: &str, rest: &str) -> String {
    format!("parameters.{name}{rest}")
}

fn check_name(name: &str) -> Result<(), Problem> {
    let is_word = |character: char| character.is_ascii_alphanumeric() || matches!(character, '_' | '-');
    if name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && name.chars().all(is_word)
    {
        return Ok(());
    }
    let name = cudock_base::text::truncate(name, 60);
    let message =
        format!("invalid parameter name `{name}`: use letters, digits, `_` and `-`, and begin with a letter");
    Err(Problem::new(&key(&name, ""), message))
}

fn distribution(name: &str, options: &ParameterOptions) -> Result<Distribution, Problem> {
    let numbers = [
        ("uniform", &options.uniform),
        ("loguniform", &options.loguniform),
        ("quniform", &options.quniform),
        ("qloguniform", &options.qloguniform),
        ("normal", &options.normal),
        ("lognormal", &options.lognormal),
        ("qnormal", &options.qnormal),
        ("qlognormal", &options.qlognormal),
    ];
    let mut set: Vec<&str> =
        numbers.iter().filter(|(_, values)| values.is_some()).map(|(kind, _)| *kind).collect();
    set.extend(options.choice.is_some().then_some("choice"));
    set.extend(options.randint.is_some().then_some("randint"));
    set.extend(options.sizes.is_some().then_some("sizes"));
    match set.as_slice() {
        [_] => {}
        [] => {
            let message = format!(
                "parameter `{name}` has no distribution: add one of choice, uniform, loguniform, quniform, qloguniform, \
                 normal, lognormal, qnormal, qlognormal, randint, sizes"
            );
            return Err(Problem::new(&key(name, ""), message));
        }
        [one, other, ..] => {
            let message =
                format!("parameter `{name}` has two distributions, `{one}` and `{other}`: keep one");
            return Err(Problem::new(&key(name, &format!(".{other}")), message));
        }
    }
    if let Some(values) = &options.choice {
        return choice(name, "choice", values);
    }
    if let Some(sizes) = &options.sizes {
        let values: Vec<ParameterValue> = sizes.iter().cloned().map(ParameterValue::Text).collect();
        return choice(name, "sizes", &values);
    }
    if let Some(bounds) = &options.randint {
        return match *bounds.as_slice() {
            [start, end] if start < end => Ok(Distribution::RandInt { start, end }),
            [start, end] => {
                let message =
                    format!("`randint` of `{name}` is empty: {start} is not below {end}, which is excluded");
                Err(Problem::new(&key(name, ".randint"), message))
            }
            _ => Err(wrong_count(name, "randint", "[start, end]", bounds.len())),
        };
    }
    let found = numbers.into_iter().find_map(|(kind, values)| Some((kind, values.as_deref()?)));
    found.map_or_else(|| choice(name, "choice", &[]), |(kind, values)| numeric(name, kind, values))
}

fn wrong_count(name: &str, kind: &str, expected: &str, found: usize) -> Problem {
    let message = format!("`{kind}` of `{name}` takes {expected}, and has {found} numbers");
    Problem::new(&key(name, &format!(".{kind}")), message)
}

fn choice(name: &str, kind: &str, values: &[ParameterValue]) -> Result<Distribution, Problem> {
    let wrong = |message: String| Problem::new(&key(name, &format!(".{kind}")), message);
    if values.is_empty() {
        return Err(wrong(format!("`{kind}` of `{name}` is empty: list at least one value")));
    }
    for (index, value) in values.iter().enumerate() {
        if matches!(value, ParameterValue::Float(number) if !number.is_finite()) {
            return Err(wrong(format!(
                "`{kind}` of `{name}` has the value {value}: only finite numbers are allowed"
            )));
        }
        if values.iter().take(index).any(|earlier| earlier == value) {
            return Err(wrong(format!("`{kind}` of `{name}` has the value {value} twice: remove one")));
        }
    }
    Ok(Distribution::Choice(values.to_vec()))
}

fn numeric(name: &str, kind: &str, values: &[f64]) -> Result<Distribution, Problem> {
    let wrong = |message: String| Problem::new(&key(name, &format!(".{kind}")), message);
    if let Some(value) = values.iter().find(|value| !value.is_finite()) {
        return Err(wrong(format!(
            "`{kind}` of `{name}` has the value {value}: only finite numbers are allowed"
        )));
    }
    let (is_normal, is_log) = (kind.ends_with("normal"), kind.contains("log"));
    let (a, b, step) = match (values, kind.starts_with('q')) {
        ([a, b], false) => (*a, *b, None),
        ([a, b, step], true) => (*a, *b, Some(*step)),
        (_, is_quantized) => {
            let expected = match (is_normal, is_quantized) {
                (false, false) => "[min, max]",
                (false, true) => "[min, max, step]",
                (true, false) => "[mean, deviation]",
                (true, true) => "[mean, deviation, step]",
            };
            return Err(wrong_count(name, kind, expected, values.len()));
        }
    };
    if let Some(step) = step.filter(|step| *step <= 0.0) {
        return Err(wrong(format!("the step of `{name}` is {step}: it must be above zero")));
    }
    if is_normal {
        if b <= 0.0 {
            return Err(wrong(format!("the deviation of `{name}` is {b}: it must be above zero")));
        }
    } else {
        if a > b {
            return Err(wrong(format!("`{kind}` of `{name}` is empty: {a} is above {b}; write [{b}, {a}]")));
        }
        if is_log && a <= 0.0 {
            return Err(wrong(format!(
                "`{kind}` of `{name}` begins at {a}, which has no logarithm: begin above zero"
            )));
        }
        if let Some(step) = step {
            let (first, last) = multiples(a, b, step);
            if last < first {
                return Err(wrong(format!(
                    "no multiple of {step} is between {a} and {b}: choose a smaller step"
                )));
            }
        }
    }
    Ok(match (is_normal, is_log, step) {
        (false, false, None) => Distribution::Uniform { min: a, max: b },
        (false, true, None) => Distribution::LogUniform { min: a, max: b },
        (false, false, Some(step)) => Distribution::QUniform { min: a, max: b, step },
        (false, true, Some(step)) => Distribution::QLogUniform { min: a, max: b, step },
        (true, false, None) => Distribution::Normal { mean: a, deviation: b },
        (true, true, None) => Distribution::LogNormal { mean: a, deviation: b },
        (true, false, Some(step)) => Distribution::QNormal { mean: a, deviation: b, step },
        (true, true, Some(step)) => Distribution::QLogNormal { mean: a, deviation: b, step },
    })
}

fn check_conditions(parameter: &Parameter, parameters: &[Parameter]) -> Result<(), Problem> {
    for Condition { parent, values } in &parameter.conditions {
        let key = key(&parameter.name, &format!(".when.{parent}"));
        let Some(found) = parameters.iter().find(|other| other.name == *parent) else {
            let near = closest(parent, parameters.iter().map(|other| other.name.as_str()));
            let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            let message =
                format!("`{}` depends on `{parent}`, which is not a parameter{near}", parameter.name);
            return Err(Problem::new(&key, message));
        };
        if found.distribution.count().is_none() {
            let message = format!(
                "`{}` depends on `{parent}`, which is continuous: only choice, randint and quantized uniform parameters have \
                 values to depend on",
                parameter.name
            );
            return Err(Problem::new(&key, message));
        }
        if values.is_empty() {
            let message = format!("`{}` never exists: list a value of `{parent}`", parameter.name);
            return Err(Problem::new(&key, message));
        }
        if let Some(value) = values.iter().find(|value| !found.distribution.contains(value)) {
            return Err(Problem::new(
                &key,
                format!("`{parent}` never has the value {value}: correct or remove it"),
            ));
        }
    }
    Ok(())
}

/// Sorts parameters so that parents come first, and otherwise keeps the order by name.
fn parents_first(mut left: Vec<Parameter>) -> Result<Space, Problem> {
    let mut parameters: Vec<Parameter> = Vec::with_capacity(left.len());
    let mut known: BTreeSet<String> = BTreeSet::new();
    while !left.is_empty() {
        let is_ready = |parameter: &Parameter| {
            parameter.conditions.iter().all(|condition| known.contains(&condition.parent))
        };
        let Some(index) = left.iter().position(is_ready) else {
            let names: Vec<String> = left.iter().map(|parameter| format!("`{}`", parameter.name)).collect();
            let first = left.first().map(|parameter| parameter.name.clone()).unwrap_or_default();
            let message = format!("{} depend on each other: remove one `when`", names.join(" and "));
            return Err(Problem::new(&key(&first, ".when"), message));
        };
        let parameter = left.remove(index);
        known.insert(parameter.name.clone());
        parameters.push(parameter);
    }
    Ok(Space { parameters })
}
