//! The variables this crate reads, besides those of `cudock_registry::env`. Those of proxies (`HTTPS_PROXY`,
//! `NO_PROXY`, …) are read by the HTTP library.

use std::path::PathBuf;

use cudock_registry::Environment;
use cudock_registry::parts::trusted_certificates;

use crate::fetch::Connection;

/// The address of the price list, as `--endpoint`.
pub const CUDOCK_PRICES_URL: &str = "CUDOCK_PRICES_URL";

/// The environment of this process.
pub fn of_process() -> Environment {
    Environment::of_process_with(&[CUDOCK_PRICES_URL])
}

/// The user's own folder of newer tables: `cudock/facts` in the folder of configurations.
pub fn users_folder(environment: &Environment) -> Option<PathBuf> {
    Some(environment.config_home()?.join("cudock").join("facts"))
}

impl Connection {
    /// With the certificates that the environment or the system names.
    pub fn from_environment(environment: &Environment) -> Self {
        Self { certificates: trusted_certificates(environment), ..Self::default() }
    }
}
