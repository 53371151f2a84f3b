//! Prints the measurements of a model without a server.

use cudock_base::text::format::fixed_bytes;
use cudock_loadgen::results::text::{count, milliseconds};

use super::report::EngineBenchReport;
use crate::output::{BOLD, DIM, line, styled};

pub(crate) fn print(measured: &EngineBenchReport) {
    let sessions =
        if measured.sessions > 1 { format!(", {} sessions", measured.sessions) } else { String::new() };
    line(format!(
        "{}  {} on {}{sessions}",
        styled(BOLD, &measured.model),
        measured.device.engine,
        measured.device.name
    ));
    line(styled(BOLD, &format!("{:>6}{:>12}{:>14}{:>14}", "batch", "one batch", "rows/s", "with JSON")));
    for run in &measured.runs {
        line(format!(
            "{:>6}{:>12}{:>14}{:>14}{}",
            run.batch,
            milliseconds(run.batch_ms),
            count(run.rows_per_second),
            run.with_json_rows_per_second.map_or_else(|| "-".to_owned(), count),
            if run.batch == measured.best_batch { "  best" } else { "" },
        ));
    }
    match &measured.json {
        Some(json) => line(styled(
            DIM,
            &format!(
                "with JSON: the same thread also reads ({:.1} us) and writes ({:.1} us) each request of {} {} ({})",
                json.read_us,
                json.write_us,
                json.rows,
                if json.rows == 1 { "row" } else { "rows" },
                fixed_bytes(json.body_bytes as u64),
            ),
        )),
        None => line(styled(DIM, "the model's tensors cannot be sent as JSON")),
    }
}
