//! Tests of the linter.

mod examples;
