//! Figures of runs as text.

use std::time::Duration;

use cudock_base::text::format::thousands;

use crate::{Latency, Load, LoadReport};

/// A generator busier than this is likely the bottleneck.
const BUSY: f64 = 0.95;

/// A load in two words.
pub fn label(load: Load) -> String {
    match load {
        Load::Closed { clients: 1 } => "1 client".to_owned(),
        Load::Closed { clients } => format!("{clients} clients"),
        Load::Open { rate, .. } => format!("{}/s", count(rate)),
    }
}

pub fn seconds(time: Duration) -> String {
    let text = format!("{:.2}", time.as_secs_f64());
    format!("{} s", text.trim_end_matches('0').trim_end_matches('.'))
}

/// The head of the table of runs.
pub fn head() -> String {
    columns(
        "load",
        "responses/s",
        "rows/s",
        &["p50", "p90", "p99", "p99.9", "max"].map(str::to_owned),
        "errors",
    )
}

/// A run as a row of the table.
pub fn row(report: &LoadReport) -> String {
    let latency = &report.latency;
    let times = [latency.p50_ms, latency.p90_ms, latency.p99_ms, latency.p999_ms, latency.max_ms]
        .map(|time| if latency.count > 0 { milliseconds(time) } else { "-".to_owned() });
    columns(
        &label(report.load),
        &count(report.goodput_per_second),
        &count(report.rows_per_second),
        &times,
        &faults(report),
    )
}

fn columns(load: &str, responses: &str, rows: &str, times: &[String; 5], faults: &str) -> String {
    let times: String = times.iter().map(|time| format!("{time:>10}")).collect();
    format!("{load:<14}{responses:>12}{rows:>10}{times}  {faults}").trim_end().to_owned()
}

/// Requests without a 2xx response, in short.
fn faults(report: &LoadReport) -> String {
    let parts: Vec<String> = [
        (report.refused.count, "refused"),
        (report.failed.count, "failed"),
        (report.broken_count(), "broken"),
        (report.unanswered, "unanswered"),
        (report.wrong, "WRONG"),
    ]
    .iter()
    .filter(|(count, _)| *count > 0)
    .map(|(count, kind)| format!("{count} {kind}"))
    .collect();
    parts.join(", ")
}

/// Notes for readers of a run, in addition to the row of the table.
pub fn notes_of(report: &LoadReport) -> Vec<String> {
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
            "limit: the generator was busy {:.0} % of the time; the server may be faster than this (--threads)",
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

/// Median and 99th percentile of a latency.
fn times(latency: &Latency) -> String {
    format!("{} at the median, {} at p99", milliseconds(latency.p50_ms), milliseconds(latency.p99_ms))
}

/// Three digits and a unit.
pub fn milliseconds(time: f64) -> String {
    match time {
        ..0.9995 => format!("{time:.3} ms"),
        ..9.995 => format!("{time:.2} ms"),
        ..99.95 => format!("{time:.1} ms"),
        ..999.5 => format!("{time:.0} ms"),
        _ => format!("{:.2} s", time / 1e3),
    }
}

/// A count or rate in groups of three digits; small ones with one decimal.
pub fn count(value: f64) -> String {
    if value > 0.0 && value < 100.0 && value.fract() != 0.0 {
        return format!("{value:.1}");
    }
    thousands(&format!("{value:.0}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_digits_or_groups_of_three() {
        for (time, text) in [(0.0421, "0.042 ms"), (9.994, "9.99 ms"), (30.45, "30.4 ms"), (1234.0, "1.23 s")]
        {
            assert_eq!(milliseconds(time), text);
        }
        for (value, text) in [(0.0, "0"), (12.34, "12.3"), (12.0, "12"), (11_850.4, "11,850")] {
            assert_eq!(count(value), text);
        }
        assert_eq!(seconds(Duration::from_millis(5500)), "5.5 s");
    }
}
