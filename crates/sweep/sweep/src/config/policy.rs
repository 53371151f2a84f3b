//! The policy of a `cudock.toml`.

use cudock_project::{EarlyTermination, PolicyName};

use super::Problem;
use crate::policy::{EvaluationSchedule, Slack, TerminationPolicy};

fn problem(key: &str, message: impl Into<String>) -> Problem {
    Problem::new(format!("sweep.early_termination.{key}"), message)
}

pub(super) fn policy(options: &EarlyTermination) -> Result<TerminationPolicy, Problem> {
    check_keys(options)?;
    let schedule = EvaluationSchedule {
        interval: options.evaluation_interval.unwrap_or(1),
        delay: options.delay_evaluation.unwrap_or(0),
    };
    let (min_steps, max_steps) = (options.min_steps.unwrap_or(1), options.max_steps);
    let reduction = |default: u32| options.reduction_factor.unwrap_or(default);
    Ok(match options.policy {
        PolicyName::Bandit => TerminationPolicy::Bandit { slack: slack(options)?, schedule },
        PolicyName::Median => TerminationPolicy::Median { schedule },
        PolicyName::Truncation => {
            let percentage = options.truncation_percentage.ok_or_else(|| {
                problem(
                    "truncation_percentage",
                    "`policy = \"truncation\"` needs `truncation_percentage`, such as 20",
                )
            })?;
            let exclude_finished = options.exclude_finished.unwrap_or(false);
            TerminationPolicy::Truncation { percentage, exclude_finished, schedule }
        }
        PolicyName::Asha => TerminationPolicy::Asha { min_steps, max_steps, reduction: reduction(4) },
        PolicyName::Hyperband => {
            let max_steps = max_steps.ok_or_else(|| {
                problem(
                    "max_steps",
                    "`policy = \"hyperband\"` needs `max_steps`: the reports of a complete trial",
                )
            })?;
            TerminationPolicy::Hyperband { min_steps, max_steps, reduction: reduction(3) }
        }
    })
}

fn slack(options: &EarlyTermination) -> Result<Slack, Problem> {
    match (options.slack_factor, options.slack_amount) {
        (Some(factor), None) => Ok(Slack::Factor(factor)),
        (None, Some(amount)) => Ok(Slack::Amount(amount)),
        (None, None) => {
            Err(problem("slack_factor", "`policy = \"bandit\"` needs `slack_factor` or `slack_amount`"))
        }
        (Some(_), Some(_)) => {
            Err(problem("slack_amount", "`slack_factor` and `slack_amount` contradict each other: keep one"))
        }
    }
}

/// Rejects keys of other policies.
fn check_keys(options: &EarlyTermination) -> Result<(), Problem> {
    use PolicyName::{Asha, Bandit, Hyperband, Median, Truncation};
    let keys: [(&str, bool, &[PolicyName]); 9] = [
        ("slack_factor", options.slack_factor.is_some(), &[Bandit]),
        ("slack_amount", options.slack_amount.is_some(), &[Bandit]),
        ("truncation_percentage", options.truncation_percentage.is_some(), &[Truncation]),
        ("exclude_finished", options.exclude_finished.is_some(), &[Truncation]),
        ("evaluation_interval", options.evaluation_interval.is_some(), &[Bandit, Median, Truncation]),
        ("delay_evaluation", options.delay_evaluation.is_some(), &[Bandit, Median, Truncation]),
        ("min_steps", options.min_steps.is_some(), &[Asha, Hyperband]),
        ("max_steps", options.max_steps.is_some(), &[Asha, Hyperband]),
        ("reduction_factor", options.reduction_factor.is_some(), &[Asha, Hyperband]),
    ];
    for (key, is_set, policies) in keys {
        if is_set && !policies.contains(&options.policy) {
            let names: Vec<String> =
                policies.iter().map(|policy| format!("{policy:?}").to_lowercase()).collect();
            let message = format!("`{key}` is for {}: remove it, or change `policy`", names.join(", "));
            return Err(problem(key, message));
        }
    }
    Ok(())
}
