//! Prints runs as text.

use cudock_load::LoadReport;
use cudock_load::text::{count, label, milliseconds, times};

use super::runs::BenchReport;
use crate::output::{BOLD, DIM, RED, YELLOW, line, styled, wrapped};

/// A generator busier than this is likely the bottleneck.
const BUSY: f64 = 0.95;

/// Prints the notes below the table.
pub(super) fn notes(measured: &BenchReport) {
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

fn notes_of(report: &LoadReport) -> Vec<String> {
    let mut notes = Vec::new();
    if report.refused.count > 0 {
        notes.push(format!("refusals took {}", times(&report.refused)));
    }
    if report.failed.count > 0 {
        let statuses: Vec<String> = report
            .statuses
            .iter()
            .filter(|(status, _)| !matches!(status, 200..300 | 429 | 503))
            .map(|(status, count)| format!("{status} ({count})"))
            .collect();
        notes.push(format!("failed with {}", statuses.join(", ")));
    }
    notes.extend(report.broken.iter().map(|(reason, count)| format!("{count} times {reason}")));
    if let Some(busy) = report.generator_busy.filter(|busy| *busy > BUSY) {
        notes.push(format!(
            "{}: the generator was busy {:.0} % of the time; the server may be faster than this (--threads)",
            styled(YELLOW, "limit"),
            busy * 100.0
        ));
    }
    if let Some(late) = &report.sent_late
        && report.latency.count > 0
        && late.p99_ms > report.latency.p99_ms / 2.0
        && late.p99_ms > 1.0
    {
        notes.push(format!(
            "most of the latency is waiting for one of {} connections (--connections), or for the generator (--threads)",
            report.connections
        ));
    }
    notes
}
