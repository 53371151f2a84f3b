use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use cudock_facts::tables::Prices;
use cudock_facts::version::Date;
use cudock_facts::{Facts, STALE_AFTER_DAYS};
use cudock_prices::{Unfinished, table_in, unfinished};
use serde::Serialize;

use super::{counted, folder, tables};
use crate::failure::{Failure, Outcome};
use crate::output::{self, BOLD, Format, YELLOW, line, styled, wrapped};

#[derive(Serialize)]
struct Report {
    schema: u8,
    day: Date,
    /// The prices that reports rest on.
    table: Table,
    /// Those that the program was built with.
    embedded: Table,
    /// Those that are laid over them.
    overlay: Option<Table>,
    /// Where newer ones would go.
    folder: Option<PathBuf>,
    unfinished: Option<Unfinished>,
}

#[derive(Serialize)]
struct Table {
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<PathBuf>,
    as_of: Date,
    age_days: i32,
    stale: bool,
    rows: usize,
    sizes: usize,
    regions: BTreeSet<String>,
    sources: Vec<Source>,
}

#[derive(Serialize)]
struct Source {
    name: String,
    address: String,
    /// Pay as you go and Spot counted apart.
    prices: usize,
    oldest: Date,
    newest: Date,
}

impl Table {
    fn of(prices: &Prices, path: Option<PathBuf>, day: Date) -> Self {
        let mut sources: BTreeMap<&str, (usize, Date, Date)> = BTreeMap::new();
        let mut sizes = BTreeSet::new();
        let mut regions = BTreeSet::new();
        let mut rows = 0;
        for row in prices.rows() {
            rows += 1;
            sizes.insert(row.size);
            regions.insert(row.region.to_owned());
            for (name, date) in [(row.price_source, row.price_date), (row.spot_source, row.spot_date)] {
                let (Some(name), Some(date)) = (name, date) else { continue };
                let (count, oldest, newest) = sources.entry(name).or_insert((0, date, date));
                (*count, *oldest, *newest) = (*count + 1, date.min(*oldest), date.max(*newest));
            }
        }
        let address = |name: &str| {
            let known = prices.sources.iter().find(|source| source.name == name);
            known.map(|source| source.address.clone()).unwrap_or_default()
        };
        let sources = sources.into_iter().map(|(name, (prices, oldest, newest))| Source {
            name: name.to_owned(),
            address: address(name),
            prices,
            oldest,
            newest,
        });
        let as_of = prices.newest();
        let age_days = day.days_since(as_of);
        Self {
            path,
            as_of,
            age_days,
            stale: age_days > STALE_AFTER_DAYS,
            rows,
            sizes: sizes.len(),
            regions,
            sources: sources.collect(),
        }
    }
}

pub(super) fn run(given: Option<&Path>, format: Format) -> Result<Outcome, Failure> {
    let day = output::today();
    let facts = tables(given)?;
    let folder = folder(given).ok();
    let overlay = folder.as_deref().map(table_in).transpose()?.flatten();
    let report = Report {
        schema: 1,
        day,
        table: Table::of(facts.prices(), None, day),
        embedded: Table::of(Facts::embedded().prices(), None, day),
        overlay: overlay.map(|(path, prices)| Table::of(&prices, Some(path), day)),
        unfinished: folder.as_deref().map(|folder| unfinished(folder, day)).transpose()?.flatten(),
        folder,
    };
    match format {
        Format::Json => output::json(&report),
        Format::Text => print(&report),
    }
    Ok(Outcome::Yes)
}

fn print(report: &Report) {
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
    match (&report.overlay, &report.folder) {
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
        (None, Some(folder)) => {
            line(format!("overlay   none; `cudock prices refresh` writes one into {}", folder.display()));
        }
        (None, None) => line("overlay   none; `cudock --facts DIR prices refresh` writes one"),
    }
    if let Some(run) = &report.unfinished {
        let next = if run.usable { "the same command goes on with it" } else { "too old to go on with" };
        line(format!(
            "unfinished  a run of {} that read {}; {next}",
            run.day,
            counted(run.regions.len(), "region")
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
