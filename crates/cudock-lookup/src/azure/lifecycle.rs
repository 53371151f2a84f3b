//! Sizes by the day of their end.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use cudock_facts::tables::{Lifecycle, Size};
use cudock_facts::version::Date;
use serde::Serialize;

use super::size::{TABLES, gpu_text, or_dash};
use crate::answer::{Answer, List, View, value, word};

/// Where a size stands in its life, in the order of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Stage {
    Ended,
    Ending,
    OnSale,
    /// A preview, or announced.
    Preview,
    Undocumented,
}

#[derive(Serialize)]
struct Row<'a> {
    size: &'a str,
    series: Option<&'a str>,
    gpu: String,
    stage: Stage,
    ends: Option<Date>,
    /// Where it ends on another day.
    ends_by_region: &'a BTreeMap<String, Date>,
    replacement: Option<&'a str>,
}

/// What became of the sizes on a day, in a region if one is meant. Those that only have a price are left out unless
/// `undocumented` says otherwise.
pub(super) fn answer(sizes: &[&Size], region: Option<&str>, undocumented: bool, day: Date) -> Answer {
    let mut rows: Vec<Row<'_>> = sizes.iter().map(|size| row(size, region, day)).collect();
    rows.retain(|row| undocumented || row.stage != Stage::Undocumented);
    rows.sort_by_key(|row| (row.stage, row.ends, row.size));
    let columns = vec!["size", "GPU", "stage", "ends", "elsewhere", "instead"];
    let cells = |row: &Row<'_>| {
        vec![
            row.size.to_owned(),
            row.gpu.clone(),
            word(&row.stage),
            or_dash(row.ends.map(|end| end.to_string())),
            or_dash(longest(row, region)),
            or_dash(row.replacement.map(str::to_owned)),
        ]
    };
    let list = List { columns, rows: rows.iter().map(cells).collect() };
    Answer { tables: TABLES.to_vec(), rows: rows.iter().map(value).collect(), view: View::List(list) }
}

/// Where else a size is kept longest, and in how many regions more it has a day of its own.
fn longest(row: &Row<'_>, region: Option<&str>) -> Option<String> {
    let elsewhere = || row.ends_by_region.iter().filter(|(place, _)| Some(place.as_str()) != region);
    let (place, end) = elsewhere().max_by_key(|(place, end)| (**end, Reverse(*place)))?;
    let more = elsewhere().count() - 1;
    let more = if more > 0 { format!(" +{more}") } else { String::new() };
    Some(format!("{place} {end}{more}"))
}

fn row<'a>(size: &'a Size, region: Option<&str>, day: Date) -> Row<'a> {
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
    Row {
        size: &size.name,
        series: size.series.as_deref(),
        gpu: gpu_text(size),
        stage,
        ends,
        ends_by_region: &size.retired_on_by_region,
        replacement: size.replacement.as_deref(),
    }
}
