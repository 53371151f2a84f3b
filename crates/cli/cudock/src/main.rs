//! The command `cudock`: parses arguments, calls one crate, prints. No rule lives here.

mod failure;
mod finding_text;
mod formats;
mod output;
mod steps;
mod verbs;

use std::process::ExitCode;

use clap::Parser;
use cudock_cli::Cli;

use crate::failure::Failure;

fn main() -> ExitCode {
    match parse().and_then(verbs::run) {
        Ok(outcome) => outcome.into(),
        Err(failure) => {
            failure.print();
            failure.exit_code()
        }
    }
}

/// Parses the arguments. Help and errors that clap prints end this process.
fn parse() -> Result<Cli, Failure> {
    Cli::try_parse().map_err(|error| verbs::unknown_flag_of_run(&error).unwrap_or_else(|| error.exit()))
}
