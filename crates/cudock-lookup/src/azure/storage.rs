//! Azure's storage.

use cudock_base::{UsageError, suggest};
use cudock_facts::Facts;
use serde_json::json;

use crate::answer::{Answer, List, Sheet, View, value, word};

/// Kinds of storage, or one of them with its prices and limits.
pub fn storage(facts: &Facts, name: Option<&str>) -> Result<Answer, UsageError> {
    let storage = facts.storage();
    let tables = vec!["azure_storage"];
    let Some(name) = name else {
        let rows = storage.storage.iter().map(|row| {
            let text = |item: Option<String>| item.unwrap_or_else(|| "-".to_owned());
            vec![
                row.id.clone(),
                row.name.clone(),
                word(&row.kind),
                text(row.max_mbps.map(|mbps| format!("{mbps} MB/s"))),
                text(row.max_iops.map(|iops| iops.to_string())),
            ]
        });
        let list =
            List { columns: vec!["storage", "name", "kind", "throughput", "IOPS"], rows: rows.collect() };
        return Ok(Answer {
            tables,
            rows: storage.storage.iter().map(value).collect(),
            view: View::List(list),
        });
    };
    let row = storage.storage.iter().find(|row| row.id.eq_ignore_ascii_case(name)).ok_or_else(|| {
        let near = suggest::nearest(name, storage.storage.iter().map(|row| row.id.as_str()));
        UsageError::new(format!("no storage is called `{name}`"))
            .near(&near)
            .hint("`cudock facts storage` lists them")
    })?;
    let prices: Vec<_> = storage.price.iter().filter(|price| price.storage == row.id).collect();
    let limits: Vec<_> = storage.limit.iter().filter(|limit| limit.storage == row.id).collect();
    let sheet = Sheet::new(format!("{} ({})", row.name, row.id))
        .field("kind", word(&row.kind))
        .maybe("capacity", row.max_gib.map(|gib| format!("{gib} GiB")))
        .maybe("throughput", row.max_mbps.map(|mbps| format!("{mbps} MB/s")))
        .maybe("IOPS", row.max_iops)
        .field(
            "USD",
            prices
                .iter()
                .map(|price| format!("{} {} ({}, {})", price.meter, price.usd, price.region, price.as_of))
                .collect::<Vec<_>>()
                .join("\n"),
        )
        .field(
            "limits",
            limits
                .iter()
                .map(|limit| format!("{}: {}", limit.key, limit.value))
                .collect::<Vec<_>>()
                .join("\n"),
        )
        .maybe("note", row.note.as_ref())
        .sources(storage.table.resolve(&row.source));
    Ok(Answer {
        tables,
        rows: vec![json!({ "storage": row, "prices": prices, "limits": limits })],
        view: View::Sheets(vec![sheet]),
    })
}
