//! `cudock plan` as a user types it.

mod charts;
mod examples;
mod invalid_input;
mod reports;
mod scenarios;
