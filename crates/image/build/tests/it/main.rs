//! Tests of the library as its users call it.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test that fails panics")]

mod debs;
mod images;
mod layers;
mod slim_images;
mod support;
mod wheels;
