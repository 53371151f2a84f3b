//! Tests seccomp filters, device rules and the sealed executable, in memory and in the kernel.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod devices_live;
mod devices_program;
mod profile_json;
mod seal;
mod seccomp_live;
mod seccomp_program;
mod support;
