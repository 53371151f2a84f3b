//! Sizes by retirement date.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::fields::{TABLES, gpu_text};
use crate::sheets::result::{LookupResult, cells, enum_name, or_dash};
use crate::tables::{Lifecycle, Size};
use crate::version::Date;

/// The stage in the life cycle of a size, in the order of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Stage {
    Ended,
    Ending,
    OnSale,
    /// A preview, or announced.
    Preview,
    Undocumented,
}

/// A size and when it ends.
#[derive(Serialize, JsonSchema)]
pub struct LifecycleRow<'a> {
    size: &'a str,
    series: Option<&'a str>,
    gpu: String,
    stage: Stage,
    ends: Option<Date>,
    /// Where it ends on another day.
    ends_by_region: &'a BTreeMap<String, Date>,
    replacement: Option<&'a str>,
}

/// Lists the stage of sizes on a day, in a region if one is given. Undocumented sizes are left out unless `undocumented`
/// is set.
pub(super) fn result(sizes: &[&Size], region: Option<&str>, undocumented: bool, day: Date) -> LookupResult {
    let mut rows: Vec<LifecycleRow<'_>> = sizes.iter().map(|size| row(size, region, day)).collect();
    rows.retain(|row| undocumented || row.stage != Stage::Undocumented);
    rows.sort_by_key(|row| (row.stage, row.ends, row.size));
    let columns = ["size", "GPU", "status", "retires", "other regions", "replacement"];
    LookupResult::list(&TABLES, &rows, &columns, |row| {
        let (stage, ends, elsewhere) =
            (enum_name(&row.stage), or_dash(row.ends), or_dash(longest(row, region)));
        cells(&[&row.size, &row.gpu, &stage, &ends, &elsewhere, &or_dash(row.replacement)])
    })
}

/// The other region that keeps a size longest, and how many more have a date of their own.
fn longest(row: &LifecycleRow<'_>, region: Option<&str>) -> Option<String> {
    let elsewhere = || row.ends_by_region.iter().filter(|(name, _)| Some(name.as_str()) != region);
    let (name, end) = elsewhere().max_by_key(|(name, end)| (**end, Reverse(*name)))?;
    let more = elsewhere().count() - 1;
    let more = if more > 0 { format!(" +{more}") } else { String::new() };
    Some(format!("{name} {end}{more}"))
}

fn row<'a>(size: &'a Size, region: Option<&str>, day: Date) -> LifecycleRow<'a> {
    let here = region.and_then(|region| size.retired_on_by_region.get(region)).copied();
    let ends = here.or(size.retired_on).or(size.retires_on);
    let stage = match (size.lifecycle, ends) {
        (Lifecycle::Unknown, _) => Stage::Undocumented,
        (Lifecycle::Retired | Lifecycle::PreviewEnded, None) => Stage::Ended,
        (_, Some(end)) if end <= day => Stage::Ended,
        (_, Some(_)) => Stage::Ending,
        (Lifecycle::Preview | Lifecycle::Announced, None) => Stage::Preview,
        (Lifecycle::Available, None) => Stage::OnSale,
    };
    LifecycleRow {
        size: &size.name,
        series: size.series.as_deref(),
        gpu: gpu_text(size),
        stage,
        ends,
        ends_by_region: &size.retired_on_by_region,
        replacement: size.replacement.as_deref(),
    }
}
