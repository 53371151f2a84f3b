//! `cudock prices`: shows the age of the prices, and refreshes them.

mod refresh;
mod status;

use std::path::{Path, PathBuf};

use cudock_base::Environment;
use cudock_cli::{PricesArgs, PricesVerb};
use cudock_facts::Facts;
use cudock_prices::{PricesError, env};

pub(super) use self::refresh::RefreshOutput;
pub(super) use self::status::StatusReport;
use crate::failure::{Failure, Outcome};
use crate::output::Format;

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
