//! Looks up Azure storage.

use cudock_base::{UsageError, suggest};
use cudock_facts::Facts;

use crate::result::{LookupResult, Sheet, enum_name, or_dash};
use crate::rows::StorageRow;

const TABLES: [&str; 1] = ["azure_storage"];

/// Kinds of storage, or one of them with its prices and limits.
pub fn storage(facts: &Facts, name: Option<&str>) -> Result<LookupResult, UsageError> {
    let storage = facts.storage();
    let Some(name) = name else {
        let columns = ["storage", "name", "kind", "throughput", "IOPS"];
        return Ok(LookupResult::list(&TABLES, &storage.storage, &columns, |row| {
            vec![
                row.id.clone(),
                row.name.clone(),
                enum_name(&row.kind),
                or_dash(row.max_mbps.map(|mbps| format!("{mbps} MB/s"))),
                or_dash(row.max_iops),
            ]
        }));
    };
    let row = storage.storage.iter().find(|row| row.id.eq_ignore_ascii_case(name)).ok_or_else(|| {
        let near = suggest::nearest(name, storage.storage.iter().map(|row| row.id.as_str()));
        UsageError::new(format!("unknown storage `{name}`"))
            .near(&near)
            .hint("`cudock facts storage` lists them")
    })?;
    let prices: Vec<_> = storage.price.iter().filter(|price| price.storage == row.id).collect();
    let limits: Vec<_> = storage.limit.iter().filter(|limit| limit.storage == row.id).collect();
    let usd = prices
        .iter()
        .map(|price| format!("{} {} ({}, {})", price.meter, price.usd, price.region, price.as_of));
    let usd: Vec<String> = usd.collect();
    let limit_lines: Vec<String> =
        limits.iter().map(|limit| format!("{}: {}", limit.key, limit.value)).collect();
    let sheet = Sheet::new(format!("{} ({})", row.name, row.id))
        .field("kind", enum_name(&row.kind))
        .maybe("capacity", row.max_gib.map(|gib| format!("{gib} GiB")))
        .maybe("throughput", row.max_mbps.map(|mbps| format!("{mbps} MB/s")))
        .maybe("IOPS", row.max_iops)
        .field("USD", usd.join("\n"))
        .field("limits", limit_lines.join("\n"))
        .maybe("note", row.note.as_ref())
        .sources(storage.table.resolve(&row.source));
    Ok(LookupResult::sheet(&TABLES, &StorageRow { storage: row, prices, limits }, sheet))
}
