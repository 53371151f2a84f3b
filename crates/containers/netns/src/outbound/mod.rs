//! Outbound connections: gives a namespace access to the networks of the host.
//!
//! A bridge with address translation would need root and change the host. pasta needs neither: it creates a device in the
//! namespace and translates its traffic to sockets of an ordinary process on the host. It copies the host's addresses and
//! routes, so there is no NAT. If it is missing, slirp4netns is used (Ubuntu 22.04 has only that): slower, IPv4 only, and
//! with its own addresses, but with the same reach.
//!
//! Published ports are not left to these tools. [`forward`](crate::forward) binds them before anything is started, so that
//! a port in use is reported by name; they also work without outbound connections; and a service only needs to listen on
//! the container's localhost.
//!
//! Services on the host's loopback device are not reachable from inside, because they often trust local clients. Those that
//! listen on an address of the host are, at that address; but pasta copies the address of the default route, which then is the
//! container's own. A container that is to reach the host under a name ([`HostAccess`]) gets another way there.

mod host;
mod pasta;
mod slirp;
mod start;
mod tool;

pub use host::HostAccess;
pub use start::Outbound;
pub use tool::{OutboundTool, Tool};
