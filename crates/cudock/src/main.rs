//! The command `cudock`: parses words, calls one crate, prints. No rule lives here.

mod cli;
mod env;
mod failure;
mod output;
mod verbs;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let arguments = cli::Cli::parse();
    match verbs::run(arguments) {
        Ok(outcome) => outcome.into(),
        Err(failure) => {
            failure.print();
            failure.exit_code()
        }
    }
}
