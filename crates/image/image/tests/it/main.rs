//! Tests opening, walking and unpacking of images.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod hostile;
mod layers;
mod merge_property;
mod resolution;
mod sources;
mod support;
mod unpack;
mod unpack_escapes;
mod unpack_overlay;
mod unpack_support;
mod write;
mod write_registry;
