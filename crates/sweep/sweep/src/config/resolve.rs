//! From the section `[sweep]` to a plan.

use cudock_base::Usd;
use cudock_project::{
    LimitOptions, ManifestText, MetricOptions, MetricOrigin, MetricSyntax, Project, ProjectError,
    SamplerName, SweepOptions,
};

use super::checks::check;
use super::policy::policy;
use super::{MetricFormat, MetricSource, Problem, SamplerKind, SweepLimits, SweepPlan, parameters};

/// Random trials of `tpe`, unless the file has another number.
const STARTUP_TRIALS: u32 = 10;

/// Validates the section `[sweep]` of a project and fills in what it does not set.
pub fn resolve(project: &Project) -> Result<SweepPlan, ProjectError> {
    let Some(options) = &project.manifest.sweep else {
        let problem = "there is no `[sweep]` section: add one with `command`, `parameters` and `objectives`";
        return Err(project.text.key_error("sweep", problem, None));
    };
    let plan = build(project, options).and_then(|plan| check(&plan).map(|()| plan));
    plan.map_err(|problem| locate(&project.text, problem))
}

/// An error at the key, or at the innermost table around it that is in the file.
fn locate(text: &ManifestText, problem: Problem) -> ProjectError {
    let mut key = problem.key.as_str();
    if text.has(key) {
        return text.value_error(key, problem.message, None);
    }
    while let Some((table, _)) = key.rsplit_once('.') {
        key = table;
        if text.has(key) {
            break;
        }
    }
    text.key_error(key, problem.message, None)
}

fn build(project: &Project, options: &SweepOptions) -> Result<SweepPlan, Problem> {
    let image = options.image.clone().or_else(|| project.manifest.workload.image.clone());
    let limits = limits(&options.limits)?;
    Ok(SweepPlan {
        name: project.name(),
        command: options.command.clone(),
        image,
        space: parameters::space(&options.parameters)?,
        machine: parameters::machine(&options.parameters)?,
        pass: options.pass.unwrap_or_default(),
        metrics: metrics(&options.metrics)?,
        sampler: sampler(options, &limits)?,
        seed: options.seed.unwrap_or(0),
        policy: options.early_termination.as_ref().map(policy).transpose()?,
        limits,
        gpus_per_trial: options.gpus_per_trial.unwrap_or(1),
        trials_per_gpu: options.trials_per_gpu.unwrap_or(1),
        gpu_memory: options.gpu_memory.map(|size| size.0),
        retries: options.retries.unwrap_or(1),
        objectives: options.objectives.clone(),
    })
}

fn sampler(options: &SweepOptions, limits: &SweepLimits) -> Result<SamplerKind, Problem> {
    let kind = match options.sampler.unwrap_or(SamplerName::Random) {
        SamplerName::Grid => SamplerKind::Grid,
        SamplerName::Random => SamplerKind::Random,
        SamplerName::Sobol => SamplerKind::Sobol,
        SamplerName::Tpe => {
            // A short sweep must not end before the sampler has looked at a result.
            let default =
                limits.trials.map_or(STARTUP_TRIALS, |trials| (trials / 3).clamp(1, STARTUP_TRIALS));
            return Ok(SamplerKind::Tpe { startup_trials: options.startup_trials.unwrap_or(default) });
        }
    };
    match options.startup_trials {
        Some(_) => Err(Problem::new(
            "sweep.startup_trials",
            "`startup_trials` is for `sampler = \"tpe\"`: remove it, or change the sampler",
        )),
        None => Ok(kind),
    }
}

fn limits(options: &LimitOptions) -> Result<SweepLimits, Problem> {
    let dollars = options.dollars.map(|dollars| {
        Usd::nearest(dollars).filter(|amount| *amount > Usd::ZERO).ok_or_else(|| {
            let message = format!("invalid amount `{dollars}`: expected US dollars such as 20 or 12.5");
            Problem::new("sweep.limits.dollars", message)
        })
    });
    Ok(SweepLimits {
        trials: options.trials,
        concurrent: options.concurrent,
        trial_timeout: options.trial_timeout.map(|time| time.0),
        timeout: options.timeout.map(|time| time.0),
        dollars: dollars.transpose()?,
    })
}

fn metrics(options: &MetricOptions) -> Result<MetricSource, Problem> {
    let origin = options.from.unwrap_or(MetricOrigin::Stdout);
    let unused = |key: &str, wanted: &str| {
        let message = format!("`{key}` is for `{wanted}`: remove it, or set that");
        Problem::new(format!("sweep.metrics.{key}"), message)
    };
    if origin == MetricOrigin::Mlflow {
        if options.format.is_some() {
            return Err(unused("format", "from = \"stdout\" or \"file\""));
        }
        if options.pattern.is_some() {
            return Err(unused("pattern", "format = \"regex\""));
        }
        return Ok(MetricSource::Mlflow { path: options.path.clone().unwrap_or_else(|| "mlruns".into()) });
    }
    let format = match (options.format.unwrap_or(MetricSyntax::Pairs), &options.pattern) {
        (MetricSyntax::Regex, Some(pattern)) => {
            let wrong = |message: String| Problem::new("sweep.metrics.pattern", message);
            MetricFormat::Regex(pattern.parse().map_err(wrong)?)
        }
        (MetricSyntax::Regex, None) => {
            let message = "`format = \"regex\"` needs a `pattern` such as \"accuracy: (?<value>[0-9.]+)\"";
            return Err(Problem::new("sweep.metrics.pattern", message));
        }
        (_, Some(_)) => return Err(unused("pattern", "format = \"regex\"")),
        (MetricSyntax::Pairs, None) => MetricFormat::Pairs,
        (MetricSyntax::Json, None) => MetricFormat::Json,
    };
    match (origin, &options.path) {
        (MetricOrigin::File, Some(path)) => Ok(MetricSource::File { path: path.clone(), format }),
        (MetricOrigin::File, None) => Err(Problem::new(
            "sweep.metrics.path",
            "`from = \"file\"` needs a `path` such as \"metrics.jsonl\"",
        )),
        (_, Some(_)) => Err(unused("path", "from = \"file\" or \"mlflow\"")),
        (_, None) => Ok(MetricSource::Stdout(format)),
    }
}
