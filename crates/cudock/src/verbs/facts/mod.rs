//! `cudock facts`: looks things up in the tables.

mod azure;
mod cuda;
mod framework;
mod image;
mod package;
mod sheet;

use cudock_facts::Facts;
use serde::Serialize;
use serde_json::Value;

pub(crate) use self::azure::known_region;
use self::sheet::{Answer, List, View, value};
use crate::cli::{FactsArgs, Kind};
use crate::failure::{Failure, Outcome};
use crate::output::{self, Format, TableUsed};

#[derive(Serialize)]
struct Report<'a> {
    schema: u8,
    kind: &'a str,
    query: Option<&'a str>,
    rows: &'a [Value],
    tables: &'a [TableUsed],
}

pub(super) fn run(facts: &Facts, args: &FactsArgs, format: Format) -> Result<Outcome, Failure> {
    let name = args.name.as_deref();
    let of_sizes = args.gpu.is_some() || args.region.is_some() || args.all || args.lifecycle || args.prices;
    if args.kind != Some(Kind::Size) && of_sizes {
        return Err(Failure::input("--gpu, --region, --all, --lifecycle and --prices go with `size`")
            .hint("cudock facts size --gpu A100 --region westeurope"));
    }
    let (kind, answer) = match args.kind {
        None => ("tables", tables(facts)),
        Some(Kind::Gpu) => ("gpu", cuda::gpu(facts, name)?),
        Some(Kind::Driver) => ("driver", cuda::driver(facts, name)?),
        Some(Kind::Cuda) => ("cuda", cuda::toolkit(facts, name)?),
        Some(Kind::Arch) => ("arch", cuda::arch(facts, name)?),
        Some(Kind::Image) => ("image", image::image(facts, name)?),
        Some(Kind::Torch) => ("torch", framework::torch(facts, name)?),
        Some(Kind::Torchvision) => ("torchvision", framework::torchvision(facts, name)?),
        Some(Kind::Tensorflow) => ("tensorflow", framework::tensorflow(facts, name)?),
        Some(Kind::Onnxruntime) => ("onnxruntime", framework::onnxruntime(facts, name)?),
        Some(Kind::Jax) => ("jax", framework::jax(facts, name)?),
        Some(Kind::Tensorrt) => ("tensorrt", framework::tensorrt(facts, name)?),
        Some(Kind::Package) => ("package", package::package(facts, name)?),
        Some(Kind::Size) => ("size", azure::size(facts, args)?),
        Some(Kind::Service) => ("service", azure::service(facts, name)?),
        Some(Kind::Storage) => ("storage", azure::storage(facts, name)?),
    };
    let tables = output::tables_used(facts, &answer.tables);
    match format {
        Format::Json | Format::Sarif => {
            output::json(&Report { schema: 1, kind, query: name, rows: &answer.rows, tables: &tables });
        }
        Format::Text => answer.view.print(args.verbose),
    }
    output::warn_if_stale(&tables);
    Ok(Outcome::Yes)
}

/// The tables themselves.
fn tables(facts: &Facts) -> Answer {
    let tables = facts.tables();
    let rows = tables.iter().map(|table| {
        let age = output::today().days_since(table.as_of);
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
    let rows = List { columns, rows: rows.collect() };
    Answer {
        tables: tables.iter().map(|table| table.name).collect(),
        rows: tables.iter().map(value).collect(),
        view: View::List(rows),
    }
}
