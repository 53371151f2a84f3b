//! Looks up Azure storage.

use cudock_base::UsageError;

use crate::Facts;
use crate::sheets::result::{LookupResult, Sheet, by_id, cells, enum_name, lines, or_dash};
use crate::sheets::rows::StorageRow;

const TABLES: [&str; 1] = ["azure_storage"];

/// Kinds of storage, or one of them with its prices and limits.
pub fn storage(facts: &Facts, name: Option<&str>) -> Result<LookupResult, UsageError> {
    let storage = facts.storage();
    let Some(name) = name else {
        let columns = ["storage", "name", "kind", "throughput", "IOPS"];
        return Ok(LookupResult::list(&TABLES, &storage.storage, &columns, |row| {
            let throughput = or_dash(row.max_mbps.map(|mbps| format!("{mbps} MB/s")));
            cells(&[&row.id, &row.name, &enum_name(&row.kind), &throughput, &or_dash(row.max_iops)])
        }));
    };
    let row = by_id(&storage.storage, |row| &row.id, "storage", name)?;
    let prices: Vec<_> = storage.price.iter().filter(|price| price.storage == row.id).collect();
    let limits: Vec<_> = storage.limit.iter().filter(|limit| limit.storage == row.id).collect();
    let usd = prices
        .iter()
        .map(|price| format!("{} {} ({}, {})", price.meter, price.usd, price.region, price.as_of));
    let limit_lines = limits.iter().map(|limit| format!("{}: {}", limit.key, limit.value));
    let sheet = Sheet::new(format!("{} ({})", row.name, row.id))
        .field("kind", enum_name(&row.kind))
        .maybe("capacity", row.max_gib.map(|gib| format!("{gib} GiB")))
        .maybe("throughput", row.max_mbps.map(|mbps| format!("{mbps} MB/s")))
        .maybe("IOPS", row.max_iops)
        .field("USD", lines(usd))
        .field("limits", lines(limit_lines))
        .maybe("note", row.note.as_ref())
        .sources(storage.table.resolve(&row.source));
    Ok(LookupResult::sheet(&TABLES, &StorageRow { storage: row, prices, limits }, sheet))
}
