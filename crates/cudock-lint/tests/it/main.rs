//! Tests of the linter.

mod discovery;
mod docs;
mod examples;
mod fixes;
mod ignores;
mod settings;
mod system;
