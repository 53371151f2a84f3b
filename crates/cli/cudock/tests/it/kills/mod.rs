//! Commands that are killed at random moments: nothing is left, and incomplete work is never used.
//!
//! One module per command. CI runs a few rounds of each, `scripts/kill-check` 200; `cudock_testkit::random` has the number and
//! the seed.

mod engines;
mod runs;
mod volumes;
