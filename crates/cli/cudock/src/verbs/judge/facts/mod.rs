//! `cudock facts`: looks up rows of the tables.

mod text;

use cudock_cli::{FactKind, FactsArgs};
use cudock_facts::Facts;
use cudock_facts::sheets::rows::FactRow;
use cudock_facts::sheets::{SizeQuery, arch, driver, gpu, image, package, service, storage, toolkit};
use cudock_facts::sheets::{jax, onnxruntime, tables, tensorflow, tensorrt, torch, torchvision};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::failure::{Failure, Outcome};
use crate::output::{self, Format, TableUsed};

#[derive(Serialize, JsonSchema)]
pub(crate) struct FactsReport<'a> {
    schema: u8,
    kind: &'a str,
    query: Option<&'a str>,
    #[schemars(with = "Vec<FactRow>")]
    rows: &'a [Value],
    tables: &'a [TableUsed],
}

pub(crate) fn run(
    facts: &Facts,
    args: &FactsArgs,
    format: Format,
    is_verbose: bool,
) -> Result<Outcome, Failure> {
    let name = args.name.as_deref();
    let of_sizes = args.gpu.is_some() || args.region.is_some() || args.all || args.lifecycle || args.prices;
    if args.kind != Some(FactKind::Size) && of_sizes {
        return Err(Failure::input("--gpu, --region, --all, --lifecycle and --prices require `size`")
            .hint("cudock facts size --gpu A100 --region westeurope"));
    }
    let today = output::today();
    let sizes = SizeQuery {
        name,
        gpu: args.gpu.as_deref(),
        region: args.region.as_deref(),
        all: args.all,
        lifecycle: args.lifecycle,
        prices: args.prices,
        today,
    };
    let (kind, answer) = match args.kind {
        None => ("tables", tables(facts, today)),
        Some(FactKind::Gpu) => ("gpu", gpu(facts, name, today)?),
        Some(FactKind::Driver) => ("driver", driver(facts, name, today)?),
        Some(FactKind::Cuda) => ("cuda", toolkit(facts, name)?),
        Some(FactKind::Arch) => ("arch", arch(facts, name)?),
        Some(FactKind::Image) => ("image", image(facts, name)?),
        Some(FactKind::Torch) => ("torch", torch(facts, name)?),
        Some(FactKind::Torchvision) => ("torchvision", torchvision(facts, name)?),
        Some(FactKind::Tensorflow) => ("tensorflow", tensorflow(facts, name)?),
        Some(FactKind::Onnxruntime) => ("onnxruntime", onnxruntime(facts, name)?),
        Some(FactKind::Jax) => ("jax", jax(facts, name)?),
        Some(FactKind::Tensorrt) => ("tensorrt", tensorrt(facts, name)?),
        Some(FactKind::Package) => ("package", package(facts, name)?),
        Some(FactKind::Size) => ("size", cudock_facts::sheets::size(facts, &sizes)?),
        Some(FactKind::Service) => ("service", service(facts, name)?),
        Some(FactKind::Storage) => ("storage", storage(facts, name)?),
    };
    let tables = output::tables_used(facts, &answer.tables);
    match format {
        Format::Json => {
            output::json(&FactsReport { schema: 1, kind, query: name, rows: &answer.rows, tables: &tables });
        }
        Format::Text => text::print(answer.view, is_verbose),
    }
    output::warn_if_stale(&tables);
    Ok(Outcome::Yes)
}
