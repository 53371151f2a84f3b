//! Network namespaces for containers.
//!
//! A container with its own network namespace only has a loopback device. Three things make that useful: several
//! containers can share the namespace ([`Namespace`], joined by path), published ports forward connections from the host
//! ([`forward`]), and the container can optionally reach other networks ([`outbound`]). None of them needs a bridge, a
//! firewall rule or a daemon, so nothing is left behind on the host, and everything works rootless inside a user namespace.
//!
//! The contents of the container's network configuration ([`files`]) are computed by pure functions.

mod child_process;
mod error;
pub mod files;
pub mod forward;
mod namespace;
pub mod outbound;
mod sys;

pub use error::{NetnsError, Result};
pub use namespace::Namespace;
