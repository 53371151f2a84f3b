//! The overlay of meters: rows for single regions, which override those of areas and the global ones.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use cudock_base::Usd;
use cudock_facts::Facts;
use cudock_facts::tables::{Meter, MeterKind, Meters};
use cudock_facts::version::Date;
use schemars::JsonSchema;
use serde::Serialize;

use crate::error::PricesError;
use crate::files;
use crate::journal::Run;
use crate::meters::MeterPrice;
use crate::region::RegionPrices;
use crate::table::{SOURCE, unused_name};

const FILE: &str = "azure_meters.toml";
/// Distinguishes generated files from those that users write.
const MARK: &str = "# written by `cudock prices refresh`";

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MeterChanges {
    /// The file; none if nothing was written.
    pub file: Option<PathBuf>,
    /// How many prices of meters were read.
    pub read: usize,
    /// Why they were not written.
    pub left: Option<String>,
}

/// Merges the meters of a run into the file of an earlier one. A file that a user wrote is left alone.
pub(crate) fn write(directory: &Path, run: &Run, embedded: &Facts) -> Result<MeterChanges, PricesError> {
    let path = directory.join(FILE);
    let mut done = MeterChanges {
        read: run.regions.iter().map(|region| region.meters.len()).sum(),
        ..MeterChanges::default()
    };
    if done.read == 0 {
        done.left = Some("the list has none of the known meters".to_owned());
        return Ok(done);
    }
    let there = files::read(&path)?;
    if there.as_ref().is_some_and(|text| !text.starts_with(MARK)) {
        done.left = Some(format!("{} was not written by cudock and is left alone", path.display()));
        return Ok(done);
    }
    let parse = |text: &str| toml::from_str::<Meters>(text).map_err(|error| error.message().to_owned());
    let old = there.as_deref().map(parse).transpose();
    let old = old.map_err(|reason| PricesError::Overlay { path: path.clone(), reason })?;
    let mut sources = old.as_ref().map(|old| old.table.sources.clone()).unwrap_or_default();
    let source = source_of(&run.endpoint, &sources);
    sources.insert(source.clone(), run.endpoint.clone());
    let rows = merged(old.as_ref(), run, embedded.meters(), &source);
    let text = text(&rows, &sources, embedded.meters().table.as_of);
    let checked = parse(&text).and_then(|read| {
        if read.meter == rows { Ok(()) } else { Err("a meter does not read back correctly".to_owned()) }
    });
    checked.map_err(|reason| PricesError::Check { path: path.clone(), reason })?;
    files::write(&path, text.as_bytes())?;
    done.file = Some(path);
    Ok(done)
}

/// The rows that are kept, and the new ones.
fn merged(old: Option<&Meters>, run: &Run, embedded: &Meters, source: &str) -> Vec<Meter> {
    let of_region = |region| move |price| row(price, region, embedded, source);
    let fresh: Vec<Meter> =
        run.regions.iter().flat_map(|region| region.meters.iter().map(of_region(region))).collect();
    let refreshed: BTreeSet<_> = fresh.iter().map(key).collect();
    let is_kept = |row: &&Meter| !refreshed.contains(&key(row));
    let mut rows: Vec<Meter> = old.iter().flat_map(|old| &old.meter).filter(is_kept).cloned().collect();
    rows.extend(fresh.iter().cloned());
    rows.sort_by(|one, other| (key(one), one.above).cmp(&(key(other), other.above)));
    rows
}

/// The identity of the price in a row.
fn key(row: &Meter) -> (&str, MeterKind, Option<&str>, &[String]) {
    (&row.service, row.meter, row.gpu.as_deref(), &row.regions)
}

fn row(price: &MeterPrice, region: &RegionPrices, embedded: &Meters, source: &str) -> Meter {
    let before = embedded.price(&price.service, price.meter, price.gpu.as_deref(), &region.region);
    let free = price.free.or_else(|| before.filter(|_| price.above == 0).and_then(|row| row.free_per_month));
    Meter {
        service: price.service.clone(),
        meter: price.meter,
        gpu: price.gpu.clone(),
        usd: Usd::from_nanos(u128::from(price.nanos)),
        regions: vec![region.region.clone()],
        area: None,
        above: price.above,
        free_per_month: free,
        as_of: region.day,
        assumed: false,
        note: None,
        source: vec![source.to_owned()],
    }
}

/// The name of a source: an existing one with this address, or a new one.
fn source_of(address: &str, sources: &BTreeMap<String, String>) -> String {
    if let Some((name, _)) = sources.iter().find(|(_, known)| *known == address) {
        return name.clone();
    }
    unused_name(SOURCE, |name| sources.contains_key(name))
}

fn text(rows: &[Meter], sources: &BTreeMap<String, String>, as_of: Date) -> String {
    let mut text = format!("{MARK}: each price keeps the day it was read\n[table]\nas_of = \"{as_of}\"\n");
    text.push_str("\n[table.sources]\n");
    for (name, address) in sources {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{} = {}", quoted(name), quoted(address));
    }
    for row in rows {
        let (service, meter) = (quoted(&row.service), row.meter);
        let _ = write!(text, "\n[[meter]]\nservice = {service}\nmeter = \"{meter}\"\n");
        if let Some(gpu) = &row.gpu {
            let _ = writeln!(text, "gpu = {}", quoted(gpu));
        }
        let regions: Vec<String> = row.regions.iter().map(|region| quoted(region)).collect();
        let _ = write!(text, "usd = \"{}\"\nregions = [{}]\n", row.usd, regions.join(", "));
        if row.above > 0 {
            let _ = writeln!(text, "above = {}", row.above);
        }
        if let Some(free) = row.free_per_month {
            let _ = writeln!(text, "free_per_month = {free}");
        }
        let sources: Vec<String> = row.source.iter().map(|source| quoted(source)).collect();
        let _ = write!(text, "as_of = \"{}\"\nsource = [{}]\n", row.as_of, sources.join(", "));
    }
    text
}

/// Quotes a text for TOML, whose strings have the same escapes as JSON.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
