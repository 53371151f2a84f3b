use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cudock_base::text::format::count;
use cudock_base::text::suggest;
use cudock_cli::RefreshArgs;
use cudock_facts::Facts;
use cudock_prices::{
    Connection, Endpoint, Listener, RefreshReport, RefreshRequest, RegionPrices, RegionSummary,
};
use schemars::JsonSchema;
use serde::Serialize;

use crate::failure::{Failure, Outcome};
use crate::output::{self, BLUE, BOLD, Format, line, redraw, redraws, status, styled, wrapped};
use crate::steps::tables::{directory, tables};

/// How many names a note lists.
const MAX_NAMES: usize = 8;

pub(crate) fn run(given: Option<&Path>, args: &RefreshArgs, format: Format) -> Result<Outcome, Failure> {
    let directory = directory(given)?;
    // A missing directory is created later.
    let facts = if directory.is_dir() { tables(given)? } else { Facts::embedded() };
    let endpoint = match args.endpoint.as_deref().map(str::trim).filter(|text| !text.is_empty()) {
        None => Endpoint::default(),
        Some(text) => text.parse().map_err(|error| {
            Failure::input(format!("--endpoint: {error}"))
                .hint("give a complete URL, such as https://mirror.example/api/retail/prices")
        })?,
    };
    let request = RefreshRequest {
        directory,
        endpoint,
        regions: args.region.clone(),
        sizes: args.size.clone(),
        today: output::today(),
        connection: Connection::from_environment(&cudock_base::Environment::of_process()),
    };
    let lines = ProgressLine::default();
    let done = cudock_prices::refresh(&request, &facts, &lines);
    lines.end();
    let report = done?;
    notes(&report, &facts);
    match format {
        Format::Json => {
            output::json(&RefreshOutput { schema: 1, currency: &args.currency, report: &report });
        }
        Format::Text => print(&report),
    }
    Ok(if report.table.is_some() { Outcome::Yes } else { Outcome::No })
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct RefreshOutput<'a> {
    schema: u8,
    currency: &'a str,
    #[serde(flatten)]
    report: &'a RefreshReport,
}

fn print(report: &RefreshReport) {
    let changes = &report.changes;
    let Some(table) = &report.table else {
        line(format!("no prices read from {}; nothing changed", report.endpoint));
        return;
    };
    let regions = count(report.regions.len(), "region");
    line(styled(
        BOLD,
        &format!("{} of {regions} read from {}", count(changes.read, "price"), report.endpoint),
    ));
    line(format!(
        "  {} changed, {} new; {} older kept, {} removed",
        changes.changed, changes.new, changes.kept, changes.gone
    ));
    line(format!("  {} ({})", table.display(), count(report.rows, "row")));
    if let Some(file) = report.meters.as_ref().and_then(|meters| meters.file.as_ref()) {
        let meters: usize = report.regions.iter().map(|region| region.meters).sum();
        line(format!("  {} ({})", file.display(), count(meters, "meter")));
    }
}

/// Prints notes about the prices to standard error.
fn notes(report: &RefreshReport, facts: &Facts) {
    let note = |text: String| {
        let text = wrapped("note: ", &text);
        status(text.replacen("note", &styled(BLUE, "note"), 1));
    };
    for RegionSummary { region, .. } in report.regions.iter().filter(|region| region.sizes == 0) {
        let near: Vec<&str> = suggest::nearest(region, facts.prices().regions());
        let near = near.into_iter().filter(|name| name != region).collect::<Vec<_>>().join(" or ");
        let near = if near.is_empty() { String::new() } else { format!("; did you mean {near}?") };
        note(format!("the list has no price for {region}; existing prices are kept{near}"));
    }
    let names = |names: &std::collections::BTreeSet<String>| {
        let shown: Vec<&str> = names.iter().take(MAX_NAMES).map(String::as_str).collect();
        let more = names.len().saturating_sub(MAX_NAMES);
        if more > 0 { format!("{} and {more} more", shown.join(", ")) } else { shown.join(", ") }
    };
    if !report.rounded.is_empty() {
        note(format!("prices with more than six decimals were rounded: {}", names(&report.rounded)));
    }
    if !report.contested.is_empty() {
        let text = "two prices have the same start date, and the higher one was used";
        note(format!("{text}: {}", names(&report.contested)));
    }
    if !report.unknown_sizes.is_empty() {
        let text = "sizes with a price that are not in azure_sizes.toml were skipped";
        note(format!("{text}: {}", names(&report.unknown_sizes)));
    }
    if let Some(left) = report.meters.as_ref().and_then(|meters| meters.left.clone()) {
        note(left);
    }
}

/// Prints progress: one line that is overwritten on a terminal, or else one line per region.
#[derive(Default)]
struct ProgressLine {
    /// Whether the line is on the terminal.
    drawn: AtomicBool,
}

impl ProgressLine {
    fn draw(&self, text: &str) {
        self.drawn.store(true, Ordering::Relaxed);
        redraw(text);
    }

    fn end(&self) {
        if self.drawn.swap(false, Ordering::Relaxed) {
            status("");
        }
    }
}

impl Listener for ProgressLine {
    fn waiting(&self) {
        status("waiting for another cudock that refreshes prices in the same directory");
    }

    fn resumed(&self, done: usize, of: usize) {
        status(format!("resuming an earlier run that read {done} of {}", count(of, "region")));
    }

    fn region(&self, index: usize, of: usize, region: &str) {
        if redraws() {
            self.draw(&format!("region {index} of {of}: {region}"));
        }
    }

    fn done(&self, index: usize, of: usize, region: &RegionPrices) {
        let sizes = count(region.sizes.len(), "size");
        let text =
            format!("region {index} of {of}: {}, {sizes}, {} read", region.region, row_count(region.rows));
        if redraws() {
            self.draw(&text);
        } else {
            status(text);
        }
    }

    fn retrying(&self, reason: &str, wait: Duration) {
        self.end();
        status(format!("{reason}; retrying in {:.1} s", wait.as_secs_f64()));
    }
}

fn row_count(rows: u64) -> String {
    count(usize::try_from(rows).unwrap_or(usize::MAX), "row")
}
