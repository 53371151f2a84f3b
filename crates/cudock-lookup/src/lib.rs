//! Looks up entries of the fact tables for `cudock facts`.
//!
//! Each function looks up one kind of entry and returns a [`LookupResult`]: rows as JSON, and a sheet or a list as text.
//! Without a name it lists all entries.

mod azure;
mod cuda;
mod framework;
mod image;
mod package;
mod result;
pub mod rows;

pub use azure::{SizeQuery, known_region, service, size, storage};
pub use cuda::{arch, driver, gpu, toolkit};
pub use framework::{jax, onnxruntime, tensorflow, tensorrt, torch, torchvision};
pub use image::image;
pub use package::package;
pub use result::{List, LookupResult, Sheet, View};

use cudock_facts::Facts;
use cudock_facts::version::Date;

/// Lists the tables.
pub fn tables(facts: &Facts, today: Date) -> LookupResult {
    let tables = facts.tables();
    let rows = tables.iter().map(|table| {
        let age = today.days_since(table.as_of);
        let overlay =
            table.overlay.as_ref().map_or_else(|| "embedded".to_owned(), |path| path.display().to_string());
        vec![
            table.name.to_owned(),
            table.rows.to_string(),
            table.sources.to_string(),
            table.as_of.to_string(),
            format!("{age} {}", if age == 1 { "day" } else { "days" }),
            overlay,
        ]
    });
    let columns = vec!["table", "rows", "sources", "as of", "age", "from"];
    let list = List { columns, rows: rows.collect() };
    LookupResult {
        tables: tables.iter().map(|table| table.name).collect(),
        rows: tables.iter().map(result::value).collect(),
        view: View::List(list),
    }
}
