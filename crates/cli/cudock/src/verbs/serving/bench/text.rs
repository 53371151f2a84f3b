//! Prints runs as text.

use cudock_loadgen::results::text::{count, label, milliseconds, notes_of};

use super::report::BenchReport;
use crate::output::{BOLD, DIM, RED, line, styled, wrapped};

/// Prints the notes below the table.
pub(crate) fn notes(measured: &BenchReport) {
    for report in &measured.runs {
        for note in notes_of(report) {
            line(wrapped(&format!("{}: ", label(report.load)), &note));
        }
    }
    let checked: u64 = measured.runs.iter().map(|run| run.checked).sum();
    let wrong: u64 = measured.runs.iter().map(|run| run.wrong).sum();
    if wrong > 0 {
        line(format!(
            "{}: {wrong} of {checked} compared responses differ from the response to the same request alone",
            styled(RED, "wrong")
        ));
    } else if checked > 0 {
        line(styled(
            DIM,
            &format!("{checked} responses compared, all equal to the response to the same request alone"),
        ));
    }
    if let Some(found) = &measured.search {
        let target = milliseconds(found.target_p99_ms);
        line(match found.rate {
            Some(rate) => format!(
                "{} requests/s is the highest rate with p99 within {target}",
                styled(BOLD, &count(rate))
            ),
            None => format!("{}: no rate keeps p99 within {target}", styled(RED, "missed")),
        });
    }
}
