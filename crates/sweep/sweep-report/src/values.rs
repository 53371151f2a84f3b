//! Values that the views derive from a trial.

use cudock_base::text;
use cudock_sweep::{Assignment, MetricPoint, Objective, Sweep, Trial, TrialStatus};

/// Reports of the first objective in the last attempt.
pub(crate) fn steps(trial: &Trial, objectives: &[Objective]) -> usize {
    objectives.first().map_or(0, |objective| trial.curve(&objective.metric).len())
}

/// The step of each point: what the program called it if it always did, in ascending order; else the number of the report.
pub(crate) fn numbered(points: &[MetricPoint]) -> Vec<(u64, f64)> {
    let named: Option<Vec<(u64, f64)>> =
        points.iter().map(|point| point.step.map(|step| (step, point.value))).collect();
    let ascends = |points: &Vec<(u64, f64)>| points.is_sorted_by(|a, b| a.0 < b.0);
    named.filter(ascends).unwrap_or_else(|| (1..).zip(points.iter().map(|point| point.value)).collect())
}

/// The reason why a trial ended, without its number and status, which the caller prints next to it.
pub(crate) fn reason(trial: &Trial, objectives: &[Objective]) -> Option<String> {
    let ending = trial.ending(objectives)?;
    let subject = format!("trial {} {}", trial.id, trial.status.name());
    let rest = ending.strip_prefix(&subject).unwrap_or(&ending);
    Some(text::truncate(rest.trim_start_matches([':', ' ']), 300)).filter(|reason| !reason.is_empty())
}

/// Parameters on one line: `lr=0.01 optimizer=adam`.
pub(crate) fn parameters(assignment: &Assignment) -> String {
    let pairs = assignment.iter().map(|(name, value)| format!("{name}={value}"));
    text::truncate(&pairs.collect::<Vec<_>>().join(" "), 1000)
}

/// A value for people: up to six significant digits.
pub(crate) fn number(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 || !value.is_finite() {
        return value.to_string();
    }
    if !(1e-4..1e7).contains(&size) {
        let text = format!("{value:.4e}");
        return match text.split_once('e') {
            Some((digits, exponent)) => format!("{}e{exponent}", without_zeros(digits)),
            None => text,
        };
    }
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 10")]
    let decimals = (5.0 - size.log10().floor()).clamp(0.0, 10.0) as usize;
    without_zeros(&format!("{value:.decimals$}")).to_owned()
}

fn without_zeros(digits: &str) -> &str {
    if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { digits }
}

/// The number of trials by status: "14 succeeded, 12 stopped, 1 failed".
pub(crate) fn status_counts(sweep: &Sweep) -> String {
    use TrialStatus::{Failed, Running, Starting, Stopped, Stopping, Succeeded, Waiting};
    let counted = [Succeeded, Stopped, Failed, Running, Starting, Stopping, Waiting].map(|status| {
        let count = sweep.trials().iter().filter(|trial| trial.status == status).count();
        (count > 0).then(|| format!("{count} {}", status.name()))
    });
    counted.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Trials as views list them: ranked ones first, then the others by number.
pub(crate) fn listed(sweep: &Sweep) -> Vec<&Trial> {
    let ranked = sweep.ranked();
    let objectives = &sweep.plan().objectives;
    let others = sweep.trials().iter().filter(|trial| trial.standing(objectives).is_none());
    ranked.into_iter().chain(others).collect()
}

#[cfg(test)]
mod tests {
    use cudock_base::Timestamp;

    use super::*;

    #[test]
    fn values_have_six_digits_at_most() {
        for (value, text) in [
            (0.0, "0"),
            (0.91, "0.91"),
            (0.123_456_789, "0.123457"),
            (-12.5, "-12.5"),
            (1_234_567.8, "1234568"),
            (0.000_05, "5e-5"),
            (1.5e9, "1.5e9"),
            (100.0, "100"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-inf"),
        ] {
            assert_eq!(number(value), text);
        }
    }

    #[test]
    fn steps_of_the_program_are_used_if_they_ascend() {
        let point = |step, value| MetricPoint { step, value, at: Timestamp::from_millis(0) };
        assert_eq!(numbered(&[point(Some(10), 1.0), point(Some(20), 2.0)]), [(10, 1.0), (20, 2.0)]);
        assert_eq!(numbered(&[point(Some(10), 1.0), point(Some(10), 2.0)]), [(1, 1.0), (2, 2.0)]);
        assert_eq!(numbered(&[point(Some(10), 1.0), point(None, 2.0)]), [(1, 1.0), (2, 2.0)]);
    }
}
