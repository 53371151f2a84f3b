//! Tests of the linter.

mod examples;
mod stages;
mod system;
mod tags;
