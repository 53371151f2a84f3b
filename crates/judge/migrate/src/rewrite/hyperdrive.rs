//! `HyperDrive` of Machine Learning's first library: the sweep that a program configures.

use std::collections::BTreeMap;
use std::ops::Range;

use serde_json::Value as Json;

use super::python::{Expr, Program, PythonCall, Value, is_named};
use super::sweep::{CommandPart, Described, SweepDescription, SweepParameter, TrialEnvironment};
use super::{Source, Writer, sweep_files};

const CONFIGS: [&str; 2] = ["HyperDriveConfig", "HyperDriveRunConfig"];

/// Functions whose calls describe a sweep.
const FUNCTIONS: [&str; 6] = [
    "HyperDriveConfig",
    "HyperDriveRunConfig",
    "Experiment",
    "provisioning_configuration",
    "ComputeTarget.create",
    "Environment.get",
];

const CONFIG: [&str; 9] = [
    "hyperparameter_sampling",
    "primary_metric_name",
    "primary_metric_goal",
    "max_total_runs",
    "max_concurrent_runs",
    "max_duration_minutes",
    "policy",
    "estimator",
    "run_config",
];

const SAMPLERS: [(&str, &str); 3] = [
    ("RandomParameterSampling", "random"),
    ("GridParameterSampling", "grid"),
    ("BayesianParameterSampling", "bayesian"),
];

/// Distributions and their arguments, which are called the same in version 2.
const DISTRIBUTIONS: [(&str, &[&str]); 9] = [
    ("uniform", &["min_value", "max_value"]),
    ("quniform", &["min_value", "max_value", "q"]),
    ("loguniform", &["min_value", "max_value"]),
    ("qloguniform", &["min_value", "max_value", "q"]),
    ("normal", &["mu", "sigma"]),
    ("qnormal", &["mu", "sigma", "q"]),
    ("lognormal", &["mu", "sigma"]),
    ("qlognormal", &["mu", "sigma", "q"]),
    ("randint", &["upper"]),
];

/// Policies, what they are called now, and their arguments in the order of the first library.
const POLICIES: [(&str, &str, &[&str]); 3] = [
    ("BanditPolicy", "bandit", &["evaluation_interval", "slack_factor", "slack_amount", "delay_evaluation"]),
    ("MedianStoppingPolicy", "median_stopping", &["evaluation_interval", "delay_evaluation"]),
    (
        "TruncationSelectionPolicy",
        "truncation_selection",
        &["truncation_percentage", "evaluation_interval", "delay_evaluation", "exclude_finished_jobs"],
    ),
];

/// Estimators of frameworks, which `ScriptRunConfig` replaced within the first library.
const ESTIMATORS: [&str; 6] = ["Estimator", "PyTorch", "TensorFlow", "SKLearn", "Keras", "Chainer"];

const MOST_TRIALS: u64 = 1000;
/// The library's own default.
const DEFAULT_MINUTES: u64 = 10_080;

pub(super) fn is_found(text: &str) -> bool {
    CONFIGS.iter().any(|name| text.contains(name))
}

pub(super) fn translate(source: Source<'_>, writer: &mut Writer<'_>) {
    let program = Program::read(source.text, &FUNCTIONS);
    let is_config =
        |value: &&Value<'_>| value.call().is_some_and(|call| CONFIGS.iter().any(|name| call.is(name)));
    let mut configs = program.calls.iter().filter(is_config);
    let Some(config) = configs.next() else {
        let at = source.text.find(CONFIGS[0]).or_else(|| source.text.find(CONFIGS[1])).unwrap_or(0);
        let fix = "pass the program that calls HyperDriveConfig; convert a notebook with `jupyter nbconvert --to script`";
        writer.failed(at..at, "the call of HyperDriveConfig cannot be read", fix);
        return;
    };
    for other in configs {
        writer.lost(range(other), "a second sweep is not translated", "put it into a file of its own");
    }
    let reader = SweepReader { program: &program, writer };
    if let Some(sweep) = reader.read(config) {
        sweep_files::write(source, &sweep, writer);
    }
}

fn range(value: &Value<'_>) -> Range<usize> {
    value.start..value.end
}

struct SweepReader<'t, 'w, 'a> {
    program: &'w Program<'t>,
    writer: &'w mut Writer<'a>,
}

impl<'t> SweepReader<'t, '_, '_> {
    /// The whole sweep; none if its parameters or its metric cannot be read.
    fn read(mut self, config: &Value<'t>) -> Option<SweepDescription> {
        let call = config.call()?;
        for argument in call.arguments.iter().filter(|argument| argument.is_unpacked) {
            let fix = "write the arguments out";
            self.writer.lost(range(&argument.value), "unpacked arguments cannot be read", fix);
        }
        let argument = |name: &str| call.argument(&CONFIG, name);
        let Some(sampling) = argument("hyperparameter_sampling") else {
            self.writer.failed(range(config), "the sweep has no hyperparameter_sampling", "add it");
            return None;
        };
        let mut sweep = SweepDescription { minutes: DEFAULT_MINUTES, ..SweepDescription::default() };
        (sweep.sampler, sweep.parameters) = self.sampling(sampling)?;
        let metric = argument("primary_metric_name").and_then(Value::text);
        let Some(metric) = metric else {
            let message = "primary_metric_name is not a text in this file";
            self.writer.failed(range(config), message, "write the name of the metric as text");
            return None;
        };
        metric.clone_into(&mut sweep.metric);
        sweep.goal = self.goal(argument("primary_metric_goal"), config);
        let trials = self.count(argument("max_total_runs"), "max_total_runs");
        sweep.trials = trials.unwrap_or_else(|| {
            let message = "max_total_runs is missing or not a number in this file: 20 is written";
            self.writer.lost(range(config), message, "set the number of trials in both files");
            20
        });
        sweep.concurrent = self.count(argument("max_concurrent_runs"), "max_concurrent_runs");
        if let Some(minutes) = argument("max_duration_minutes").and_then(Value::number) {
            sweep.minutes = whole(minutes).unwrap_or(DEFAULT_MINUTES);
        }
        sweep.policy = argument("policy").and_then(|policy| self.policy(policy));
        if sweep.sampler == "bayesian"
            && let Some(policy) = argument("policy").filter(|_| sweep.policy.take().is_some())
        {
            let message = "bayesian sampling does not work with early termination, so the policy is left out";
            self.writer.lost(range(policy), message, "sample at random to keep it");
        }
        if let Some(run) = argument("run_config").or_else(|| argument("estimator")) {
            self.run(run, &mut sweep);
        } else {
            let message = "the sweep has neither run_config nor estimator";
            self.writer.lost(range(config), message, "set the command in both files");
        }
        if sweep.command.is_empty() {
            sweep.command = ["python", "train.py"].map(|word| CommandPart::Text(word.to_owned())).into();
        }
        self.names(&mut sweep);
        Some(sweep)
    }

    fn sampling(&mut self, value: &Value<'t>) -> Option<(&'static str, Vec<SweepParameter>)> {
        let call = value.call();
        let known = call.and_then(|call| {
            let (_, sampler) = SAMPLERS.iter().find(|(name, _)| call.is(name))?;
            Some((*sampler, call.argument(&["parameter_space"], "parameter_space")?))
        });
        let Some((sampler, space)) = known else {
            let message = "the sampling is not RandomParameterSampling, GridParameterSampling or \
                           BayesianParameterSampling with a space in this file";
            self.writer.failed(range(value), message, "assign it in the same file");
            return None;
        };
        let Expr::Map(pairs) = &*space.expr else {
            let message = "the parameter space cannot be read without running the program";
            self.writer.failed(range(space), message, "write it as a dictionary");
            return None;
        };
        let mut parameters = Vec::new();
        for (key, distribution) in pairs {
            let parameter = key.text().and_then(|key| {
                Some(SweepParameter {
                    name: identifier(key),
                    flag: if key.starts_with('-') { key.to_owned() } else { format!("--{key}") },
                    distribution: described_distribution(distribution)?,
                })
            });
            if let Some(parameter) = parameter {
                parameters.push(parameter);
                continue;
            }
            let message = format!("the values of parameter `{}` cannot be read", key.text().unwrap_or("?"));
            let fix = "add the parameter to both files, or use choice, uniform and the like with numbers";
            self.writer.lost(range(distribution), message, fix);
        }
        if parameters.is_empty() {
            self.writer.failed(range(space), "no parameter can be read", "write their values as literals");
            return None;
        }
        Some((sampler, parameters))
    }

    fn goal(&mut self, value: Option<&Value<'t>>, config: &Value<'t>) -> &'static str {
        let name = value.and_then(|value| match &*value.expr {
            Expr::Name(name) => Some((*name).to_owned()),
            Expr::Text(text) => Some(text.clone()),
            _ => None,
        });
        let name = name.unwrap_or_default().to_ascii_lowercase();
        if is_named(&name, "minimize") {
            return "minimize";
        }
        if !is_named(&name, "maximize") {
            let message = "primary_metric_goal cannot be read: maximize is written";
            self.writer.lost(value.map_or(range(config), range), message, "set the goal in both files");
        }
        "maximize"
    }

    /// A number of trials; none if it is absent or unknown.
    fn count(&mut self, value: Option<&Value<'t>>, name: &str) -> Option<u64> {
        let value = value?;
        let Some(count) = value.number().and_then(whole).filter(|count| *count > 0) else {
            self.writer.lost(
                range(value),
                format!("{name} cannot be read without running the program"),
                "set it in both files",
            );
            return None;
        };
        if count > MOST_TRIALS {
            let message = format!("{name} is {count}, and Machine Learning runs at most {MOST_TRIALS}");
            self.writer.lost(range(value), message, "divide the sweep, or run it with `cudock sweep`");
        }
        Some(count.min(MOST_TRIALS))
    }

    fn policy(&mut self, value: &Value<'t>) -> Option<Described> {
        let call = value.call();
        if call.is_some_and(|call| call.is("NoTerminationPolicy")) {
            return None;
        }
        let known = call.and_then(|call| {
            let (_, kind, order) = POLICIES.iter().find(|(name, ..)| call.is(name))?;
            Some((call, *kind, *order))
        });
        let Some((call, kind, order)) = known else {
            let message = "the policy for early termination cannot be read, so none is written";
            self.writer.lost(range(value), message, "add `early_termination` to both files");
            return None;
        };
        let mut fields = BTreeMap::new();
        for name in order {
            let Some(given) = call.argument(order, name) else { continue };
            match given.scalar() {
                Some(scalar) => {
                    fields.insert(*name, scalar);
                }
                None => self.writer.lost(
                    range(given),
                    format!("{name} of the policy cannot be read"),
                    "set it in both files",
                ),
            }
        }
        if fields.contains_key("slack_factor") && fields.remove("slack_amount").is_some() {
            let message = "a bandit policy has either slack_factor or slack_amount: slack_amount is left out";
            self.writer.lost(range(value), message, "keep the one that is meant");
        }
        Some(Described { kind, fields })
    }

    /// `ScriptRunConfig`, or an estimator.
    fn run(&mut self, run: &Value<'t>, sweep: &mut SweepDescription) {
        let Some(call) = run.call() else {
            let message = "the configuration of the run cannot be read: `python train.py` is written";
            self.writer.lost(range(run), message, "set the command in both files");
            return;
        };
        let is_estimator = ESTIMATORS.iter().any(|name| call.is(name));
        let order: &[&str] =
            if is_estimator { &["source_directory"] } else { &["source_directory", "script", "arguments"] };
        let argument = |name: &str| call.argument(order, name);
        sweep.source_directory = match argument("source_directory") {
            None => ".".to_owned(),
            Some(value) => value.text().map_or_else(
                || {
                    let message = "source_directory cannot be read: `.` is written";
                    self.writer.lost(range(value), message, "set `code` in sweep.yml");
                    ".".to_owned()
                },
                str::to_owned,
            ),
        };
        if let Some(command) = argument("command") {
            self.command_parts(command, sweep);
        } else if let Some(script) = argument("script").or_else(|| argument("entry_script")) {
            sweep.command.push(CommandPart::Text("python".to_owned()));
            self.command_parts(script, sweep);
        }
        if let Some(arguments) = argument("arguments") {
            self.command_parts(arguments, sweep);
        }
        if let Some(Expr::Map(pairs)) = argument("script_params").map(|value| &*value.expr) {
            for (name, value) in pairs {
                self.command_parts(name, sweep);
                self.command_parts(value, sweep);
            }
        }
        let attribute =
            |name: &str| run.name.and_then(|run| self.program.variable(&format!("{run}.run_config.{name}")));
        let compute = argument("compute_target").or_else(|| attribute("target"));
        sweep.compute = compute.and_then(|value| self.compute(value));
        let environment = argument("environment").or_else(|| attribute("environment"));
        if let Some(environment) = environment {
            sweep.environment = self.environment(environment);
        }
        if let Some(distributed) =
            argument("distributed_job_config").or_else(|| argument("distributed_training"))
        {
            let message = "distributed training within a trial is not translated";
            self.writer.lost(range(distributed), message, "add `trial.distribution` to sweep.yml");
        }
    }

    /// Adds parts of the command. Data that is mounted becomes an input.
    fn command_parts(&mut self, value: &Value<'t>, sweep: &mut SweepDescription) {
        match &*value.expr {
            Expr::List(members) => members.iter().for_each(|member| self.command_parts(member, sweep)),
            Expr::Text(text) if value.name.is_none() && text.contains(' ') && sweep.command.is_empty() => {
                let parts = text.split_whitespace().map(|word| CommandPart::Text(word.to_owned()));
                sweep.command.extend(parts);
            }
            _ => match value.scalar() {
                Some(Json::String(text)) => sweep.command.push(CommandPart::Text(text)),
                // As Python writes them.
                Some(Json::Bool(value)) => {
                    sweep.command.push(CommandPart::Text(if value { "True" } else { "False" }.to_owned()));
                }
                Some(number) => sweep.command.push(CommandPart::Text(number.to_string())),
                None => {
                    let name = match sweep.command.last() {
                        Some(CommandPart::Text(flag)) if flag.starts_with('-') => identifier(flag),
                        _ => format!("input_{}", sweep.command.len()),
                    };
                    self.writer.lost(
                        range(value),
                        format!("this argument is only known when the program runs: it becomes the input `{name}`"),
                        format!("register the data as `{name}` or change `inputs` in sweep.yml; for `cudock sweep`, put it into the directory `{name}`"),
                    );
                    sweep.command.push(CommandPart::Input(name));
                }
            },
        }
    }

    /// The name of a cluster, by the name or the call that it is found with.
    fn compute(&mut self, value: &Value<'t>) -> Option<String> {
        let named = value.call().and_then(|call| {
            let order: &[&str] = if call.is("compute_targets") { &["name"] } else { &["workspace", "name"] };
            Some(call.argument(order, "name")?.text()?.to_owned())
        });
        let name = value.text().map(str::to_owned).or(named);
        if name.is_none() {
            let message = "the name of the cluster cannot be read, so the job runs on serverless compute";
            self.writer.lost(range(value), message, "add `compute: azureml:NAME` to sweep.yml");
        }
        name
    }

    fn environment(&mut self, value: &Value<'t>) -> TrialEnvironment {
        let attribute = |path: &str| {
            let name = value.name?;
            self.program.variable(&format!("{name}.{path}"))?.text().map(str::to_owned)
        };
        if let Some(image) = attribute("docker.base_image") {
            return TrialEnvironment::Image(image);
        }
        let call = value.call();
        let named = |call: &PythonCall<'t>, order: &[&str], name: &str| {
            call.argument(order, name).and_then(Value::text).map(str::to_owned)
        };
        if let Some(call) = call.filter(|call| call.is("from_docker_image"))
            && let Some(image) = named(call, &["name", "image"], "image")
        {
            return TrialEnvironment::Image(image);
        }
        let name = call.and_then(|call| {
            let order: &[&str] = if call.is("Environment.get") { &["workspace", "name"] } else { &["name"] };
            named(call, order, "name")
        });
        let Some(name) = name else {
            let message = "the environment cannot be read";
            self.writer.lost(range(value), message, "set the image in both files");
            return TrialEnvironment::Unknown;
        };
        let message = format!("the environment `{name}` is expected to be registered for version 2");
        let fix = "register it with `az ml environment create`, or set `environment.image` in sweep.yml and `image` in cudock.toml";
        self.writer.note(range(value), message, fix);
        TrialEnvironment::Registered(name)
    }

    /// The names of the experiment and the size of the cluster.
    fn names(&mut self, sweep: &mut SweepDescription) {
        let experiment = self.program.call("Experiment");
        let name = experiment.and_then(|call| call.argument(&["workspace", "name"], "name"));
        sweep.name = name.and_then(Value::text).map(str::to_owned);
        let provisioning = self.program.call("provisioning_configuration");
        let size = provisioning.and_then(|call| call.argument(&["vm_size"], "vm_size"));
        sweep.size = size.and_then(Value::text).map(str::to_owned);
    }
}

fn described_distribution(value: &Value<'_>) -> Option<Described> {
    let call = value.call()?;
    if call.is("choice") {
        let mut values = Vec::new();
        for argument in call.arguments.iter().filter(|argument| argument.name.is_none()) {
            match &*argument.value.expr {
                Expr::List(members) => {
                    for member in members {
                        values.push(choice(member)?);
                    }
                }
                _ => values.push(choice(&argument.value)?),
            }
        }
        let is_empty = values.is_empty();
        let fields = BTreeMap::from([("values", Json::Array(values))]);
        return (!is_empty).then_some(Described { kind: "choice", fields });
    }
    let (kind, order) = DISTRIBUTIONS.iter().find(|(name, _)| call.is(name))?;
    let mut fields = BTreeMap::new();
    for name in *order {
        fields.insert(*name, call.argument(order, name)?.scalar().filter(Json::is_number)?);
    }
    Some(Described { kind, fields })
}

/// A value to choose; booleans as Python passes them to a program.
fn choice(value: &Value<'_>) -> Option<Json> {
    Some(match value.scalar()? {
        Json::Bool(value) => if value { "True" } else { "False" }.into(),
        other => other,
    })
}

/// A name as parameters and inputs of version 2 have it.
fn identifier(flag: &str) -> String {
    let name = flag.trim_start_matches('-');
    let name: String =
        name.chars().map(|ch| if ch.is_ascii_alphanumeric() || ch == '_' { ch } else { '_' }).collect();
    if name.starts_with(|ch: char| ch.is_ascii_digit()) || name.is_empty() {
        format!("p_{name}")
    } else {
        name
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range is checked")]
fn whole(number: f64) -> Option<u64> {
    (0.0..1e15).contains(&number).then(|| number.round() as u64)
}
