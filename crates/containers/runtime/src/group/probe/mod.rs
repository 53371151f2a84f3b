//! Probes of the containers of a group.

mod http;
pub(in crate::group) mod runner;
