//! The command `cudock`: parses words, calls one crate, prints. No rule lives here.

mod cli;
mod env;
mod failure;
mod findings;
mod input;
mod output;
mod verbs;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    match verbs::run_watcher().unwrap_or_else(|| verbs::run(cli::Cli::parse())) {
        Ok(outcome) => outcome.into(),
        Err(failure) => {
            failure.print();
            failure.exit_code()
        }
    }
}
