//! `cudock prices`: shows the age of the prices, and refreshes them.

mod refresh;
mod status;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use cudock_base::Environment;
use cudock_facts::Facts;
use cudock_prices::{PricesError, env};

pub(super) use self::refresh::RefreshOutput;
pub(super) use self::status::StatusReport;
use crate::failure::{Failure, Outcome};
use crate::output::Format;

/// Show how old the prices of Azure's sizes are, or refresh them
///
/// Newer prices come from Azure's public price list, which needs no login, and go into an overlay of the embedded table:
/// in --facts DIR, or else in cudock/facts in your configuration directory. See docs/prices.md.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cudock prices
  cudock prices refresh
  cudock prices refresh --region westeurope --region northeurope
  cudock prices refresh --size Standard_NC4as_T4_v3 --region eastus
  cudock prices refresh --endpoint https://mirror.example/api/retail/prices
  cudock --facts ./facts prices refresh --format json")]
pub(crate) struct PricesArgs {
    #[command(subcommand)]
    pub(crate) what: Option<PricesVerb>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PricesVerb {
    /// Read the public price list into an overlay of the embedded prices
    ///
    /// Re-run the same command to resume an interrupted run, today or tomorrow.
    Refresh(RefreshArgs),
}

#[derive(Debug, Args)]
pub(crate) struct RefreshArgs {
    /// Refresh only this region (repeatable)
    #[arg(long, value_name = "REGION")]
    pub(crate) region: Vec<String>,

    /// Refresh only this size (repeatable)
    #[arg(long, value_name = "SIZE")]
    pub(crate) size: Vec<String>,

    /// Request this currency; the tables are in US dollars
    #[arg(long, value_name = "CODE", value_parser = ["USD"], default_value = "USD", hide_default_value = true)]
    pub(crate) currency: String,

    /// Read the list from this URL, such as a mirror
    #[arg(long, value_name = "URL", env = env::CUDOCK_PRICES_URL)]
    pub(crate) endpoint: Option<String>,
}

pub(super) fn run(directory: Option<&Path>, args: &PricesArgs, format: Format) -> Result<Outcome, Failure> {
    match &args.what {
        None => status::run(directory, format),
        Some(PricesVerb::Refresh(args)) => refresh::run(directory, args, format),
    }
}

/// The tables with the overlay of `--facts`, or else that of the user, if there is one.
pub(super) fn tables(given: Option<&Path>) -> Result<Facts, Failure> {
    let Some(directory) = env::tables_directory(given) else { return Ok(Facts::embedded()) };
    Facts::with_overlay(&directory).map_err(|error| {
        let failure = Failure::from(error);
        if given.is_some() {
            return failure;
        }
        failure.hint(format!("tables in {} are used unless --facts names others", directory.display()))
    })
}

fn user_directory() -> Option<PathBuf> {
    env::user_directory(&Environment::of_process())
}

/// The directory of the overlay, which may not exist yet.
fn directory(given: Option<&Path>) -> Result<PathBuf, Failure> {
    Ok(given.map(Path::to_owned).or_else(user_directory).ok_or(PricesError::NoDirectory)?)
}
