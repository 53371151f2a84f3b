//! The verdicts, case by case: what the compatibility rules promise of a subject on a target.
//!
//! Each case is a test of its own, named after the promise, with the rule it was read from. Expectations are written
//! out by hand from the rules and the tables; nothing here computes them.

mod builds;
mod expected;
mod given;
mod hardware;
mod support;

mod code;
mod compat;
mod driver;
mod driver_copies;
mod frameworks;
mod gate;
mod gate_images;
mod injection;
mod libraries;
mod measured;
mod order;
mod packages;
mod ptx;
mod system;
mod worked_examples;
