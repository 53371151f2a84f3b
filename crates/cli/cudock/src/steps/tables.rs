//! The fact tables, with the overlay of the user.

use std::path::{Path, PathBuf};

use cudock_base::Environment;
use cudock_facts::Facts;
use cudock_prices::{PricesError, env};

use crate::failure::Failure;

/// The tables with the overlay of `--facts`, or else that of the user, if there is one.
pub(crate) fn tables(given: Option<&Path>) -> Result<Facts, Failure> {
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
pub(crate) fn directory(given: Option<&Path>) -> Result<PathBuf, Failure> {
    Ok(given.map(Path::to_owned).or_else(user_directory).ok_or(PricesError::NoDirectory)?)
}
