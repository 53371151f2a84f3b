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

use self::result::cells;
use crate::Facts;
use crate::version::Date;

pub fn tables(facts: &Facts, today: Date) -> LookupResult {
    let tables = facts.tables();
    let names: Vec<&str> = tables.iter().map(|table| table.name).collect();
    let columns = ["table", "rows", "sources", "as of", "age", "from"];
    LookupResult::list(&names, &tables, &columns, |table| {
        let age = today.days_since(table.as_of);
        let age = format!("{age} {}", if age == 1 { "day" } else { "days" });
        let from = table.overlay.as_ref().map_or_else(|| "embedded".into(), |path| path.to_string_lossy());
        cells(&[&table.name, &table.rows, &table.sources, &table.as_of, &age, &from])
    })
}
