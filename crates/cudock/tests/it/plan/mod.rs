//! `cudock plan` as a user types it.

mod charts;
mod forms;
mod planned;
mod refusals;
mod scenarios;
