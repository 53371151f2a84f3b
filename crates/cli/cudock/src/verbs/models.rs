//! `cudock models`: the models of a running server.

use clap::{Args, Subcommand};
use cudock_base::text::table::TextTable;
use cudock_loadgen::{ModelRepository, ModelsReport};

use super::bench::failure;
use crate::failure::{Failure, Outcome};
use crate::output::{self, Format};

/// List, load and unload the models of a running `cudock serve`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cudock models
  cudock models load resnet50 --url http://gpu-1:8000
  cudock models unload resnet50 --header 'Authorization: Bearer KEY'")]
pub(crate) struct ModelsArgs {
    #[command(subcommand)]
    verb: Option<ModelsVerb>,

    /// Use this server
    #[arg(long, global = true, value_name = "URL", default_value = "http://localhost:8000")]
    url: String,

    /// Add a header to every request, as 'Name: value' (repeatable)
    #[arg(long, global = true, value_name = "HEADER")]
    header: Vec<String>,
}

#[derive(Debug, Subcommand)]
enum ModelsVerb {
    /// List all models (the default)
    List,
    /// Load a model, or reload it from its file
    Load { name: String },
    /// Unload a model and free its memory
    Unload { name: String },
}

pub(super) fn run(args: &ModelsArgs, format: Format) -> Result<Outcome, Failure> {
    let mut server = ModelRepository::connect(&args.url, &args.header).map_err(|error| failure(&error))?;
    let report = match &args.verb {
        None | Some(ModelsVerb::List) => server.list(),
        Some(ModelsVerb::Load { name }) => server.load(name),
        Some(ModelsVerb::Unload { name }) => server.unload(name),
    };
    let report = report.map_err(|error| failure(&error))?;
    match format {
        Format::Json => output::json(&report),
        Format::Text => output::table(&TextTable::list(&ModelsReport::TITLES, report.rows())),
    }
    Ok(Outcome::Yes)
}
