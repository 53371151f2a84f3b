//! How a run came out, for people and programs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use cudock_facts::version::Date;
use serde::Serialize;

use crate::journal::Run;
use crate::meters_file::MetersDone;
use crate::refresh::Request;
use crate::region::RegionPrices;
use crate::rules::LeftOut;
use crate::table::Changes;

/// How a run came out.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// The table; none if no region had a price, and nothing was written.
    pub table: Option<PathBuf>,
    /// Who was asked.
    pub endpoint: String,
    /// The day.
    pub day: Date,
    /// The regions asked for, with what they had.
    pub regions: Vec<RegionLine>,
    /// How many rows the table has now.
    pub rows: usize,
    /// What became of the prices.
    pub changes: Changes,
    /// Rows of the list that are no price of a size asked for, by the reason.
    pub left_out: BTreeMap<LeftOut, u64>,
    /// Sizes whose price had more than six decimals and was rounded, half up.
    pub rounded: BTreeSet<String>,
    /// Sizes with two prices from the same day, of which the dearer was taken.
    pub contested: BTreeSet<String>,
    /// Priced sizes that look like ones with a GPU and are not in `azure_sizes.toml`.
    pub unknown_sizes: BTreeSet<String>,
    /// Meters of services; none if only sizes were asked for.
    pub meters: Option<MetersDone>,
}

/// One region of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RegionLine {
    /// Its name.
    pub region: String,
    /// How many sizes asked for have a price there.
    pub sizes: usize,
    /// How many meters of services.
    pub meters: usize,
    /// Pages that were read.
    pub pages: u32,
    /// Whether an earlier run had read it.
    pub resumed: bool,
}

/// What was written.
pub(crate) struct Written {
    pub(crate) table: Option<PathBuf>,
    pub(crate) rows: usize,
    pub(crate) changes: Changes,
    pub(crate) meters: Option<MetersDone>,
}

/// Puts a report together.
pub(crate) fn report(
    request: &Request,
    run: &Run,
    regions: &[String],
    resumed: &BTreeSet<String>,
    written: Written,
) -> Report {
    let asked = || run.regions.iter().filter(|region| regions.contains(&region.region));
    let named = |of: fn(&RegionPrices) -> &BTreeSet<String>| asked().flat_map(of).cloned().collect();
    let mut left_out = BTreeMap::new();
    for (reason, count) in asked().flat_map(|region| &region.left_out) {
        *left_out.entry(*reason).or_default() += count;
    }
    let mut lines: Vec<RegionLine> = asked()
        .map(|region| RegionLine {
            region: region.region.clone(),
            sizes: region.sizes.len(),
            meters: region.meters.len(),
            pages: region.pages,
            resumed: resumed.contains(&region.region),
        })
        .collect();
    lines.sort_by(|one, other| one.region.cmp(&other.region));
    Report {
        table: written.table,
        endpoint: request.endpoint.to_string(),
        day: request.today,
        regions: lines,
        rows: written.rows,
        changes: written.changes,
        left_out,
        rounded: named(|region| &region.rounded),
        contested: named(|region| &region.contested),
        unknown_sizes: named(|region| &region.unknown),
        meters: written.meters,
    }
}
