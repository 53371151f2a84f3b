//! The new price table: the prices that were read, merged into the existing ones.

use std::collections::{BTreeMap, BTreeSet};

use cudock_base::Usd;
use cudock_facts::STALE_AFTER_DAYS;
use cudock_facts::tables::{PriceRow, Prices};
use cudock_facts::version::Date;
use schemars::JsonSchema;
use serde::Serialize;

use crate::journal::Run;

pub(crate) const SOURCE: &str = "azure-retail-prices";
const COLUMNS: &str = "size,region,price,spot,price_source,price_date,spot_source,spot_date";

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Changes {
    pub read: usize,
    /// Of these, those of a size and region that had none before.
    pub new: usize,
    /// Of these, those that differ from the existing ones.
    pub changed: usize,
    /// Older prices that are kept: of regions and sizes that were not requested, or that the list omitted.
    pub kept: usize,
    /// Prices that the list omitted and that are too old to keep.
    pub gone: usize,
}

/// One price, and where and when it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
struct PriceCell {
    usd: Usd,
    address: String,
    date: Date,
}

/// Pay as you go, and Spot.
type PriceCells = [Option<PriceCell>; 2];

#[derive(Debug)]
pub(crate) struct PriceTable {
    as_of: Date,
    cells: BTreeMap<(String, String), PriceCells>,
    /// Addresses of sources with the names they had.
    names: BTreeMap<String, String>,
    pub(crate) changes: Changes,
}

impl PriceTable {
    /// Merges tables: the newer price counts, and for equal dates that of the later table.
    pub(crate) fn of<'a>(tables: impl IntoIterator<Item = &'a Prices>) -> Option<Self> {
        let mut merged: Option<Self> = None;
        for table in tables {
            let merged = merged.get_or_insert_with(|| Self {
                as_of: table.as_of,
                cells: BTreeMap::new(),
                names: BTreeMap::new(),
                changes: Changes::default(),
            });
            merged.as_of = merged.as_of.max(table.as_of);
            for source in &table.sources {
                merged.names.entry(source.address.clone()).or_insert_with(|| source.name.clone());
            }
            for row in table.rows() {
                let new = cells_of(&row, table);
                let cells = merged.cells.entry((row.size.to_owned(), row.region.to_owned())).or_default();
                for (cell, new) in cells.iter_mut().zip(new) {
                    if new.as_ref().map(|new| new.date) >= cell.as_ref().map(|cell| cell.date) {
                        *cell = new;
                    }
                }
            }
        }
        merged
    }

    /// Merges the prices of a run.
    ///
    /// A price that the list omitted is kept until it is stale, because rows get lost between the pages of a changing list.
    pub(crate) fn apply(&mut self, run: &Run, today: Date) {
        let requested: BTreeSet<&str> = run.sizes.iter().map(String::as_str).collect();
        for region in run.regions.iter().filter(|region| !region.sizes.is_empty()) {
            let is_requested = |size: &str| requested.is_empty() || requested.contains(size);
            let listed: BTreeMap<&str, [Option<u64>; 2]> =
                region.sizes.iter().map(|row| (row.size.as_str(), [row.price, row.spot])).collect();
            for size in listed.keys() {
                self.cells.entry(((*size).to_owned(), region.region.clone())).or_default();
            }
            let of_region = |(size, name): &(String, String)| *name == region.region && is_requested(size);
            for ((size, _), cells) in self.cells.iter_mut().filter(|(key, _)| of_region(key)) {
                let new = listed.get(size.as_str()).copied().unwrap_or_default();
                for (cell, micros) in cells.iter_mut().zip(new) {
                    let new = micros.map(|micros| PriceCell {
                        usd: Usd::from_micros(micros),
                        address: run.endpoint.clone(),
                        date: region.day,
                    });
                    update_cell(cell, new, today, &mut self.changes);
                }
            }
        }
        self.cells.retain(|_, cells| cells.iter().any(Option::is_some));
        let read: BTreeSet<&str> = run
            .regions
            .iter()
            .filter(|region| !region.sizes.is_empty())
            .map(|region| region.region.as_str())
            .collect();
        if requested.is_empty() && self.cells.keys().all(|(_, region)| read.contains(region.as_str())) {
            self.as_of = self.as_of.max(today);
        }
    }

    /// Counts the prices that were not read in this run.
    pub(crate) fn count_kept(&mut self) {
        let all = self.cells.values().flatten().flatten().count();
        self.changes.kept = all.saturating_sub(self.changes.read);
    }

    /// The text in the format of `azure_prices.csv`.
    pub(crate) fn text(&self) -> String {
        let sources = self.sources();
        let mut text = format!(
            "# as_of: {}\n# currency: USD per hour, Linux, pay as you go and Spot\n\
             # written by `cudock prices refresh`: each price keeps the day it was read\n",
            self.as_of
        );
        let mut line = |content: String| {
            text.push_str(&content);
            text.push('\n');
        };
        for (address, name) in &sources {
            line(format!("# source {name} = {address}"));
        }
        line(COLUMNS.to_owned());
        for ((size, region), [price, spot]) in &self.cells {
            let usd = |cell: &Option<PriceCell>| {
                cell.as_ref().map_or_else(String::new, |cell| cell.usd.to_string())
            };
            let from = |cell: &Option<PriceCell>| match cell {
                Some(cell) => {
                    format!("{},{}", sources.get(&cell.address).map_or("", String::as_str), cell.date)
                }
                None => ",".to_owned(),
            };
            line(format!("{size},{region},{},{},{},{}", usd(price), usd(spot), from(price), from(spot)));
        }
        text
    }

    /// A unique name for each source that is used, by address.
    fn sources(&self) -> BTreeMap<String, String> {
        let mut taken = BTreeSet::new();
        let mut sources = BTreeMap::new();
        for cell in self.cells.values().flatten().flatten() {
            if sources.contains_key(&cell.address) {
                continue;
            }
            let wanted = self.names.get(&cell.address).map_or(SOURCE, String::as_str);
            let name = unused_name(wanted, |name| taken.contains(name));
            taken.insert(name.clone());
            sources.insert(cell.address.clone(), name);
        }
        sources
    }

    /// Parses a text and compares it with the table.
    pub(crate) fn check(&self, text: &str, is_size: impl Fn(&str) -> bool) -> Result<(), String> {
        let read = Prices::parse(text).map_err(|error| error.to_string())?;
        let mut expected = self.cells.iter();
        for row in read.rows() {
            if !is_size(row.size) {
                return Err(format!("{} is not in azure_sizes.toml", row.size));
            }
            let same = expected.next().is_some_and(|((size, region), cells)| {
                *size == row.size && *region == row.region && *cells == cells_of(&row, &read)
            });
            if !same {
                return Err(format!("{} in {} does not read back correctly", row.size, row.region));
            }
        }
        match (expected.next(), read.as_of == self.as_of) {
            (None, true) => Ok(()),
            (None, false) => Err("its date does not read back correctly".to_owned()),
            (Some(((size, region), _)), _) => Err(format!("{size} in {region} does not read back")),
        }
    }

    pub(crate) fn rows(&self) -> usize {
        self.cells.len()
    }
}

/// A name of a source that is not used: the wanted one, or else with a number behind it.
pub(crate) fn unused_name(wanted: &str, is_used: impl Fn(&str) -> bool) -> String {
    let numbered = (2..).map(|number: u32| format!("{wanted}-{number}"));
    let mut names = std::iter::once(wanted.to_owned()).chain(numbered);
    names.find(|name| !is_used(name)).unwrap_or_else(|| wanted.to_owned())
}

fn update_cell(cell: &mut Option<PriceCell>, new: Option<PriceCell>, today: Date, changes: &mut Changes) {
    match (&cell, new) {
        (Some(old), None) if today.days_since(old.date) > STALE_AFTER_DAYS => {
            changes.gone += 1;
            *cell = None;
        }
        (_, None) => {}
        // A leftover run may be older than the table.
        (Some(old), Some(new)) if new.date < old.date => {}
        (old, Some(new)) => {
            changes.read += 1;
            match old {
                None => changes.new += 1,
                Some(old) if old.usd != new.usd => changes.changed += 1,
                Some(_) => {}
            }
            *cell = Some(new);
        }
    }
}

fn cells_of(row: &PriceRow<'_>, table: &Prices) -> PriceCells {
    let cell = |usd: Option<Usd>, date: Option<Date>, source: Option<&str>| {
        let source = table.sources.iter().find(|known| Some(known.name.as_str()) == source)?;
        Some(PriceCell { usd: usd?, address: source.address.clone(), date: date? })
    };
    [cell(row.price, row.price_date, row.price_source), cell(row.spot, row.spot_date, row.spot_source)]
}

#[cfg(test)]
mod tests;
