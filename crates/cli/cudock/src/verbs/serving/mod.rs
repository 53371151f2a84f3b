//! Servers, the gateway before them, and their measurement.

pub(super) mod bench;
pub(super) mod gateway;
pub(super) mod models;
pub(super) mod runtime;
pub(super) mod serve;
