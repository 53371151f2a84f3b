//! A load on a server.

use std::net::SocketAddr;
use std::time::Duration;

use crate::schedule::Arrivals;

#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Load {
    /// Clients that send their next request after the response to the last one. A slow server gets fewer requests.
    Closed { clients: usize },
    /// Requests at a fixed rate, whatever the server does, like those of many independent users. Latency is measured
    /// from the intended send time.
    Open {
        /// Requests per second.
        rate: f64,
        arrivals: Arrivals,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub struct LoadSettings {
    pub address: SocketAddr,
    pub load: Load,
    /// Warm-up that is not measured.
    pub warm_up: Duration,
    pub duration: Duration,
    /// How long to wait for responses after that.
    pub grace: Duration,
    pub threads: usize,
    /// Limit the connections of an open loop.
    pub connections: usize,
    /// Verify every n-th response; 0 for none.
    pub check_every: u64,
    pub seed: u64,
}

impl LoadSettings {
    pub const WARM_UP: Duration = Duration::from_secs(1);
    pub const DURATION: Duration = Duration::from_secs(5);
    pub const GRACE: Duration = Duration::from_secs(5);
    pub const CONNECTIONS: usize = 1024;
    pub const CHECK_EVERY: u64 = 16;
    pub const SEED: u64 = 1;

    /// The default settings: one thread.
    pub const fn new(address: SocketAddr, load: Load) -> Self {
        Self {
            address,
            load,
            warm_up: Self::WARM_UP,
            duration: Self::DURATION,
            grace: Self::GRACE,
            threads: 1,
            connections: Self::CONNECTIONS,
            check_every: Self::CHECK_EVERY,
            seed: Self::SEED,
        }
    }
}
