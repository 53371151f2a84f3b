//! The table that a terminal shows while a sweep runs.

use cudock_base::text::format::duration;
use cudock_base::text::table::{Align, TextTable};
use cudock_base::{Timestamp, text};
use cudock_sweep::{Sweep, Trial};

use super::text::{phase, state, totals};
use super::values::{number, parameters};

const BAR: usize = 24;
const CURVE: usize = 16;
/// Ended trials that are listed below the running ones.
const ENDED: usize = 5;
const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Lines of at most `columns` characters, at most `rows` of them: progress, the best trial, those that run, and those that
/// ended last. No line has a control character.
pub fn live(sweep: &Sweep, now: Timestamp, columns: usize, rows: usize) -> Vec<String> {
    let mut lines = vec![progress(sweep, now)];
    lines.extend(leader(sweep));
    let running: Vec<&Trial> = sweep.live().map(|(trial, _)| trial).collect();
    lines.extend(table(sweep, &running, now));
    lines.extend(ended_last(sweep).filter_map(|trial| trial.ending(&sweep.plan().objectives)));
    lines.truncate(rows);
    lines.iter().map(|line| text::truncate(line.trim_end(), columns.saturating_sub(1))).collect()
}

fn progress(sweep: &Sweep, now: Timestamp) -> String {
    let Some(limit) = sweep.trial_limit() else {
        return state(sweep, now);
    };
    let ended = sweep.trials().iter().filter(|trial| trial.status.is_ended()).count();
    let limit = usize::try_from(limit).unwrap_or(usize::MAX).max(1);
    let filled = ended.min(limit).saturating_mul(BAR) / limit;
    let bar = format!("[{}{}] {ended}/{limit}", "#".repeat(filled), "-".repeat(BAR - filled));
    format!("{bar} {}{}", phase(sweep), totals(sweep, now))
}

fn leader(sweep: &Sweep) -> Option<String> {
    let front = sweep.front();
    let leader = front.first()?;
    let objectives = &sweep.plan().objectives;
    let scores = objectives.iter().zip(leader.scores(objectives)).filter_map(|(objective, score)| {
        score.map(|score| format!("{} {}", objective.metric, number(score)))
    });
    let scores = scores.collect::<Vec<_>>().join(", ");
    let others = match front.len() {
        0 | 1 => String::new(),
        more => format!(", one of {more} on the Pareto front"),
    };
    Some(format!("best: trial {}, {scores}{others} ({})", leader.id, parameters(&leader.parameters)))
}

/// The trials that exist, with their curves.
fn table(sweep: &Sweep, trials: &[&Trial], now: Timestamp) -> Vec<String> {
    let Some(objective) = sweep.plan().objectives.first().filter(|_| !trials.is_empty()) else {
        return Vec::new();
    };
    let mut table =
        TextTable::report([("TRIAL", Align::Right), ("STATE", Align::Left), ("STEP", Align::Right)]);
    table.column(text::truncate(&objective.metric, 16), Align::Right);
    table.column("BEST", Align::Right);
    table.column("CURVE", Align::Left);
    table.column("TIME", Align::Right);
    table.column("PARAMETERS", Align::Left);
    for trial in trials {
        let values: Vec<f64> = trial.curve(&objective.metric).iter().map(|point| point.value).collect();
        table.row(vec![
            trial.id.to_string(),
            trial.status.name().to_owned(),
            values.len().to_string(),
            values.last().copied().map(number).unwrap_or_default(),
            objective.goal.best(values.iter().copied()).map(number).unwrap_or_default(),
            sparkline(&values),
            duration(trial.run_time(now)),
            parameters(&trial.parameters),
        ]);
    }
    table.lines()
}

/// The trials that ended last, by the start of their last attempt and its length; the latest first.
fn ended_last(sweep: &Sweep) -> impl Iterator<Item = &Trial> {
    let end_of = |trial: &Trial| {
        let attempt = trial.attempt()?;
        Some(attempt.starting.plus(attempt.ran))
    };
    let mut ended: Vec<_> = sweep.trials().iter().filter(|trial| trial.status.is_ended()).collect();
    ended.sort_by_key(|trial| std::cmp::Reverse((end_of(trial), trial.id)));
    ended.into_iter().take(ENDED)
}

/// The shape of the last values; a space where a value is not finite.
fn sparkline(values: &[f64]) -> String {
    let values = values.get(values.len().saturating_sub(CURVE)..).unwrap_or_default();
    let finite = || values.iter().copied().filter(|value| value.is_finite());
    let (low, high) = (finite().fold(f64::INFINITY, f64::min), finite().fold(f64::NEG_INFINITY, f64::max));
    let level = |value: &f64| {
        if !value.is_finite() {
            return ' ';
        }
        let share = if high > low { (value - low) / (high - low) } else { 0.5 };
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 7")]
        let level = (share * 7.0).round().clamp(0.0, 7.0) as usize;
        LEVELS.get(level).copied().unwrap_or(' ')
    };
    values.iter().map(level).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sparkline_goes_from_the_lowest_to_the_highest_level() {
        for (values, text) in [
            (vec![0.0, 0.5, 1.0], "▁▅█"),
            (vec![3.0, 3.0], "▅▅"),
            (vec![f64::NAN, 1.0, 2.0], " ▁█"),
            (vec![f64::NAN], " "),
            (vec![-f64::MAX, f64::MAX], "▁▁"),
            (vec![], ""),
        ] {
            assert_eq!(sparkline(&values), text, "{values:?}");
        }
        assert_eq!(sparkline(&[1.0; 40]).chars().count(), CURVE);
    }
}
