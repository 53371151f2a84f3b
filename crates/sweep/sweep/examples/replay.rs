//! Asks a policy for its decisions: `scripts/sweep-peers` compares them with those of other tools.
//!
//! Reads JSON lines. `{"policy": …, "goal": "maximize"}` begins a sweep, `{"trial": 0, "value": "0.5"}` is a report (as
//! text, because JSON has no NaN), and `{"trial": 0}` the end of a trial. Each report is answered by `stop` or `go on` and
//! the arithmetic, each other line by `ok`.

use std::error::Error;
use std::io::{self, BufRead as _, Write as _};

use cudock_sweep::policy::{Decision, History};
use cudock_sweep::{Goal, TerminationPolicy, TrialId};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(untagged)]
enum Line {
    Sweep { policy: TerminationPolicy, goal: Goal },
    Report { trial: TrialId, value: String },
    End { trial: TrialId },
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut out = io::stdout().lock();
    let mut sweep: Option<(TerminationPolicy, History)> = None;
    for line in io::stdin().lock().lines() {
        match (serde_json::from_str(&line?)?, &mut sweep) {
            (Line::Sweep { policy, goal }, _) => {
                sweep = Some((policy, History::new(goal)));
                writeln!(out, "ok")?;
            }
            (Line::Report { trial, value }, Some((policy, history))) => {
                history.report(trial, value.parse()?);
                let decision = policy.evaluate(history, trial);
                let answer = if decision.as_ref().is_some_and(Decision::is_stop) { "stop" } else { "go on" };
                let why = decision.map(|decision| format!(": {decision}")).unwrap_or_default();
                writeln!(out, "{answer}{why}")?;
            }
            (Line::End { trial }, Some((_, history))) => {
                history.end(trial);
                writeln!(out, "ok")?;
            }
            (_, None) => return Err("the first line has to be a policy".into()),
        }
        out.flush()?;
    }
    Ok(())
}
