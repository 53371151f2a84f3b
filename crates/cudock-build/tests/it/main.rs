//! Tests of the library as its users call it.

mod debs;
mod layers;
mod support;
mod wheels;
