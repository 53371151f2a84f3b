//! Contradictions in a plan.

use cudock_base::UsageError;

use super::options::PassMode;
use super::plan::SweepPlan;
use crate::config::problem::Problem;
use crate::policy::TerminationPolicy;
use crate::sampler::SearchedSpace;

/// Variables that programs and the CUDA runtime need as they are.
const RESERVED: [&str; 4] = ["PATH", "HOME", "LD_LIBRARY_PATH", "LD_PRELOAD"];
const RESERVED_PREFIXES: [&str; 3] = ["CUDOCK_", "CUDA_", "NVIDIA_"];

type Check = Result<(), Problem>;

impl SweepPlan {
    /// Checks again what was checked when the section was read, for a plan whose fields were changed by flags.
    pub fn check(&self) -> Result<(), UsageError> {
        self.validate().map_err(|problem| UsageError::new(problem.message))
    }

    /// Returns the first contradiction.
    pub(super) fn validate(&self) -> Check {
        command(self)?;
        objectives(self)?;
        let Self { space, objectives, limits, .. } = self;
        self.sampler.check(&SearchedSpace { space, objectives, limits })?;
        self.policy.as_ref().map_or(Ok(()), TerminationPolicy::check)?;
        check_limits(self)?;
        gpus(self)
    }
}

fn fail(key: &str, message: impl Into<String>) -> Check {
    Err(Problem::new(key, message))
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
    Ok(())
}

fn check_limits(plan: &SweepPlan) -> Check {
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
    if !has_end && !plan.sampler.tries_all_combinations() {
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
