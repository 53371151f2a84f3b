//! The environment variables that this crate reads, besides `SSL_CERT_FILE` and those of proxies.

use std::path::{Path, PathBuf};

use cudock_base::Environment;
use cudock_http::trusted_certificates;

use crate::fetch::Connection;

/// The URL of the price list, like `--endpoint`.
pub const CUDOCK_PRICES_URL: &str = "CUDOCK_PRICES_URL";

/// The user's directory of overlay tables: `cudock/facts` in the configuration directory.
pub fn user_directory(environment: &Environment) -> Option<PathBuf> {
    Some(environment.config_home()?.join("cudock").join("facts"))
}

/// The directory of overlay tables: the given one, or that of the user if it contains tables.
pub fn tables_directory(given: Option<&Path>) -> Option<PathBuf> {
    match given {
        Some(directory) => Some(directory.to_owned()),
        None => user_directory(&Environment::of_process()).filter(|directory| has_tables(directory)),
    }
}

/// Whether a directory contains tables; after a failed refresh it may not.
fn has_tables(directory: &Path) -> bool {
    let is_table = |path: PathBuf| path.extension().is_some_and(|end| end == "toml" || end == "csv");
    std::fs::read_dir(directory).is_ok_and(|entries| entries.flatten().any(|entry| is_table(entry.path())))
}

impl Connection {
    /// A connection that trusts the certificates named by the environment or the system.
    pub fn from_environment(environment: &Environment) -> Self {
        Self { certificates: trusted_certificates(environment), ..Self::default() }
    }
}
