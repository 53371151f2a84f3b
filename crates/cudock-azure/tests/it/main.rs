//! The promises of the crate, against Azure's own schemas and recordings.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "these are tests")]

mod bodies;
mod dry_run;
mod preflight;
mod refusals;
mod schema;
mod source;
mod specs;
mod status;
