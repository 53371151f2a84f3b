//! Contradictions in a plan.

use cudock_project::PassMode;

use super::{Problem, SamplerKind, SweepPlan};
use crate::policy::{EvaluationSchedule, Slack, TerminationPolicy};
use crate::sampler::{MAX_COMBINATIONS, SOBOL_DIMENSIONS, raw_combinations};

/// Variables that programs and the CUDA runtime need as they are.
const RESERVED: [&str; 4] = ["PATH", "HOME", "LD_LIBRARY_PATH", "LD_PRELOAD"];
const RESERVED_PREFIXES: [&str; 3] = ["CUDOCK_", "CUDA_", "NVIDIA_"];

type Check = Result<(), Problem>;

/// Returns the first contradiction.
pub(super) fn check(plan: &SweepPlan) -> Check {
    command(plan)?;
    objectives(plan)?;
    sampler(plan)?;
    policy(plan)?;
    limits(plan)?;
    gpus(plan)
}

fn fail(key: &str, message: impl Into<String>) -> Check {
    Err(Problem::new(format!("sweep.{key}"), message))
}

fn command(plan: &SweepPlan) -> Check {
    if plan.command.first().is_none_or(String::is_empty) {
        return fail("command", "`command` is empty: name the program, such as [\"python\", \"train.py\"]");
    }
    if plan.pass != PassMode::Environment {
        return Ok(());
    }
    for parameter in &plan.space.parameters {
        let name = parameter.name.as_str();
        let key = format!("parameters.{name}");
        if name.contains('-') {
            return fail(&key, format!("`{name}` is not a name of a variable: use `_` instead of `-`"));
        }
        let is_reserved =
            RESERVED.contains(&name) || RESERVED_PREFIXES.iter().any(|prefix| name.starts_with(prefix));
        if is_reserved {
            return fail(&key, format!("the variable `{name}` has a meaning already: rename the parameter"));
        }
    }
    Ok(())
}

fn objectives(plan: &SweepPlan) -> Check {
    if plan.objectives.is_empty() {
        let message = "`objectives` is empty: add one such as { metric = \"accuracy\", goal = \"maximize\" }";
        return fail("objectives", message);
    }
    for (index, objective) in plan.objectives.iter().enumerate() {
        let key = format!("objectives.{index}.metric");
        if objective.metric.is_empty() {
            return fail(&key, "`metric` is empty: name the metric that the program reports");
        }
        if plan.objectives.iter().take(index).any(|earlier| earlier.metric == objective.metric) {
            return fail(&key, format!("`{}` is an objective already: remove one", objective.metric));
        }
    }
    let several = plan.objectives.len() > 1;
    for (index, objective) in plan.objectives.iter().enumerate() {
        let key = format!("objectives.{index}.target");
        match objective.target {
            Some(target) if !target.is_finite() => {
                return fail(&key, format!("`target` is {target}: it must be a finite number"));
            }
            Some(_) if several => {
                return fail(&key, "`target` is for a single objective: keep one, or remove it");
            }
            _ => {}
        }
    }
    if several && plan.policy.is_some() {
        let message = "early termination compares trials by one objective: keep one, or remove the policy";
        return fail("early_termination.policy", message);
    }
    if several && matches!(plan.sampler, SamplerKind::Tpe { .. }) {
        return fail("sampler", "`tpe` looks at one objective: keep one, or use \"random\" or \"sobol\"");
    }
    Ok(())
}

fn sampler(plan: &SweepPlan) -> Check {
    match plan.sampler {
        SamplerKind::Grid => {
            let endless =
                plan.space.parameters.iter().find(|parameter| parameter.distribution.count().is_none());
            if let Some(parameter) = endless {
                let message = format!(
                    "a grid needs finitely many values, and `{0}` is continuous: make it a choice, quniform, qloguniform or \
                     randint, or use another sampler",
                    parameter.name
                );
                return fail("sampler", message);
            }
            let count = raw_combinations(&plan.space).unwrap_or(u64::MAX);
            if count > MAX_COMBINATIONS {
                let message = format!(
                    "a grid of {count} combinations is too large, the most is {MAX_COMBINATIONS}: remove values, or use \
                     another sampler"
                );
                return fail("sampler", message);
            }
        }
        SamplerKind::Sobol if plan.space.parameters.len() > SOBOL_DIMENSIONS => {
            let message = format!(
                "`sobol` supports {SOBOL_DIMENSIONS} parameters, and there are {}: use \"random\" or \"tpe\"",
                plan.space.parameters.len()
            );
            return fail("sampler", message);
        }
        SamplerKind::Tpe { startup_trials: 0 } => {
            return fail("startup_trials", "`startup_trials` must be at least 1: tpe learns from results");
        }
        SamplerKind::Tpe { startup_trials } => {
            if let Some(trials) = plan.limits.trials.filter(|trials| startup_trials >= *trials && *trials > 1)
            {
                let message = format!(
                    "all {trials} trials would be random: lower `startup_trials`, or use `sampler = \"random\"`"
                );
                return fail("startup_trials", message);
            }
        }
        SamplerKind::Random | SamplerKind::Sobol => {}
    }
    Ok(())
}

fn policy(plan: &SweepPlan) -> Check {
    let (key, schedule) = match plan.policy {
        None => return Ok(()),
        Some(TerminationPolicy::Bandit { slack: Slack::Factor(slack), schedule }) => {
            (("slack_factor", slack > 0.0 && slack.is_finite(), slack), Some(schedule))
        }
        Some(TerminationPolicy::Bandit { slack: Slack::Amount(slack), schedule }) => {
            (("slack_amount", slack > 0.0 && slack.is_finite(), slack), Some(schedule))
        }
        Some(TerminationPolicy::Truncation { percentage, schedule, .. }) => {
            (("truncation_percentage", (1.0..=99.0).contains(&percentage), percentage), Some(schedule))
        }
        Some(TerminationPolicy::Median { schedule }) => (("", true, 0.0), Some(schedule)),
        Some(TerminationPolicy::Asha { min_steps, max_steps, reduction }) => {
            return rungs(min_steps, max_steps, reduction);
        }
        Some(TerminationPolicy::Hyperband { min_steps, max_steps, reduction }) => {
            return rungs(min_steps, Some(max_steps), reduction);
        }
    };
    let (name, is_valid, value) = key;
    if !is_valid {
        let range = if name == "truncation_percentage" { "from 1 to 99" } else { "above zero" };
        return fail(
            &format!("early_termination.{name}"),
            format!("`{name}` is {value}: it must be {range}"),
        );
    }
    if let Some(EvaluationSchedule { interval: 0, .. }) = schedule {
        return fail("early_termination.evaluation_interval", "`evaluation_interval` must be at least 1");
    }
    Ok(())
}

fn rungs(min_steps: u64, max_steps: Option<u64>, reduction: u32) -> Check {
    if min_steps == 0 {
        return fail("early_termination.min_steps", "`min_steps` must be at least 1");
    }
    if reduction < 2 {
        let message = "`reduction_factor` must be at least 2: with 1, nothing is ever stopped";
        return fail("early_termination.reduction_factor", message);
    }
    match max_steps.filter(|max_steps| *max_steps <= min_steps) {
        Some(max_steps) => {
            let message =
                format!("`max_steps` is {max_steps}: it must be above `min_steps`, which is {min_steps}");
            fail("early_termination.max_steps", message)
        }
        None => Ok(()),
    }
}

fn limits(plan: &SweepPlan) -> Check {
    let limits = &plan.limits;
    let zeros = [
        ("trials", limits.trials == Some(0)),
        ("concurrent", limits.concurrent == Some(0)),
        ("trial_timeout", limits.trial_timeout.is_some_and(|time| time.is_zero())),
        ("timeout", limits.timeout.is_some_and(|time| time.is_zero())),
    ];
    if let Some((key, _)) = zeros.iter().find(|(_, is_zero)| *is_zero) {
        return fail(
            &format!("limits.{key}"),
            format!("`{key}` is zero, so nothing would run: raise or remove it"),
        );
    }
    let has_end = limits.trials.is_some() || limits.timeout.is_some() || limits.dollars.is_some();
    if !has_end && plan.sampler != SamplerKind::Grid {
        let message = "nothing ends the sweep: set `trials`, `timeout` or `dollars` in `[sweep.limits]`";
        return fail("limits", message);
    }
    if let (Some(concurrent), Some(trials)) = (limits.concurrent, limits.trials)
        && concurrent > trials
    {
        let message = format!("`concurrent` is {concurrent} and `trials` only {trials}: lower it");
        return fail("limits.concurrent", message);
    }
    let sizes = plan.sizes().len();
    if let (Some(concurrent), Some(name)) = (limits.concurrent, &plan.machine)
        && usize::try_from(concurrent).is_ok_and(|concurrent| concurrent < sizes)
    {
        let message = format!(
            "`concurrent` is {concurrent} and `{name}` has {sizes} sizes, each of which needs a machine: raise it"
        );
        return fail("limits.concurrent", message);
    }
    if let (Some(trial), Some(sweep)) = (limits.trial_timeout, limits.timeout)
        && trial > sweep
    {
        let message = format!("`trial_timeout` is longer than `timeout`, which is {sweep:?}: lower it");
        return fail("limits.trial_timeout", message);
    }
    Ok(())
}

fn gpus(plan: &SweepPlan) -> Check {
    match (plan.gpus_per_trial, plan.trials_per_gpu) {
        (_, 0) => fail("trials_per_gpu", "`trials_per_gpu` must be at least 1"),
        (_, 1) => Ok(()),
        (0, _) => {
            fail("trials_per_gpu", "`gpus_per_trial = 0` leaves no GPU to share: remove `trials_per_gpu`")
        }
        (1, _) if plan.gpu_memory.is_none_or(|bytes| bytes == 0) => {
            let message =
                "trials that share a GPU can use up its memory: set `gpu_memory`, such as \"10GiB\"";
            fail("trials_per_gpu", message)
        }
        (1, _) => Ok(()),
        _ => fail(
            "trials_per_gpu",
            "`gpus_per_trial` is above 1, so GPUs are not shared: remove `trials_per_gpu`",
        ),
    }
}
