//! `cudock prices`: how old the prices are, and newer ones.

mod refresh;
mod status;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use cudock_base::Environment;
use cudock_facts::Facts;
use cudock_prices::{PricesError, env};

use crate::failure::{Failure, Outcome};
use crate::output::Format;

/// Tell how old the prices of Azure's sizes are, or renew them
///
/// Newer prices come from Azure's public price list, which needs no sign-in, and go into a table that is laid over the
/// embedded one: in --facts DIR, else in cudock/facts in your configuration directory. See docs/prices.md.
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
    /// Read the public price list and write what it says over the embedded prices
    ///
    /// Re-run the same command to resume an interrupted run, today or tomorrow.
    Refresh(RefreshArgs),
}

#[derive(Debug, Args)]
pub(crate) struct RefreshArgs {
    /// Only this region; may be given several times
    #[arg(long, value_name = "REGION")]
    pub(crate) region: Vec<String>,

    /// Only this size; may be given several times
    #[arg(long, value_name = "SIZE")]
    pub(crate) size: Vec<String>,

    /// The currency; the list converts to others for orientation only, and the tables are in US dollars
    #[arg(long, value_name = "CODE", value_parser = ["USD"], default_value = "USD", hide_default_value = true)]
    pub(crate) currency: String,

    /// The list's address, for mirrors
    #[arg(long, value_name = "URL", env = env::CUDOCK_PRICES_URL)]
    pub(crate) endpoint: Option<String>,
}

/// Runs with the folder that `--facts` names.
pub(super) fn run(folder: Option<&Path>, words: &PricesArgs, format: Format) -> Result<Outcome, Failure> {
    match &words.what {
        None => status::run(folder, format),
        Some(PricesVerb::Refresh(words)) => refresh::run(folder, words, format),
    }
}

/// The tables with those of the folder that `--facts` names, else with those of the user's own folder, if it has
/// any.
pub(super) fn tables(given: Option<&Path>) -> Result<Facts, Failure> {
    let Some(directory) = env::tables_directory(given) else { return Ok(Facts::embedded()) };
    Facts::with_overlay(&directory).map_err(|error| {
        let failure = Failure::from(error);
        if given.is_some() {
            return failure;
        }
        failure.hint(format!("tables in {} are used wherever --facts names no others", directory.display()))
    })
}

fn user_directory() -> Option<PathBuf> {
    env::user_directory(&Environment::of_process())
}

/// Where newer tables are, or would be.
fn folder(given: Option<&Path>) -> Result<PathBuf, Failure> {
    Ok(given.map(Path::to_owned).or_else(user_directory).ok_or(PricesError::NoDirectory)?)
}

fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}
