//! The environment variables that this crate reads, besides `SSL_CERT_FILE` and those of proxies.

use std::path::PathBuf;

use cudock_base::Environment;
use cudock_http::trusted_certificates;

use crate::fetch::Connection;

/// The address of the price list, as `--endpoint`.
pub const CUDOCK_PRICES_URL: &str = "CUDOCK_PRICES_URL";

/// The user's own directory of newer tables: `cudock/facts` below the directory of configuration files.
pub fn user_directory(environment: &Environment) -> Option<PathBuf> {
    Some(environment.config_home()?.join("cudock").join("facts"))
}

impl Connection {
    /// With the certificates that the environment or the system names.
    pub fn from_environment(environment: &Environment) -> Self {
        Self { certificates: trusted_certificates(environment), ..Self::default() }
    }
}
