use std::path::{Path, PathBuf};

use cudock_base::text::format::count;
use cudock_facts::Facts;
use cudock_facts::version::Date;
use cudock_prices::{PriceSummary, Unfinished, table_in, unfinished};
use schemars::JsonSchema;
use serde::Serialize;

use crate::failure::{Failure, Outcome};
use crate::output::{self, BOLD, Format, YELLOW, line, styled, wrapped};
use crate::steps::tables::{directory, tables};

#[derive(Serialize, JsonSchema)]
pub(crate) struct StatusReport {
    schema: u8,
    day: Date,
    table: PriceSummary,
    embedded: PriceSummary,
    overlay: Option<PriceSummary>,
    /// Where the overlay is or would be.
    directory: Option<PathBuf>,
    unfinished: Option<Unfinished>,
}

pub(crate) fn run(given: Option<&Path>, format: Format) -> Result<Outcome, Failure> {
    let day = output::today();
    let facts = tables(given)?;
    let directory = directory(given).ok();
    let overlay = directory.as_deref().map(table_in).transpose()?.flatten();
    let report = StatusReport {
        schema: 1,
        day,
        table: PriceSummary::of(facts.prices(), None, day),
        embedded: PriceSummary::of(Facts::embedded().prices(), None, day),
        overlay: overlay.map(|(path, prices)| PriceSummary::of(&prices, Some(path), day)),
        unfinished: directory.as_deref().map(|directory| unfinished(directory, day)).transpose()?.flatten(),
        directory,
    };
    match format {
        Format::Json => output::json(&report),
        Format::Text => print(&report),
    }
    Ok(Outcome::Yes)
}

fn print(report: &StatusReport) {
    let table = &report.table;
    let stale = if table.stale { styled(YELLOW, " (stale)") } else { String::new() };
    line(format!(
        "{}  as of {}, {}{stale}: {} rows, {} sizes, {} regions",
        styled(BOLD, "prices"),
        table.as_of,
        age(table.age_days),
        table.rows,
        table.sizes,
        table.regions.len()
    ));
    for source in &table.sources {
        let days = if source.oldest == source.newest {
            source.newest.to_string()
        } else {
            format!("{} to {}", source.oldest, source.newest)
        };
        line(format!("  {:5} prices from {}, {days}", source.prices, source.name));
        line(format!("        {}", source.address));
    }
    let embedded = format!("embedded  as of {}, {}", report.embedded.as_of, age(report.embedded.age_days));
    line(format!("{embedded}: {} rows", report.embedded.rows));
    match (&report.overlay, &report.directory) {
        (Some(overlay), _) => {
            let path = overlay.path.as_deref().unwrap_or(Path::new("")).display();
            line(format!(
                "overlay   as of {}, {}: {} rows",
                overlay.as_of,
                age(overlay.age_days),
                overlay.rows
            ));
            line(format!("  {path}"));
        }
        (None, Some(directory)) => {
            line(format!("overlay   none; `cudock prices refresh` creates one in {}", directory.display()));
        }
        (None, None) => line("overlay   none; `cudock --facts DIR prices refresh` creates one"),
    }
    if let Some(run) = &report.unfinished {
        let next = if run.usable { "re-run the same command to resume" } else { "too old to resume" };
        line(format!(
            "unfinished  a run of {} that read {}; {next}",
            run.day,
            count(run.regions.len(), "region")
        ));
    }
    let regions: Vec<&str> = table.regions.iter().map(String::as_str).collect();
    line(wrapped("regions   ", &regions.join(", ")));
}

fn age(days: i32) -> String {
    match days {
        ..0 => "from the future".to_owned(),
        0 => "from today".to_owned(),
        1 => "1 day old".to_owned(),
        days => format!("{days} days old"),
    }
}
