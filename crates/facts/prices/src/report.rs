//! The report of a refresh.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use cudock_facts::version::Date;
use schemars::JsonSchema;
use serde::Serialize;

use crate::journal::Run;
use crate::meters::file::MeterChanges;
use crate::region::RegionPrices;
use crate::request::RefreshRequest;
use crate::rules::SkipReason;
use crate::table::Changes;

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct RefreshReport {
    /// The table; none if no region had a price, and nothing was written.
    pub table: Option<PathBuf>,
    pub endpoint: String,
    pub day: Date,
    pub regions: Vec<RegionSummary>,
    /// How many rows the table has now.
    pub rows: usize,
    pub changes: Changes,
    /// Rows of the list that were skipped, by reason.
    pub left_out: BTreeMap<SkipReason, u64>,
    /// Sizes whose price had more than six decimals and was rounded half up.
    pub rounded: BTreeSet<String>,
    /// Sizes with two prices of the same start date, of which the higher was used.
    pub contested: BTreeSet<String>,
    /// Sizes that look like GPU sizes and are not in `azure_sizes.toml`.
    pub unknown_sizes: BTreeSet<String>,
    /// Meters of services; none if only sizes were requested.
    pub meters: Option<MeterChanges>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RegionSummary {
    pub region: String,
    /// How many of the requested sizes have a price there.
    pub sizes: usize,
    pub meters: usize,
    pub pages: u32,
    /// Whether an earlier run had read it.
    pub resumed: bool,
}

pub(crate) struct Written {
    pub(crate) table: Option<PathBuf>,
    pub(crate) rows: usize,
    pub(crate) changes: Changes,
    pub(crate) meters: Option<MeterChanges>,
}

pub(crate) fn report(
    request: &RefreshRequest,
    run: &Run,
    regions: &[String],
    resumed: &BTreeSet<String>,
    written: Written,
) -> RefreshReport {
    let requested = || run.regions.iter().filter(|region| regions.contains(&region.region));
    let named = |of: fn(&RegionPrices) -> &BTreeSet<String>| requested().flat_map(of).cloned().collect();
    let mut left_out = BTreeMap::new();
    for (reason, count) in requested().flat_map(|region| &region.left_out) {
        *left_out.entry(*reason).or_default() += count;
    }
    let mut lines: Vec<RegionSummary> = requested()
        .map(|region| RegionSummary {
            region: region.region.clone(),
            sizes: region.sizes.len(),
            meters: region.meters.len(),
            pages: region.pages,
            resumed: resumed.contains(&region.region),
        })
        .collect();
    lines.sort_by(|one, other| one.region.cmp(&other.region));
    RefreshReport {
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
