//! A sweep as two files: `[sweep]` of `cudock.toml`, and a sweep job of Machine Learning's version 2.

use cudock_facts::services::AzureService;
use std::collections::BTreeMap;
use std::fmt::Write;

use serde::Serialize;
use serde_json::{Value as Json, json};

use super::sweep::{CommandPart, Described, SweepDescription, TrialEnvironment};
use super::{Source, Writer};
use crate::choice::{Choice, ChoiceKind};
use crate::judge::judge;
use cudock_base::shell::quote;

const SCHEMA: &str = "https://azuremlschemas.azureedge.net/latest/sweepJob.schema.json";

pub(super) fn write(source: Source<'_>, sweep: &SweepDescription, writer: &mut Writer<'_>) {
    let size = sweep.size.as_deref().map(|size| current_size(source, size));
    let job = match cudock_yaml::to_string(&job(sweep, size.as_deref())) {
        Ok(yaml) => yaml,
        Err(error) => {
            writer.failed(0..0, format!("cannot write YAML: {error}"), "report it as a bug");
            return;
        }
    };
    let header = format!("# Translated by `cudock migrate` from {}\n", source.path);
    let create =
        "# Create: az ml job create --file sweep.yml --resource-group GROUP --workspace-name WORKSPACE\n";
    writer
        .file("cudock.toml", format!("{header}# Run: cudock sweep\n\n{}", manifest(sweep, size.as_deref())));
    writer.file("sweep.yml", format!("{header}{create}{job}"));
    notes(source, sweep, writer);
}

/// Notes about the requirements of both files.
fn notes(source: Source<'_>, sweep: &SweepDescription, writer: &mut Writer<'_>) {
    let metric = &sweep.metric;
    let at = source.text.find(metric.as_str()).unwrap_or(0);
    writer.note(
        at..at + metric.len(),
        format!("the program has to log `{metric}` with MLflow; `run.log` of azureml.core is gone"),
        format!("write `mlflow.log_metric({}, value)` in it", json!(metric)),
    );
    if sweep.sampler == "bayesian" {
        let at = source.text.find("BayesianParameterSampling").unwrap_or(0);
        let message = "`cudock sweep` has no Gaussian process: cudock.toml uses tpe, which also learns from earlier trials";
        writer.note(at..at, message, "");
    }
    if sweep.policy.as_ref().is_some_and(|policy| policy.fields.contains_key("exclude_finished_jobs")) {
        let at = source.text.find("exclude_finished_jobs").unwrap_or(0);
        let message = "version 2 has no `exclude_finished_jobs`: only cudock.toml keeps it";
        writer.lost(at..at, message, "run it with `cudock sweep`, or accept that ended trials are compared");
    }
}

/// The size, or what replaces it if it is over.
fn current_size(source: Source<'_>, size: &str) -> String {
    let kind = ChoiceKind::Size { name: size.to_owned() };
    let choice = Choice { service: Some(AzureService::Ml), ..Choice::at(0, 0, kind) };
    let findings = judge(source.facts, source.day, source.region, &[choice]);
    let finding = findings.first().filter(|finding| finding.is_over());
    let replacement = finding.and_then(|finding| finding.replacements.iter().find(|one| one.service == "vm"));
    replacement.map_or_else(|| size.to_owned(), |one| one.name.clone())
}

fn manifest(sweep: &SweepDescription, size: Option<&str>) -> String {
    let mut toml = String::new();
    if let Some(name) = &sweep.name {
        line(&mut toml, "name", &json!(name));
        toml.push('\n');
    }
    toml.push_str("[sweep]\n");
    line(&mut toml, "command", &json!(own_command(sweep)));
    match &sweep.environment {
        TrialEnvironment::Image(image) => line(&mut toml, "image", &json!(image)),
        _ => toml.push_str(
            "# image = \"registry/name:tag\"    without it, trials run as processes of this machine\n",
        ),
    }
    line(&mut toml, "sampler", &json!(if sweep.sampler == "bayesian" { "tpe" } else { sweep.sampler }));
    let _ =
        writeln!(toml, "objectives = [{{ metric = {}, goal = \"{}\" }}]", json!(sweep.metric), sweep.goal);
    toml.push_str("\n[sweep.metrics]\nfrom = \"mlflow\"\n\n[sweep.parameters]\n");
    for parameter in &sweep.parameters {
        let (kind, values) = own_distribution(&parameter.distribution);
        let _ = writeln!(toml, "{} = {{ {kind} = {values} }}", parameter.name);
    }
    if let Some(policy) = &sweep.policy {
        let kind = policy.kind.split('_').next().unwrap_or_default();
        let _ = writeln!(toml, "\n[sweep.early_termination]\npolicy = \"{kind}\"");
        for (name, value) in &policy.fields {
            line(&mut toml, if *name == "exclude_finished_jobs" { "exclude_finished" } else { name }, value);
        }
    }
    toml.push_str("\n[sweep.limits]\n");
    line(&mut toml, "trials", &json!(sweep.trials));
    if let Some(concurrent) = sweep.concurrent {
        line(&mut toml, "concurrent", &json!(concurrent));
    }
    let _ = writeln!(toml, "timeout = \"{}m\"", sweep.minutes);
    if let Some(size) = size {
        toml.push_str("\n[deploy]\n");
        line(&mut toml, "sizes", &json!([size]));
    }
    toml
}

/// JSON's numbers, strings, booleans and lists of them are also TOML.
fn line(toml: &mut String, key: &str, value: &Json) {
    let _ = writeln!(toml, "{key} = {value}");
}

/// The arguments of the command, each made from a part.
fn command(
    sweep: &SweepDescription,
    text: &dyn Fn(&str) -> String,
    input: &dyn Fn(&str) -> String,
    parameter: &dyn Fn(&str) -> String,
) -> Vec<String> {
    let parts = sweep.command.iter().map(|part| match part {
        CommandPart::Text(word) => text(word),
        CommandPart::Input(name) => input(name),
    });
    let parameters = sweep.parameters.iter().flat_map(|one| [text(&one.flag), parameter(&one.name)]);
    parts.chain(parameters).collect()
}

/// The command where cudock runs it: in the project's directory, from which the script is found by its path.
fn own_command(sweep: &SweepDescription) -> Vec<String> {
    let mut arguments = command(sweep, &str::to_owned, &str::to_owned, &|name| format!("{{{name}}}"));
    let directory = code(&sweep.source_directory);
    let directory = directory.trim_start_matches("./").trim_end_matches('/');
    if let [python, script, ..] = arguments.as_mut_slice()
        && python == "python"
        && !directory.is_empty()
        && directory != "."
    {
        *script = format!("{directory}/{script}");
    }
    arguments
}

/// The command where Machine Learning runs it: in the directory of `code`, by a shell.
fn job_command(sweep: &SweepDescription) -> String {
    let arguments = command(
        sweep,
        &|word| quote(word).into_owned(),
        &|name| format!("${{{{inputs.{name}}}}}"),
        &|name| format!("${{{{search_space.{name}}}}}"),
    );
    arguments.join(" ")
}

fn code(source_directory: &str) -> String {
    if source_directory.is_empty() { ".".to_owned() } else { source_directory.to_owned() }
}

/// A distribution in cudock's notation: the bounds of values, where Azure has those of their logarithms.
fn own_distribution(distribution: &Described) -> (&'static str, Json) {
    let number = |name: &str| distribution.fields.get(name).cloned().unwrap_or_default();
    let exponential = |name: &str| json!(number(name).as_f64().unwrap_or_default().exp());
    let kind = distribution.kind;
    let values = match kind {
        "choice" => return (kind, number("values")),
        "randint" => json!([0, number("upper")]),
        "uniform" => json!([number("min_value"), number("max_value")]),
        "quniform" => json!([number("min_value"), number("max_value"), number("q")]),
        "loguniform" => json!([exponential("min_value"), exponential("max_value")]),
        "qloguniform" => json!([exponential("min_value"), exponential("max_value"), number("q")]),
        "normal" | "lognormal" => json!([number("mu"), number("sigma")]),
        _ => json!([number("mu"), number("sigma"), number("q")]),
    };
    (kind, values)
}

#[derive(Serialize)]
struct Job {
    #[serde(rename = "$schema")]
    schema: &'static str,
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    experiment_name: Option<String>,
    trial: TrialPart,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    inputs: BTreeMap<String, Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    compute: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resources: Option<Json>,
    sampling_algorithm: &'static str,
    search_space: BTreeMap<String, Json>,
    objective: Objective,
    limits: SweepRunLimits,
    #[serde(skip_serializing_if = "Option::is_none")]
    early_termination: Option<Json>,
}

#[derive(Serialize)]
struct TrialPart {
    command: String,
    code: String,
    environment: Json,
}

#[derive(Serialize)]
struct Objective {
    goal: &'static str,
    primary_metric: String,
}

#[derive(Serialize)]
struct SweepRunLimits {
    max_total_trials: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_concurrent_trials: Option<u64>,
    /// Seconds.
    timeout: u64,
}

fn job(sweep: &SweepDescription, size: Option<&str>) -> Job {
    let inputs = sweep.command.iter().filter_map(|part| match part {
        CommandPart::Input(name) => {
            Some((name.clone(), json!({"type": "uri_folder", "path": format!("azureml:{name}@latest")})))
        }
        CommandPart::Text(_) => None,
    });
    let typed = |described: &Described| {
        let mut fields: serde_json::Map<String, Json> =
            described.fields.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        fields.remove("exclude_finished_jobs");
        fields.insert("type".to_owned(), described.kind.into());
        Json::Object(fields)
    };
    Job {
        schema: SCHEMA,
        kind: "sweep",
        experiment_name: sweep.name.clone(),
        trial: TrialPart {
            command: job_command(sweep),
            code: code(&sweep.source_directory),
            environment: match &sweep.environment {
                TrialEnvironment::Image(image) => json!({"image": image}),
                TrialEnvironment::Registered(name) => json!(format!("azureml:{name}@latest")),
                TrialEnvironment::Unknown => json!("azureml:training@latest"),
            },
        },
        inputs: inputs.collect(),
        compute: sweep.compute.as_ref().map(|name| format!("azureml:{name}")),
        resources: size.filter(|_| sweep.compute.is_none()).map(|size| json!({"instance_type": size})),
        sampling_algorithm: sweep.sampler,
        search_space: sweep
            .parameters
            .iter()
            .map(|parameter| (parameter.name.clone(), typed(&parameter.distribution)))
            .collect(),
        objective: Objective { goal: sweep.goal, primary_metric: sweep.metric.clone() },
        limits: SweepRunLimits {
            max_total_trials: sweep.trials,
            max_concurrent_trials: sweep.concurrent,
            timeout: sweep.minutes.saturating_mul(60),
        },
        early_termination: sweep.policy.as_ref().map(typed),
    }
}
