//! The promises of the crate, against Azure's own schemas and recordings, and against servers on this machine that answer
//! as Azure does and as it should not.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod bodies;
mod certificates;
mod dry_run;
mod export;
mod operations;
mod paging;
mod preflight;
mod recordings;
mod refusals;
mod retries;
mod schema;
mod scripts;
mod secrets;
mod sign_in;
mod source;
mod specs;
mod status;
mod storage;
mod support;
