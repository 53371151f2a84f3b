//! `cudock prices`.

use clap::{Args, Subcommand};
use cudock_prices::env;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cudock prices
  cudock prices refresh
  cudock prices refresh --region westeurope --region northeurope
  cudock prices refresh --size Standard_NC4as_T4_v3 --region eastus
  cudock prices refresh --endpoint https://mirror.example/api/retail/prices
  cudock --facts ./facts prices refresh --format json")]
pub struct PricesArgs {
    #[command(subcommand)]
    pub what: Option<PricesVerb>,
}

#[derive(Debug, Subcommand)]
pub enum PricesVerb {
    /// Read the public price list into an overlay of the embedded prices
    ///
    /// Re-run the same command to resume an interrupted run, today or tomorrow.
    Refresh(RefreshArgs),
}

#[derive(Debug, Args)]
pub struct RefreshArgs {
    /// Refresh only this region (repeatable)
    #[arg(long, value_name = "REGION")]
    pub region: Vec<String>,

    /// Refresh only this size (repeatable)
    #[arg(long, value_name = "SIZE")]
    pub size: Vec<String>,

    /// Request this currency; the tables are in US dollars
    #[arg(long, value_name = "CODE", value_parser = ["USD"], default_value = "USD", hide_default_value = true)]
    pub currency: String,

    /// Read the list from this URL, such as a mirror
    #[arg(long, value_name = "URL", env = env::CUDOCK_PRICES_URL)]
    pub endpoint: Option<String>,
}
