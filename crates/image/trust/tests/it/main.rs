//! Bills of materials, signatures that OpenSSL accepts, and referrers of images.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod documents;
mod signatures;
mod support;
