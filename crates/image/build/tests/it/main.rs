//! Tests of the library as its users call it.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test that fails panics")]

mod debs;
mod images;
mod layers;
mod support;
mod wheels;
