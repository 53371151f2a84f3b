//! A stand-in for Azure with its semantics, clock and bill, for tests; never part of the program.
//!
//! [`StandIn`] serves the APIs that a deployment uses over TLS on loopback. Its time is virtual: each request advances it by
//! some seconds, so that polling ends, and tests advance it further. Everything that happens later (a VM that starts, a
//! role that takes effect, a Logic App that fires) is a timer of that clock. A [`Schedule`] makes requests fail, and kills the client,
//! at chosen requests.
//!
//! Unimplemented requests fail loudly: an unknown resource type, template function, query or
//! workflow action is an error, never a success.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    clippy::new_without_default,
    reason = "callers are tests, which fail by panicking"
)]

mod catalog;
mod cloud;
mod random;
mod resources;
mod schedule;
mod services;
mod settings;
mod stand_in;
mod state;
mod templates;
mod time;
mod wire;

pub use resources::target::SUBSCRIPTION;
pub use schedule::{Fault, Schedule};
pub use settings::CloudSettings;
pub use stand_in::{ClientRun, StandIn};
pub use state::identity::{CLIENT_ID, TENANT};
