//! How a forwarder passes traffic on.

use std::time::Duration;

use super::RelayMode;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForwardOptions {
    /// How long a UDP client is kept without traffic in either direction.
    pub udp_idle: Duration,
    pub relay_mode: RelayMode,
}

impl Default for ForwardOptions {
    /// Ninety seconds, as in docker's proxy, and the fastest relay mode measured.
    fn default() -> Self {
        Self { udp_idle: Duration::from_secs(90), relay_mode: RelayMode::default() }
    }
}
