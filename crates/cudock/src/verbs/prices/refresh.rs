use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cudock_base::suggest;
use cudock_facts::Facts;
use cudock_prices::{Connection, Endpoint, Listener, RegionLine, RegionPrices, Report, Request};
use serde::Serialize;

use super::{RefreshArgs, counted, folder, tables};
use crate::failure::{Failure, Outcome};
use crate::output::{self, BOLD, Format, YELLOW, line, styled, wrapped};

/// So many names stand in a note; the rest is counted.
const MOST_NAMES: usize = 8;

pub(super) fn run(given: Option<&Path>, words: &RefreshArgs, format: Format) -> Result<Outcome, Failure> {
    let folder = folder(given)?;
    // A folder that is not there is about to be made.
    let facts = if folder.is_dir() { tables(given)? } else { Facts::embedded() };
    let endpoint = match words.endpoint.as_deref().map(str::trim).filter(|text| !text.is_empty()) {
        None => Endpoint::default(),
        Some(text) => text.parse().map_err(|error| {
            Failure::input(format!("--endpoint: {error}"))
                .hint("name the whole address, such as https://mirror.example/api/retail/prices")
        })?,
    };
    let request = Request {
        directory: folder,
        endpoint,
        regions: words.region.clone(),
        sizes: words.size.clone(),
        today: output::today(),
        connection: Connection::from_environment(&cudock_base::Environment::of_process()),
    };
    let lines = Lines::default();
    let done = cudock_prices::refresh(&request, &facts, &lines);
    lines.end();
    let report = done?;
    notes(&report, &facts);
    match format {
        Format::Json => {
            output::json(&Whole { schema: 1, currency: &words.currency, report: &report });
        }
        Format::Text => print(&report),
    }
    Ok(if report.table.is_some() { Outcome::Yes } else { Outcome::No })
}

#[derive(Serialize)]
struct Whole<'a> {
    schema: u8,
    currency: &'a str,
    #[serde(flatten)]
    report: &'a Report,
}

fn print(report: &Report) {
    let changes = &report.changes;
    let Some(table) = &report.table else {
        line(format!("no price was read from {}; nothing is changed", report.endpoint));
        return;
    };
    let regions = counted(report.regions.len(), "region");
    line(styled(
        BOLD,
        &format!("{} of {regions} read from {}", counted(changes.read, "price"), report.endpoint),
    ));
    line(format!(
        "  {} changed, {} new; {} older kept, {} gone",
        changes.changed, changes.new, changes.kept, changes.gone
    ));
    line(format!("  {} ({})", table.display(), counted(report.rows, "row")));
    if let Some(file) = report.meters.as_ref().and_then(|meters| meters.file.as_ref()) {
        let count: usize = report.regions.iter().map(|region| region.meters).sum();
        line(format!("  {} ({})", file.display(), counted(count, "meter")));
    }
}

/// What to know of the prices, on standard error.
fn notes(report: &Report, facts: &Facts) {
    let note = |text: String| {
        let text = wrapped("note: ", &text);
        anstream::eprintln!("{}", text.replacen("note", &styled(YELLOW, "note"), 1));
    };
    for RegionLine { region, .. } in report.regions.iter().filter(|region| region.sizes == 0) {
        let near: Vec<&str> = suggest::nearest(region, facts.prices().regions());
        let near = near.into_iter().filter(|name| name != region).collect::<Vec<_>>().join(" or ");
        let near = if near.is_empty() { String::new() } else { format!("; did you mean {near}?") };
        note(format!("the list has no price for {region}; what was known of it stays{near}"));
    }
    let names = |names: &std::collections::BTreeSet<String>| {
        let shown: Vec<&str> = names.iter().take(MOST_NAMES).map(String::as_str).collect();
        let more = names.len().saturating_sub(MOST_NAMES);
        if more > 0 { format!("{} and {more} more", shown.join(", ")) } else { shown.join(", ") }
    };
    if !report.rounded.is_empty() {
        note(format!("prices with more than six decimals were rounded half up: {}", names(&report.rounded)));
    }
    if !report.contested.is_empty() {
        let text = "two prices began on the same day, and the dearer one was taken";
        note(format!("{text}: {}", names(&report.contested)));
    }
    if !report.unknown_sizes.is_empty() {
        let text = "priced, and not in azure_sizes.toml, so left out";
        note(format!("{text}: {}", names(&report.unknown_sizes)));
    }
    if let Some(left) = report.meters.as_ref().and_then(|meters| meters.left.clone()) {
        note(left);
    }
}

/// How far the run is: one line that is written over on a terminal, one line a region elsewhere.
#[derive(Default)]
struct Lines {
    /// Whether a line stands there that the next one is to be written over.
    drawn: AtomicBool,
}

impl Lines {
    fn draw(&self, text: &str) {
        self.drawn.store(true, Ordering::Relaxed);
        let _ = std::io::stderr().write_all(format!("\r\x1b[K{text}").as_bytes());
    }

    /// Lets the line stand.
    fn end(&self) {
        if self.drawn.swap(false, Ordering::Relaxed) {
            anstream::eprintln!();
        }
    }
}

impl Listener for Lines {
    fn waiting(&self) {
        anstream::eprintln!("waiting for another cudock that renews prices in the same folder");
    }

    fn resumed(&self, done: usize, of: usize) {
        anstream::eprintln!("going on with an earlier run that read {done} of {}", counted(of, "region"));
    }

    fn region(&self, index: usize, of: usize, region: &str) {
        if std::io::stderr().is_terminal() {
            self.draw(&format!("region {index} of {of}: {region}"));
        }
    }

    fn done(&self, index: usize, of: usize, region: &RegionPrices) {
        let sizes = counted(region.sizes.len(), "size");
        let text =
            format!("region {index} of {of}: {}, {sizes}, {} read", region.region, counted_rows(region.rows));
        if std::io::stderr().is_terminal() {
            self.draw(&text);
        } else {
            anstream::eprintln!("{text}");
        }
    }

    fn retrying(&self, reason: &str, wait: Duration) {
        self.end();
        anstream::eprintln!("{reason}; trying again in {:.1} s", wait.as_secs_f64());
    }
}

fn counted_rows(rows: u64) -> String {
    counted(usize::try_from(rows).unwrap_or(usize::MAX), "row")
}
