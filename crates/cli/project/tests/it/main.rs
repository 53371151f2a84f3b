//! Valid and invalid texts of a `cudock.toml`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::float_cmp,
    reason = "a test fails by panicking"
)]

mod any_text;
mod contradictions;
mod gateway_keys;
mod manifest;
mod plan_keys;
mod schema;

use std::path::Path;

use cudock_project::{Manifest, parse};

/// The content of a text, or the error message.
fn read(text: &str) -> Result<Manifest, String> {
    parse(Path::new("cudock.toml"), text).map_err(|error| error.to_string())
}
