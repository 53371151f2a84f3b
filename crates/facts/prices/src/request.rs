//! The request of a refresh.

use std::path::PathBuf;

use cudock_facts::version::Date;

use crate::api::endpoint::Endpoint;
use crate::fetch::Connection;

#[derive(Debug, Clone)]
pub struct RefreshRequest {
    /// The directory of the overlay tables; created if missing.
    pub directory: PathBuf,
    pub endpoint: Endpoint,
    /// The regions; all that the tables know if empty.
    pub regions: Vec<String>,
    /// The sizes; all that the tables know, and the meters of services, if empty.
    pub sizes: Vec<String>,
    pub today: Date,
    pub connection: Connection,
}
