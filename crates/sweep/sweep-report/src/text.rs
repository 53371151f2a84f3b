//! The text of `cudock sweep show`: the result, then the reason why each trial ended.

use cudock_base::text::format::{count, duration};
use cudock_base::text::table::{Align, TextTable};
use cudock_base::{Timestamp, text};
use cudock_sweep::failure_logs::{FailureLogs, LogTail, MAX_LINES};
use cudock_sweep::{Goal, Objective, Sweep, TargetReached, Trial};

use super::values::{listed, number, parameters, reason, status_counts, steps};

/// Columns of a screen.
const COLUMNS: usize = 100;
/// Rows of the table that leave room for the rest on a screen of 24 lines.
const ROWS: usize = 17;
/// Lines of a failed trial's log that are shown on one screen.
const LOG_LINES: usize = 5;
/// Characters of a line with a path, or of a whole line of a log.
const MAX_TITLE: usize = 1000;

/// The best trials, the state of the sweep, a table of trials, best first, and the end of the log of the trial that failed
/// last. `is_verbose` lists all of them, their parameters and their logs; otherwise it fits on one screen.
pub fn show(sweep: &Sweep, logs: &FailureLogs, now: Timestamp, is_verbose: bool) -> String {
    let mut lines = answer(sweep);
    let targets = targets(sweep);
    let failures = failures(sweep, logs, is_verbose);
    let rows = ROWS.saturating_sub(targets.len() + failures.len());
    lines.extend(targets);
    lines.push(state(sweep, now));
    let trials = listed(sweep);
    if !trials.is_empty() {
        lines.push(String::new());
        let shown = if is_verbose { trials.len() } else { rows };
        let (shown, omitted) = trials.split_at(shown.min(trials.len()));
        lines.extend(table(sweep, shown, now, is_verbose));
        if !omitted.is_empty() {
            lines.push(format!("{} omitted; --verbose lists all", count(omitted.len(), "more trial")));
        }
    }
    lines.extend(failures);
    lines.join("\n")
}

/// The last output of failed trials: of the one that failed last, or of all.
fn failures(sweep: &Sweep, logs: &FailureLogs, is_verbose: bool) -> Vec<String> {
    let failed = sweep.trials().iter().filter(|trial| logs.of(trial.id).is_some());
    let ended = |trial: &&Trial| trial.attempt().map(|attempt| attempt.starting.plus(attempt.ran));
    let shown: Vec<&Trial> =
        if is_verbose { failed.collect() } else { failed.max_by_key(ended).into_iter().collect() };
    let failure = |trial: &Trial| {
        let (ending, log) = (trial.ending(&sweep.plan().objectives)?, logs.of(trial.id)?);
        let title = text::truncate(&format!("{ending}; the end of {}:", log.path.display()), MAX_TITLE);
        let lines = if is_verbose { log_lines(log, MAX_LINES, MAX_TITLE) } else { log_end(log) };
        Some([String::new(), title].into_iter().chain(lines))
    };
    shown.into_iter().filter_map(failure).flatten().collect()
}

/// The last lines of a log, indented and within a screen.
pub fn log_end(log: &LogTail) -> Vec<String> {
    log_lines(log, LOG_LINES, COLUMNS - 1)
}

fn log_lines(log: &LogTail, most: usize, columns: usize) -> Vec<String> {
    let lines = log.lines.iter().skip(log.lines.len().saturating_sub(most));
    lines.map(|line| text::truncate(&format!("  {line}"), columns)).collect()
}

/// The best trials with their parameters.
pub(crate) fn answer(sweep: &Sweep) -> Vec<String> {
    let objectives = &sweep.plan().objectives;
    let front = sweep.front();
    match (front.as_slice(), objectives.as_slice()) {
        ([], _) if sweep.end().is_some() => vec!["no trial has a result".to_owned()],
        ([], _) => vec!["no trial has a result yet".to_owned()],
        ([best], [_]) => {
            let running = if best.status.is_ended() { "" } else { ", still running" };
            let score = score_text(best, objectives);
            let mut lines = vec![format!("best: trial {}, {score}{running}", best.id)];
            lines.extend(
                wrapped(&parameters(&best.parameters), COLUMNS - 6).map(|line| format!("      {line}")),
            );
            lines
        }
        (front, _) => {
            let names = objectives
                .iter()
                .map(|each| format!("{} ({})", text::truncate(&each.metric, 30), goal(each)));
            let ids: Vec<String> = front.iter().map(|trial| trial.id.to_string()).collect();
            let head = format!("best: {} on the Pareto front of ", count(front.len(), "trial"));
            let ids = text::truncate(&ids.join(", "), COLUMNS - 15);
            vec![head + &names.collect::<Vec<_>>().join(", "), format!("      trials {ids}")]
        }
    }
}

/// The cheapest way to the target of the objective, for each size that trials ran on.
fn targets(sweep: &Sweep) -> Vec<String> {
    let [Objective { metric, target: Some(target), .. }] = sweep.plan().objectives.as_slice() else {
        return Vec::new();
    };
    let goal = format!("{} {}", text::truncate(metric, 30), number(*target));
    let cheapest = sweep.cheapest();
    if cheapest.is_empty() {
        return vec![format!("no trial has come to {goal}")];
    }
    let line = |one: &TargetReached<'_>| {
        let size = one.size.map(|size| format!(" on {size}")).unwrap_or_default();
        let time = duration(one.time);
        let way = match sweep.price_per_hour() {
            Some(_) => {
                format!("cheapest to {goal}{size}: trial {}, ${} in {time}", one.trial.id, one.cost.rounded())
            }
            None => format!("fastest to {goal}{size}: trial {}, {time}", one.trial.id),
        };
        text::truncate(&way, COLUMNS - 1)
    };
    cheapest.iter().map(line).collect()
}

fn goal(objective: &Objective) -> &'static str {
    match objective.goal {
        Goal::Minimize => "minimize",
        Goal::Maximize => "maximize",
    }
}

/// The scores of a trial: "accuracy 0.91 (maximize)".
fn score_text(trial: &Trial, objectives: &[Objective]) -> String {
    let scores = objectives.iter().zip(trial.scores(objectives)).filter_map(|(objective, score)| {
        let name = text::truncate(&objective.metric, 40);
        score.map(|score| format!("{name} {} ({})", number(score), goal(objective)))
    });
    scores.collect::<Vec<_>>().join(", ")
}

/// The state of the sweep in one line: how far it is, how trials ended, time and cost.
pub(crate) fn state(sweep: &Sweep, now: Timestamp) -> String {
    let trials = match sweep.trial_limit() {
        Some(limit) => format!("{} of {limit} trials", sweep.trials().len()),
        None => count(sweep.trials().len(), "trial"),
    };
    format!("{}; {trials}{}", phase(sweep), totals(sweep, now))
}

/// "digits running".
pub(crate) fn phase(sweep: &Sweep) -> String {
    let name = text::truncate(&sweep.plan().name, 40);
    match sweep.end() {
        Some(end) => format!("{name} ended: {end}"),
        None if sweep.is_paused() => format!("{name} paused"),
        None => format!("{name} running"),
    }
}

/// " (2 succeeded, 1 running), 2 min, $0.11".
pub(crate) fn totals(sweep: &Sweep, now: Timestamp) -> String {
    let counts = status_counts(sweep);
    let counts = if counts.is_empty() { String::new() } else { format!(" ({counts})") };
    let cost = sweep.price_per_hour().map(|_| format!(", ${}", sweep.cost(now).rounded()));
    format!("{counts}, {}{}", duration(sweep.active_time(now)), cost.unwrap_or_default())
}

fn table(sweep: &Sweep, trials: &[&Trial], now: Timestamp, is_verbose: bool) -> Vec<String> {
    let objectives = &sweep.plan().objectives;
    let mut table = TextTable::report([("TRIAL", Align::Right), ("STATE", Align::Left)]);
    for objective in objectives {
        table.column(text::truncate(&objective.metric, 16), Align::Right);
    }
    for title in ["STEPS", "TIME", "USD"] {
        table.column(title, Align::Right);
    }
    table.column("WHY", Align::Left);
    table.column("PARAMETERS", Align::Left);
    for trial in trials {
        let mut cells = vec![trial.id.to_string(), trial.status.name().to_owned()];
        let scores = trial.scores(objectives).into_iter();
        cells.extend(scores.map(|score| score.map(number).unwrap_or_default()));
        let cost = sweep.price_per_hour().map(|_| trial.cost(now).rounded());
        let values = if is_verbose { parameters(&trial.parameters) } else { String::new() };
        cells.extend([
            steps(trial, objectives).to_string(),
            duration(trial.run_time(now)),
            cost.unwrap_or_default(),
            reason(trial, objectives).unwrap_or_default(),
            values,
        ]);
        table.row(cells);
    }
    let lines = table.lines().into_iter();
    if is_verbose { lines.collect() } else { lines.map(|line| text::truncate(&line, COLUMNS - 1)).collect() }
}

/// Breaks text at spaces, into at most three lines.
fn wrapped(text: &str, width: usize) -> impl Iterator<Item = String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let is_full = lines
            .last()
            .is_some_and(|line| !line.is_empty() && line.chars().count() + 1 + word.chars().count() > width);
        if is_full {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    let more = lines.len() > 3;
    let lines = lines.into_iter().take(3).map(move |line| text::truncate(&line, width));
    lines.chain(more.then(|| "…".to_owned())).filter(|line| !line.is_empty())
}
