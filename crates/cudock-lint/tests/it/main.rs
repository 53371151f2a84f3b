//! Tests of the linter.

mod examples;
mod stages;
mod tags;
