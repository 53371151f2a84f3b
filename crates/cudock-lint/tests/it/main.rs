//! Tests of the linter.

mod examples;
mod system;
