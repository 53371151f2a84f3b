//! What the fact tables say about one thing: the answers of `cudock facts`.
//!
//! Each function looks up one kind of thing and returns an [`Answer`]: rows for programs, and a sheet or a list for people.
//! Without a name it lists all of them.

mod answer;
mod azure;
mod cuda;
mod framework;
mod image;
mod package;

pub use answer::{Answer, List, Sheet, View};
pub use azure::{SizeQuery, known_region, service, size, storage};
pub use cuda::{arch, driver, gpu, toolkit};
pub use framework::{jax, onnxruntime, tensorflow, tensorrt, torch, torchvision};
pub use image::image;
pub use package::package;

use cudock_facts::Facts;
use cudock_facts::version::Date;

/// The tables themselves.
pub fn tables(facts: &Facts, today: Date) -> Answer {
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
            format!("{age} days"),
            overlay,
        ]
    });
    let columns = vec!["table", "rows", "sources", "as of", "age", "from"];
    let list = List { columns, rows: rows.collect() };
    Answer {
        tables: tables.iter().map(|table| table.name).collect(),
        rows: tables.iter().map(answer::value).collect(),
        view: View::List(list),
    }
}
