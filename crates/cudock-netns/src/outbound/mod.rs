//! A way out: a namespace that can reach what the host can reach.
//!
//! The usual way, a bridge and address translation, needs root and changes the host. pasta needs neither: it puts a
//! device into the namespace and turns what is sent there into sockets of an ordinary process on the host. It copies
//! the host's addresses and routes, so nothing is translated. Where it is missing and slirp4netns is there
//! (Ubuntu 22.04 has only the latter), that is used: slower, by IPv4 alone, and with addresses of its own, but it
//! gives a container the same reach.
//!
//! Published ports are not left to either. They are bound by [`forward`](crate::forward) before anything is started,
//! so that a port in use is an error with a name in it; they work the same with no way out at all; and a service
//! need only listen on the container's localhost.
//!
//! Services on the host's own loopback device cannot be reached from inside unless it is asked for
//! ([`Options::host_loopback`]): they trust whoever can reach them.

mod pasta;
mod slirp;
mod start;
mod tool;

pub use start::{Options, Outbound};
pub use tool::{Found, Tool};
