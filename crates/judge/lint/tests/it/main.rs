//! Tests of the linter.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod conda;
mod discovery;
mod docs;
mod examples;
mod fixes;
mod ignores;
mod python;
mod settings;
mod stages;
mod system;
mod tags;
mod target;

/// The codes that are found in a file, of those in a range.
fn codes_between(text: &str, first: &str, last: &str) -> Vec<&'static str> {
    let facts = cudock_facts::Facts::embedded();
    let findings = examples::findings(&facts, text);
    findings.iter().map(|finding| finding.code).filter(|code| (first..=last).contains(code)).collect()
}
