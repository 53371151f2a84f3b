//! Published ports: connections to a port of the host, carried into a container's namespace.
//!
//! Docker does this with rules in the host's packet filter, which need root and stay behind after a crash. Here a
//! process of its own accepts on the host and connects inside. It can, because a socket belongs to the namespace in
//! which it was made: the listeners are bound on the host first, then the process enters the namespace, and whatever
//! socket it makes from then on is the container's.
//!
//! To a service inside, every client of a published port comes from its own localhost. One that trusts localhost
//! trusts them all, so such a port is better published on an address of the host that only friends can reach.
//!
//! 1. [`Publication::parse`] reads what the user typed;
//! 2. [`Listeners::bind`] takes the ports at once, so that a port in use is an error before anything is started;
//! 3. [`Forwarder::start`] hands them to a new process of the same program, by number, because the program is
//!    executed anew ([`Handover`]);
//! 4. that process calls [`serve`], and ends with its parent.

mod budget;
mod forwarder;
mod handover;
mod holder;
mod listeners;
mod publication;
mod relay;
mod serve;
mod tcp;
mod udp;

pub use forwarder::Forwarder;
pub use handover::{Handed, Handover};
pub use holder::Holder;
pub use listeners::{Listener, Listeners};
pub use publication::{Protocol, Publication};
pub use relay::Carriage;
pub use serve::serve;

use std::time::Duration;

/// How a forwarder works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// After how long without a datagram either way a UDP client is forgotten.
    pub udp_idle: Duration,
    /// How bytes of a connection are carried.
    pub carriage: Carriage,
}

impl Default for Options {
    /// Ninety seconds, as in docker's proxy, and what was measured to be best.
    fn default() -> Self {
        Self { udp_idle: Duration::from_secs(90), carriage: Carriage::default() }
    }
}
