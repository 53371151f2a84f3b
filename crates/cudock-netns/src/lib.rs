//! Network namespaces for containers.
//!
//! A container with a network of its own sees nothing but its loopback device. That is right for safety, and useless
//! until three things are added: a way for several containers to share that loopback ([`Namespace`], joined by
//! path), a way in from the host for the ports a user publishes ([`forward`]), and, by choice, a way out
//! ([`outbound`]). None of them needs a bridge, a firewall rule or a daemon, so none of them leaves anything behind
//! on the host, and all of them work without root inside a user namespace.
//!
//! What a container reads about its network ([`files`]) is computed by pure functions.

mod error;
pub mod files;
pub mod forward;
mod helper;
mod namespace;
pub mod outbound;
mod sys;

pub use error::{Error, Result};
pub use namespace::Namespace;
