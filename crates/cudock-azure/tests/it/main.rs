//! The translation to each service, and the reading of their answers, against Azure's own schemas and recordings.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod bodies;
mod dry_run;
mod refusals;
mod schema;
mod scripts;
mod source;
mod specs;
mod status;
