//! Tests the command as users type it.
#![allow(
    unreachable_pub,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "a test fails by panicking, and a test binary has no API"
)]

mod action;
mod azure;
mod bench;
mod build;
mod cdi;
mod check;
mod closed_output;
mod completion;
mod containers;
mod deploy;
mod doctor;
mod explain;
mod facts;
mod foreign_pages;
mod gateway;
mod groups;
mod help;
mod init;
mod inspect;
mod join_trace;
mod kills;
mod lint;
mod lsp;
mod man;
mod migrate;
mod offline;
mod output_flags;
mod overlay;
mod page;
mod plan;
mod prices;
mod runtime;
mod schema;
mod serve;
mod serve_support;
mod support;
mod sweep;
mod triton_client;
