//! One row per trial, as spreadsheets and data frames read it (RFC 4180).

use cudock_base::Timestamp;
use cudock_sweep::{Sweep, Trial};

use super::values::{reason, steps};

/// The trials by number. Columns of parameters and metrics have a prefix, so that their names cannot collide.
pub fn csv(sweep: &Sweep, now: Timestamp) -> String {
    let plan = sweep.plan();
    let parameters = plan.space.parameters.iter().map(|parameter| format!("params_{}", parameter.name));
    let metrics = plan.objectives.iter().map(|objective| format!("metrics_{}", objective.metric));
    let titles = ["trial", "state"].map(str::to_owned).into_iter();
    let rest = ["steps", "attempts", "seconds", "usd", "reason"].map(str::to_owned);
    let header = titles.chain(parameters).chain(metrics).chain(rest);
    let rows = sweep.trials().iter().map(|trial| line(cells(sweep, trial, now)));
    std::iter::once(line(header)).chain(rows).collect()
}

fn cells(sweep: &Sweep, trial: &Trial, now: Timestamp) -> Vec<String> {
    let plan = sweep.plan();
    let mut cells = vec![trial.id.to_string(), trial.status.name().to_owned()];
    let value = |name: &str| trial.parameters.get(name).map(ToString::to_string).unwrap_or_default();
    cells.extend(plan.space.parameters.iter().map(|parameter| value(&parameter.name)));
    let scores = trial.scores(&plan.objectives).into_iter();
    cells.extend(scores.map(|score| score.map(|score| format!("{score:?}")).unwrap_or_default()));
    cells.extend([
        steps(trial, &plan.objectives).to_string(),
        trial.attempts.len().to_string(),
        format!("{:.3}", trial.run_time(now).as_secs_f64()),
        trial.cost(now).to_string(),
        reason(trial, &plan.objectives).unwrap_or_default(),
    ]);
    cells
}

fn line(cells: impl IntoIterator<Item = String>) -> String {
    let quoted = cells.into_iter().map(|cell| {
        let is_plain = !cell.contains(['"', ',', '\n', '\r']);
        if is_plain { cell } else { format!("\"{}\"", cell.replace('"', "\"\"")) }
    });
    quoted.collect::<Vec<_>>().join(",") + "\r\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separators_quotes_and_line_breaks_are_quoted() {
        let cells = ["plain", "a,b", "say \"hi\"", "two\nlines", ""].map(str::to_owned);
        assert_eq!(line(cells), "plain,\"a,b\",\"say \"\"hi\"\"\",\"two\nlines\",\r\n");
    }
}
