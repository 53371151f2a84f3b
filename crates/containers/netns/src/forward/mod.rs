//! Published ports: forwards connections to host ports into a container's namespace.
//!
//! Docker does this with firewall rules, which need root and stay behind after a crash. Here a process accepts on the host
//! and connects inside. This works because a socket belongs to the namespace in which it was created: the listeners are
//! bound on the host, then the process enters the namespace, and all sockets it creates from then on are the container's.
//!
//! To a service inside, all clients of a published port appear to come from localhost. If the service trusts localhost, it
//! trusts all of them, so such a port should be published on a trusted address of the host.
//!
//! 1. [`PortMapping::parse`] parses the user's input;
//! 2. [`Listeners::bind`] binds the ports at once, so that a port in use is an error before anything is started;
//! 3. [`Forwarder::start`] passes them to a new process of the same program as file descriptors ([`Handover`]);
//! 4. that process calls [`serve`], and ends with its parent.

mod budget;
mod forwarder;
mod handover;
mod listeners;
mod options;
mod port_mapping;
mod port_owner;
mod protocol;
mod relay;
mod serve;
mod tcp;
mod udp;

pub use forwarder::Forwarder;
pub use handover::Handover;
pub use listeners::Listeners;
pub use options::ForwardOptions;
pub use port_mapping::PortMapping;
pub use port_owner::PortOwner;
pub use protocol::Protocol;
pub use relay::RelayMode;
pub use serve::serve;
